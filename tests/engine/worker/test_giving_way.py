"""A long prompt gives way to a question of the user, and goes on from where it was."""

from collections.abc import Iterator

import pytest

from qwendesk.engine import protocol as p
from tests.engine.worker.process import GREEDY, Answer, WorkerProcess, demo_options, user, worker_process

LONG = "The app shows how many tokens of the context are in use. " * 200


@pytest.fixture(scope="module")
def worker() -> Iterator[WorkerProcess]:
    with worker_process() as process:
        process.load(demo_options(n_ubatch=64, n_batch=64))
        yield process


def begin_long(worker: WorkerProcess, chat: str) -> tuple[int, list[p.Event]]:
    """Ask a long question that gives way, and return its id and its events until the first batches are processed."""
    request_id = worker.send(p.Generate, messages=(user(f"{chat} {LONG}"),), options=GREEDY, chat=chat, gives_way=True)
    events = worker.until(p.PromptProgress)
    while not is_begun(events[-1]):
        events += worker.until(p.PromptProgress)
    return request_id, events


def is_begun(event: p.Event) -> bool:
    return isinstance(event, p.PromptProgress) and event.done - event.reused >= 300


def test_a_question_of_the_user_is_answered_before_a_long_prompt_is_processed(worker: WorkerProcess) -> None:
    long_id, events = begin_long(worker, "long")
    short_id = worker.send(p.Generate, messages=(user("Hello"),), options=GREEDY, chat="window")
    events += worker.until(p.Finished)
    assert events[-1].id == short_id
    assert not [event for event in events if isinstance(event, p.Delta) and event.id == long_id]

    events += worker.until(p.Finished)
    answer = Answer([event for event in events if event.id == long_id])
    assert answer.stats.reread_tokens == answer.stats.prompt_tokens - answer.stats.reused_tokens
    assert answer.stats.reused_tokens < 64
    progress = [event.done for event in events if isinstance(event, p.PromptProgress) and event.id == long_id]
    assert progress == sorted(progress), "what was processed before the question is not processed again"

    undisturbed = worker.ask([user(f"long {LONG}")], chat="another", options=GREEDY)
    assert undisturbed.text == answer.text


def test_a_prompt_that_was_set_aside_can_be_cancelled(worker: WorkerProcess) -> None:
    long_id, _ = begin_long(worker, "cancelled")
    short_id = worker.send(p.Generate, messages=(user("Hello"),), options=GREEDY, chat="window")
    worker.send(p.Cancel, target=long_id)
    ends = [event for event in worker.until(p.Finished) if isinstance(event, p.Finished)]
    ends += [event for event in worker.until(p.Finished) if isinstance(event, p.Finished)]
    assert {end.id: end.stop_reason for end in ends} == {long_id: "cancelled", short_id: "eos"}


def test_two_programs_are_both_answered(worker: WorkerProcess) -> None:
    """In which order depends on how long the first takes: they take turns."""
    first, _ = begin_long(worker, "first")
    second = worker.send(p.Generate, messages=(user("Hello"),), options=GREEDY, chat="second", gives_way=True)
    assert {worker.until(p.Finished)[-1].id, worker.until(p.Finished)[-1].id} == {first, second}
