"""When the worker of a cancelled request is killed."""

import pytest

from qwendesk.engine.client import WorkerTimeouts, kill_at
from qwendesk.engine.protocol import LoadProgress, PromptProgress, Rendered
from qwendesk.engine.replies import Reply

TIMEOUTS = WorkerTimeouts(acknowledge_s=10, load_stall_s=3, answer_stall_s=20, cancel_s=120)


def reply_after(event: object, *, cancelled_after_s: float = 0.0, acknowledged: bool = True) -> Reply:
    reply = Reply(1, is_public=True, is_load=isinstance(event, LoadProgress))
    reply.last_event = event  # type: ignore[assignment]
    reply.cancelled_at = reply.last_event_at + cancelled_after_s
    reply.is_acknowledged = acknowledged
    return reply


@pytest.mark.parametrize(
    ("event", "seconds"),
    [
        (LoadProgress(id=1, stage="context", fraction=0.9), 3),
        (PromptProgress(id=1, done=1, total=2, reused=0), 20),
        (PromptProgress(id=1, done=1, total=2, reused=0, encodes_image=True), 120),
        (Rendered(id=1), 120),
    ],
    ids=["load", "prompt", "image is encoded", "images are decoded"],
)
async def test_the_limit_depends_on_what_the_worker_does(event: object, seconds: float) -> None:
    reply = reply_after(event)
    assert kill_at(TIMEOUTS, reply) == reply.last_event_at + seconds


async def test_request_that_has_already_stalled_is_killed_at_once() -> None:
    reply = reply_after(None, cancelled_after_s=50)
    assert reply.cancelled_at is not None
    assert kill_at(TIMEOUTS, reply) < reply.cancelled_at


async def test_a_worker_that_does_not_acknowledge_is_waited_for_less_long() -> None:
    reply = reply_after(Rendered(id=1), acknowledged=False)
    assert kill_at(TIMEOUTS, reply) == reply.last_event_at + 10


async def test_progress_after_the_cancel_does_not_extend_the_limit_forever() -> None:
    reply = reply_after(PromptProgress(id=1, done=1, total=2, reused=0))
    cancelled_at = reply.cancelled_at = reply.last_event_at
    reply.last_event_at += 1000
    assert kill_at(TIMEOUTS, reply) == cancelled_at + 120
