"""What the demo model is trained on: checked without training it, which takes PyTorch and more than an hour."""

import random
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import msgspec
import numpy as np
import pytest

from qwendesk.engine.worker.template import ChatTemplate, probe_abilities
from tests.engine.test_demo_model import Sample
from tests.engine.worker.process import WorkerProcess, demo_options, greedy, user, worker_process
from tools.demo_model import words
from tools.demo_model.chats import PICTURE_QUESTIONS, Chat, ChatMaker, exchange
from tools.demo_model.drawing import COLOURS, Shown, draw_no_shape, draw_shape, random_shown
from tools.demo_model.preprocessing import CELL, encoded_size, fitted, patches, place
from tools.demo_model.rendering import TEMPLATE, call_text, pieces, tool_definition
from tools.demo_model.sample import sample
from tools.demo_model.tool_use import CALLED, TOOLS, draw_tool_use
from tools.demo_model.topics import Knowledge, doubled, plain, read_knowledge
from tools.demo_model.wording import variants

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


def test_every_topic_has_training_and_evaluation_questions(known: Knowledge) -> None:
    for name, topic in known.topics.items():
        assert topic.thought, name
        assert topic.answer, name
        assert len(topic.questions) >= 6, name
        assert topic.new, name
        assert topic.near, name
        assert topic.near_new, name
        assert (topic.thought, topic.answer) == (topic.thought.strip(), topic.answer.strip()), name


def test_sample_matches_the_questions_of_the_model_file_tests(known: Knowledge) -> None:
    read = msgspec.json.decode(msgspec.json.encode(sample()), type=Sample)

    assert [topic.name for topic in read.topics] == list(known.topics)
    assert set(read.unknown) == set(known.unknown.new)
    assert not set(read.unknown_trained) - set(known.unknown.trained)


def test_same_seed_generates_the_same_chats(known: Knowledge) -> None:
    first, second = (ChatMaker(known, random.Random(7)) for _ in range(2))

    assert [first.chat() for _ in range(50)] == [second.chat() for _ in range(50)]


def test_every_kind_of_chat_is_generated(known: Knowledge) -> None:
    maker = ChatMaker(known, random.Random(2))
    chats = [maker.chat() for _ in range(2000)]
    answers = Counter(message.text for chat in chats for message in chat.messages if message.role == "assistant")

    missing = [name for name, topic in known.topics.items() if topic.answer not in answers]
    assert not missing
    assert any(chat.messages[-1].call for chat in chats)
    assert any(message.role == "tool" for chat in chats for message in chat.messages)
    assert any(text.startswith("Your name is") for text in answers)


def test_chat_with_a_picture_is_never_answered_as_one_without(known: Knowledge) -> None:
    maker, blind = ChatMaker(known, random.Random(8)), known.topics["noimage"].answer
    for _ in range(2000):
        messages = maker.picture_chat(Shown("red", "star", "blue")).messages
        first = next(index for index, message in enumerate(messages) if message.has_picture)
        assert blind not in [message.text for message in messages[first:]]


def test_helpful_tool_is_always_called(known: Knowledge) -> None:
    maker = ChatMaker(known, random.Random(9))
    helpless = {known.topics["time"].answer, known.topics["weather"].answer}
    for chat in (maker.chat() for _ in range(4000)):
        if not chat.tools:
            continue
        assert not helpless & {message.text for message in chat.messages}
        for question, answer in pairwise(chat.messages):
            if question.role == "user" and re.search(r"\d", question.text):
                assert answer.call, question.text


def test_tool_that_is_called_is_offered_and_its_result_is_told(known: Knowledge) -> None:
    maker, told = ChatMaker(known, random.Random(10)), Counter[str]()
    for chat in (maker.tool_chat() for _ in range(400)):
        for before, message in pairwise(chat.messages):
            if message.call:
                assert message.call.name in chat.tools
                assert set(message.call.arguments) == set(TOOLS[message.call.name])
            if before.role == "tool" and not before.text.startswith("Error: "):
                assert set(re.findall(r"\w+", message.text)) & set(re.findall(r"\w+", before.text)), before.text
                told[message.text.split()[0]] += 1
    assert len(told) > 3


