"""Going back to a chat through real workers: from RAM, and from a file after the engine was killed."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from qwendesk.core.messages import Message, text_message
from qwendesk.core.options import DecidedOptions
from qwendesk.engine import protocol as p
from tests.engine.worker.process import Answer, WorkerProcess, demo_options, draw_circle, greedy, user, worker_process

OPTIONS = greedy(max_tokens=60)
LONG = "Here are my notes, read them well. " + "Experts are stored in RAM, and attention stays on the card. " * 40


@pytest.fixture
def worker() -> Iterator[WorkerProcess]:
    with worker_process() as process:
        process.load(demo_options())
        yield process


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    return draw_circle(tmp_path / "red.png", "red")


def first_chat(picture: Path) -> list[Message]:
    return [text_message("system", "You are a helpful assistant."), user(LONG + "What is in this picture?", picture)]


def second_chat() -> list[Message]:
    return [user("Something else entirely. " + LONG[::-1] + " What is the KV cache?")]


def turns(worker: WorkerProcess, chat: list[Message], questions: Sequence[str], **fields: str) -> list[Answer]:
    answers = []
    for question in questions:
        answers.append(worker.ask(chat, OPTIONS, **fields))
        chat += [answers[-1].message, user(question)]
    return [*answers, worker.ask(chat, OPTIONS, **fields)]


def undisturbed(picture: Path, options: DecidedOptions | None = None) -> Answer:
    """The second answer of the first chat in a worker that serves nothing else."""
    with worker_process() as worker:
        worker.load(options or demo_options())
        return turns(worker, first_chat(picture), ["What is VRAM spill?"])[-1]


def test_back_in_a_chat_the_answer_is_the_one_of_an_undisturbed_engine(worker: WorkerProcess, picture: Path) -> None:
    chat = first_chat(picture)
    chat += [worker.ask(chat, OPTIONS, chat="one").message, user("What is VRAM spill?")]
    worker.ask(second_chat(), OPTIONS, chat="two")
    back = worker.ask(chat, OPTIONS, chat="one")
    alone = undisturbed(picture)
    assert (back.reasoning, back.text) == (alone.reasoning, alone.text)
    assert back.stats.reused_tokens == alone.stats.reused_tokens
    assert back.stats.reread_tokens < 100


def test_without_a_chat_nothing_is_kept(worker: WorkerProcess, picture: Path) -> None:
    chat = first_chat(picture)
    chat += [worker.ask(chat, OPTIONS).message, user("What is VRAM spill?")]
    worker.ask(second_chat(), OPTIONS, chat="two")
    back = worker.ask(chat, OPTIONS)
    assert back.stats.reused_tokens < 100
    assert back.text == undisturbed(picture).text


@pytest.mark.parametrize("changes", [{}, {"type_k": "q8_0", "type_v": "q8_0", "flash_attn": "on"}], ids=["f16", "q8_0"])
def test_a_new_engine_continues_the_chat_of_one_that_was_killed(
    picture: Path, tmp_path: Path, changes: dict[str, str]
) -> None:
    file = tmp_path / "one.state"
    chat = first_chat(picture)
    with worker_process() as worker:
        worker.load(demo_options(**changes))
        chat += [worker.ask(chat, OPTIONS, chat="one").message, user("What is VRAM spill?")]
        worker.send(p.SaveState, chat="one", path=str(file), most_bytes=10**9)
        saved = worker.expect(p.StateSaved)
        assert saved.n_bytes == file.stat().st_size
        assert saved.n_tokens > 500
        worker.process.kill()
    with worker_process() as worker:
        worker.load(demo_options(**changes))
        back = worker.ask(chat, OPTIONS, chat="one", state_file=str(file))
    alone = undisturbed(picture, demo_options(**changes))
    assert (back.reasoning, back.text) == (alone.reasoning, alone.text)
    assert back.stats.reused_tokens == alone.stats.reused_tokens
    with worker_process() as worker:
        worker.load(demo_options(type_k="bf16", type_v="bf16"))
        assert worker.ask(chat, OPTIONS, chat="one", state_file=str(file)).stats.reused_tokens == 0


def test_a_state_is_written_while_the_next_answer_runs(worker: WorkerProcess, picture: Path, tmp_path: Path) -> None:
    file = tmp_path / "one.state"
    worker.ask(first_chat(picture), OPTIONS, chat="one")
    worker.send(p.SaveState, chat="one", path=str(file), most_bytes=10**9)
    worker.send(p.Generate, messages=tuple(second_chat()), options=OPTIONS, chat="two")
    events = worker.until(p.Finished)
    if not any(isinstance(event, p.StateSaved) for event in events):
        events += worker.until(p.StateSaved)
    saved = next(event for event in events if isinstance(event, p.StateSaved))
    assert saved.n_bytes == file.stat().st_size


def test_a_chat_of_which_nothing_is_known_has_no_state(worker: WorkerProcess, tmp_path: Path) -> None:
    worker.send(p.SaveState, chat="one", path=str(tmp_path / "none"), most_bytes=10**9)
    assert worker.expect(p.StateSaved).n_bytes == 0
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_said(worker: WorkerProcess, picture: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    worker.ask(first_chat(picture), OPTIONS, chat="one")
    worker.send(p.SaveState, chat="one", path=str(tmp_path / "file" / "one.state"), most_bytes=10**9)
    failed = worker.until(p.RequestFailed, p.StateSaved)[-1]
    assert isinstance(failed, p.RequestFailed)
    assert worker.ask(second_chat(), OPTIONS).stop_reason in ("eos", "max_tokens")
