"""What is processed ahead makes the next answer sooner, and leaves it as it is."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from qwendesk.core.messages import Message, TextPart, text_message
from qwendesk.engine import protocol as p
from tests.engine.worker.process import (
    WorkerProcess,
    demo_options,
    draw_circle,
    greedy,
    image_part,
    user,
    worker_process,
)

SYSTEM = text_message("system", "You are a helpful assistant. " + "Answer briefly and truthfully. " * 40)
NOTES = "Here is a document. " + "Experts are stored in RAM, and attention stays on the card. " * 120
QUESTION = "What is VRAM spill?"


@pytest.fixture
def worker() -> Iterator[WorkerProcess]:
    with worker_process() as process:
        process.load(demo_options(n_ubatch=128, n_ctx=16_384))
        yield process


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    return draw_circle(tmp_path / "red.png", "red")


def warm(worker: WorkerProcess, *messages: Message, **fields: object) -> p.Warmed:
    worker.send(p.Warm, messages=messages, options=fields.pop("options", greedy()), **fields)
    return worker.expect(p.Warmed)


def cold(*messages: Message, **changes: object) -> tuple[str, str]:
    """The answer of a worker in which nothing was processed ahead."""
    with worker_process() as other:
        other.load(demo_options(n_ubatch=128, n_ctx=16_384))
        answer = None
        for end in range(1, len(messages) + 1):
            if messages[end - 1].role == "user":
                answer = other.ask(messages[:end], greedy(**changes))
        assert answer is not None
        return answer.reasoning, answer.text


def test_the_system_prompt_after_a_load(worker: WorkerProcess) -> None:
    warmed = warm(worker, SYSTEM, chat="one")
    assert warmed.reread == warmed.done > 200
    answer = worker.ask([SYSTEM, user(QUESTION)], greedy(), chat="one")
    assert answer.stats.reused_tokens == warmed.done
    assert answer.stats.reread_tokens < 40
    assert (answer.reasoning, answer.text) == cold(SYSTEM, user(QUESTION))


def test_a_picture_and_a_document_while_the_user_types(worker: WorkerProcess, picture: Path) -> None:
    files = Message("user", (image_part(picture), TextPart(NOTES)))
    whole = Message("user", (image_part(picture), TextPart(NOTES), TextPart("What is in this picture?")))
    warmed = warm(worker, SYSTEM, files, chat="one")
    assert warmed.done > 1000
    answer = worker.ask([SYSTEM, whole], greedy(), chat="one")
    assert answer.stats.reused_tokens == warmed.done
    assert answer.stats.reread_tokens <= 128 + 40
    assert (answer.reasoning, answer.text) == cold(SYSTEM, whole)


def test_an_answer_is_read_again_without_its_thought(worker: WorkerProcess) -> None:
    first = worker.ask([SYSTEM, user(QUESTION)], greedy(), chat="one")
    assert first.reasoning
    chat = [SYSTEM, user(QUESTION), first.message]
    warmed = warm(worker, *chat, chat="one")
    again = warm(worker, *chat, chat="one")
    assert again.done == warmed.done
    assert again.reread == 0
    chat.append(user("What is a quant?"))
    answer = worker.ask(chat, greedy(), chat="one")
    assert answer.stats.reused_tokens >= warmed.done
    assert (answer.reasoning, answer.text) == cold(SYSTEM, user(QUESTION), first.message, user("What is a quant?"))


def test_a_chat_comes_back_before_anything_is_asked(worker: WorkerProcess) -> None:
    chat = [user(NOTES + QUESTION)]
    first = worker.ask(chat, greedy(), chat="one")
    worker.ask([user("Hello")], greedy(), chat="two")
    warmed = warm(worker, *chat, first.message, chat="one")
    assert warmed.done > 1000
    assert warmed.reread < 200


def test_a_question_that_arrives_meanwhile_is_answered_first(worker: WorkerProcess) -> None:
    worker.send(p.Warm, messages=(user(NOTES * 6),), options=greedy(), chat="one")
    worker.send(p.Generate, messages=(user("Hello"),), options=greedy(max_tokens=5), chat="two")
    events = worker.until(p.Finished)
    warmed = next(event for event in events if isinstance(event, p.Warmed))
    assert warmed.done < 9000
    assert worker.ask([user(NOTES * 6 + QUESTION)], greedy(max_tokens=40), chat="one").reasoning


def test_a_prompt_beyond_the_context_is_left_alone(worker: WorkerProcess) -> None:
    assert warm(worker, user(NOTES * 12), chat="one").done == 0


def test_a_picture_whose_encoding_would_take_long_waits_for_the_question(worker: WorkerProcess, tmp_path: Path) -> None:
    """Before the first picture, the speed is not known, so a large one isn't encoded ahead."""
    Image.new("RGB", (1024, 768), "red").save(tmp_path / "large.png")
    files = Message("user", (image_part(tmp_path / "large.png"),))
    assert warm(worker, SYSTEM, files, chat="one").done < 500


def test_a_picture_without_a_vision_file_is_refused_as_in_a_question(picture: Path) -> None:
    with worker_process() as worker:
        worker.load(demo_options(mmproj=""))
        worker.send(p.Warm, messages=(Message("user", (image_part(picture),)),), options=greedy())
        failed = worker.until(p.RequestFailed, p.Warmed)[-1]
        assert isinstance(failed, p.RequestFailed)


def edited_chat(worker: WorkerProcess) -> list[Message]:
    """A chat of three long turns, in the worker's memory."""
    chat: list[Message] = [SYSTEM]
    for number in range(3):
        chat.append(user(f"{number}. {NOTES}{QUESTION}"))
        chat.append(worker.ask(chat, greedy(max_tokens=40), chat="one").message)
    return chat


def test_before_an_edited_question_everything_is_ready(worker: WorkerProcess) -> None:
    chat = edited_chat(worker)
    before = chat[:3]
    warmed = warm(worker, *before, chat="")
    edited = user("What is a quant?")
    answer = worker.ask([*before, edited], greedy(), chat="one")
    assert answer.stats.reused_tokens == warmed.done > 1000
    assert answer.stats.reread_tokens <= 128 + 40, "the edited question, and less than a batch before it"
    with worker_process() as other:
        other.load(demo_options(n_ubatch=128, n_ctx=16_384))
        plain = other.ask([*before, edited], greedy())
    assert (answer.reasoning, answer.text) == (plain.reasoning, plain.text)


def test_a_cancelled_edit_costs_the_chat_nothing(worker: WorkerProcess) -> None:
    chat = edited_chat(worker)
    warm(worker, *chat, chat="one")
    warm(worker, *chat[:3], chat="")
    back = warm(worker, *chat, chat="one")
    assert back.done > 3000
    assert back.reread <= 128
