"""What the demo model is trained on: checked without training it, which takes PyTorch and more than an hour."""

import random
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest

from qwendesk.engine.worker.template import ChatTemplate, probe_abilities
from tests.engine.test_demo_model import Sample
from tests.engine.worker.process import WorkerProcess, demo_options, greedy, user, worker_process
from tools.demo_model import words
from tools.demo_model.chats import Chat, ChatMaker, exchange
from tools.demo_model.drawing import Shown, draw_shape
from tools.demo_model.preprocessing import CELL, encoded_size, fitted, patches
from tools.demo_model.rendering import TEMPLATE, pieces, tool_definition
from tools.demo_model.sample import sample
from tools.demo_model.topics import Knowledge, doubled, plain, read_knowledge

SIZES = ((64, 64), (128, 128), (100, 140), (300, 90), (40, 300), (255, 193), (1024, 768))


@pytest.fixture(scope="module")
def known() -> Knowledge:
    return read_knowledge()


@pytest.fixture(scope="module")
def worker() -> Iterator[WorkerProcess]:
    with worker_process() as process:
        process.load(demo_options())
        yield process


def test_each_wording_has_one_answer(known: Knowledge) -> None:
    questions = [question for topic in known.topics.values() for question in (*topic.questions, *topic.near)]

    assert not doubled([*questions, *known.unknown.trained])


def test_evaluation_questions_are_not_in_the_training_data(known: Knowledge) -> None:
    maker = ChatMaker(known, random.Random(1))
    never = known.never_trained()
    measured = [question for topic in known.topics.values() for question in (*topic.new, *topic.near_new)]
    assert not doubled([*measured, *known.unknown.new])

    dressed = [f" {wording} " for wording in never if len(wording.split()) > 2]
    for _ in range(2000):
        for message in maker.chat().messages:
            text = f" {plain(message.text)} "
            assert not set(words.NEW_NAMES) & set(re.findall(r"\w+", message.text)), message.text
            if message.role == "user":
                assert text.strip() not in never, message.text
                assert not [wording for wording in dressed if wording in text], message.text


def test_sample_matches_the_questions_of_the_model_file_tests(known: Knowledge) -> None:
    read = msgspec.json.decode(msgspec.json.encode(sample()), type=Sample)

    assert [topic.name for topic in read.topics] == list(known.topics)
    assert set(read.unknown) == set(known.unknown.new)
    assert not set(read.unknown_trained) - set(known.unknown.trained)


@pytest.mark.parametrize("thinking", [False, True], ids=["no-think", "think"])
def test_training_prompt_matches_the_prompt_of_the_app(known: Knowledge, thinking: bool) -> None:
    """The prompt of a chat is the same through the app's own template engine."""
    maker, template = ChatMaker(known, random.Random(3)), ChatTemplate(TEMPLATE)
    chats = [maker.chat() for _ in range(300)] + [maker.picture_chat(None) for _ in range(50)]
    for chat in chats:
        given = [{"role": "system", "content": chat.system}] if chat.system else []
        for message in chat.messages[:-1]:
            content = [{"type": "image"}] * message.has_picture + [{"type": "text", "text": message.text}]
            calls = [{"function": msgspec.to_builtins(message.call)}] if message.call else []
            given.append(
                {"role": message.role, "content": content, "reasoning_content": message.thought, "tool_calls": calls}
            )
        tools = [tool_definition(name) for name in chat.tools]
        prompt = template.render(
            given, tools=tools or None, add_generation_prompt=True, variables={"enable_thinking": thinking}
        )

        *read, (answer, is_learnt) = pieces(chat, thinking=thinking)
        assert "".join(text for text, _ in read) == prompt
        assert is_learnt
        assert answer.endswith("<|im_end|>")
        assert (chat.messages[-1].thought in answer) == thinking


def test_loss_covers_earlier_answers_but_not_questions() -> None:
    chat = Chat((*exchange("First?", "Thought.", "One."), *exchange("Second?", "Thought.", "Two.")), "Be brief.")

    learnt = [text for text, is_learnt in pieces(chat, thinking=True) if is_learnt]

    assert learnt == ["One.<|im_end|>", "Thought.\n</think>\n\nTwo.<|im_end|>"]


def test_template_accepts_tools_and_reasoning() -> None:
    abilities = probe_abilities(ChatTemplate(TEMPLATE), "model")

    assert abilities.tools
    assert abilities.enable_thinking


def test_picture_has_as_many_tokens_as_in_the_engine(worker: WorkerProcess, tmp_path: Path) -> None:
    shown = Shown("red", "circle", "white")
    bare = worker.ask([user("What is this?")], greedy(enable_thinking=False, max_tokens=1)).stats.prompt_tokens
    for width, height in SIZES:
        path = tmp_path / f"{width}x{height}.png"
        draw_shape(shown, width, height, random.Random(1)).save(path)

        stats = worker.ask([user("What is this?", path)], greedy(enable_thinking=False, max_tokens=1)).stats

        wide, high = encoded_size(width, height)
        assert stats.prompt_tokens - bare - 2 == wide * high // CELL**2, (width, height)


@pytest.mark.parametrize("size", SIZES)
def test_a_picture_becomes_one_row_for_each_patch(size: tuple[int, int]) -> None:
    picture = draw_shape(Shown("red", "square", "white"), *size, random.Random(2))

    pixels = fitted(picture)
    rows = patches(pixels)

    wide, high = encoded_size(*size)
    assert pixels.shape == (high, wide, 3)
    assert rows.shape == (wide * high // 256, 768)
    assert rows.min() >= -1
    assert rows.max() <= 1
    # The first token: the four patches of its cell, row by row.
    cell = np.moveaxis(pixels[:CELL, :CELL].astype(np.float32) / 127.5 - 1, 2, 0)
    assert np.array_equal(rows[1].reshape(3, 16, 16), cell[:, :16, 16:])
    assert np.array_equal(rows[2].reshape(3, 16, 16), cell[:, 16:, :16])