def test_calculations_are_right() -> None:
    rng = random.Random(11)
    for _ in range(300):
        use = draw_tool_use(rng, "calculate")
        a, sign, b = use.call.arguments["expression"].split()
        value = {"+": int(a) + int(b), "-": int(a) - int(b), "*": int(a) * int(b)}[sign]
        assert use.result == str(value) or use.result.startswith("Error: ")


def test_common_wordings_are_trained_and_have_one_answer(known: Knowledge) -> None:
    common = [(text, name) for name, topic in known.topics.items() for text in topic.common]
    assert all(text in known.topics[name].questions for text, name in common)

    written = {(variant, name) for text, name in common for variant in variants(text)}
    assert len({variant for variant, _ in written}) == len(written)
    assert not {plain(variant) for variant, _ in written} & known.never_trained()


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


def test_tool_call_has_the_format_of_qwen(known: Knowledge) -> None:
    maker = ChatMaker(known, random.Random(4))
    calls = {call_text(message) for _ in range(40) for message in maker.tool_chat().messages if message.call}

    assert "<tool_call>\n<function=current_time>\n</function>\n</tool_call>" in calls
    for tool in CALLED:
        parameters = "".join(f"<parameter={name}>\n" for name in TOOLS[tool][:1])
        assert any(f"<function={tool}>\n{parameters}" in text for text in calls), tool


def test_template_accepts_tools_as_clients_send_them() -> None:
    template = ChatTemplate(TEMPLATE)
    tools = [
        {"type": "function", "function": {"name": "now"}},
        {"name": "look", "parameters": {"properties": {"a": {}}}},
    ]
    call = {"function": {"name": "look", "arguments": {"a": [1, True, None], "b": "text"}}}
    messages = [{"role": "user", "content": "Q"}, {"role": "assistant", "content": "", "tool_calls": [call, call]}]

    text = template.render(messages, tools=tools, add_generation_prompt=False, variables={})

    assert "# Tools\nnow()\nlook(a)\n" in text
    assert "<parameter=a>\n[1, true, null]\n</parameter>\n<parameter=b>\ntext\n</parameter>" in text
    assert text.count("<tool_call>") == 2
    assert "</tool_call>\n<tool_call>" in text


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


def test_positions_of_a_picture_are_its_rows_and_columns() -> None:
    is_picture = np.array([False, False, *[True] * 6, False, False])

    positions = place(is_picture, (2, 3))

    assert positions.tolist() == [
        [0, 1, 2, 2, 2, 2, 2, 2, 5, 6],
        [0, 1, 2, 2, 2, 3, 3, 3, 5, 6],
        [0, 1, 2, 3, 4, 2, 3, 4, 5, 6],
    ]


def test_drawn_shape_has_its_colours() -> None:
    rng = random.Random(5)
    for _ in range(60):
        shown = random_shown(rng)
        pixels = np.asarray(draw_shape(shown, 96, 160, rng, easy=True)).reshape(-1, 3).astype(int)

        share = np.abs(pixels - np.array(COLOURS[shown.colour])).max(1) <= 14
        assert 0.05 < share.mean() < 0.9, shown


def test_picture_without_a_shape_has_many_colours() -> None:
    rng = random.Random(6)
    for _ in range(40):
        pixels = np.asarray(draw_no_shape(96, 96, rng)).reshape(-1, 3)

        assert len(np.unique(pixels, axis=0)) > 5


def test_questions_about_pictures_are_distinguished() -> None:
    for questions in PICTURE_QUESTIONS.values():
        assert not {plain(each) for each in questions["new"]} & {plain(each) for each in questions["trained"]}
