"""What the list of requests says of each."""

import asyncio

from qwendesk.engine.protocol import CallDelta, Delta, PromptProgress
from qwendesk.server.requests import RequestLog
from tests.server.answers import end


class Clock:
    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


async def test_a_request_is_followed_from_its_prompt_to_its_end() -> None:
    clock = Clock()
    log = RequestLog(clock)
    request = log.begin("codex", "laptop", "/v1/responses")
    log.note(request, PromptProgress(id=1, done=90, total=100, reused=90))
    (reading,) = log.observed.value
    assert (reading.phase, reading.prompt_tokens, reading.reused_tokens) == ("reading", 100, 90)

    log.note(request, Delta(id=1, kind="reasoning", text="Hm", tokens=1))
    clock.now_s += 2
    log.note(request, Delta(id=1, kind="reasoning", text=" hm", tokens=20))
    log.note(request, CallDelta(id=1, index=0, name="read", arguments="{", tokens=4))
    (writing,) = log.observed.value
    assert (writing.phase, writing.written_tokens, writing.tok_s) == ("writing", 24, 12)

    log.note(request, end("eos"))
    log.end(request, "done")
    (done,) = log.observed.value
    assert (done.phase, done.written_tokens, done.is_running) == ("done", 7, False)


async def test_a_request_that_runs_can_be_stopped() -> None:
    log = RequestLog()
    ids: list[int] = []

    async def serve() -> None:
        ids.append(log.begin("codex", "", "/v1/responses"))
        await asyncio.Event().wait()

    task = asyncio.ensure_future(serve())
    while not ids:  # noqa: ASYNC110
        await asyncio.sleep(0)
    log.stop(ids[0])

    await asyncio.wait((task,))
    assert task.cancelled()


async def test_many_old_requests_are_forgotten() -> None:
    log = RequestLog()
    for _ in range(60):
        log.end(log.begin("curl", "", "/v1/chat/completions"), "done")
    log.note(1, Delta(id=1, kind="answer", text="late", tokens=1))
    assert len(log.observed.value) == 50


async def test_refusals_are_listed_once_and_push_out_nothing_that_runs() -> None:
    log = RequestLog()
    running = log.begin("codex", "", "/v1/responses")
    for number in range(200):
        log.note_refusal(f"curl{number // 2}", "/v1/models", "The key is wrong.")
    listed = log.observed.value
    assert len(listed) == 50
    assert listed[-1].id == running
    assert listed[-1].is_running
    assert [each.program for each in listed[:2]] == ["curl99", "curl98"]
    assert listed[0].phase == "refused"
