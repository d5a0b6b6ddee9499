"""Cancelling, with a worker that does not end what it was told to end."""

import asyncio

import psutil
import pytest

from qwendesk.core.failures import EngineExit, LoadFailure
from qwendesk.engine.client import WorkerClient
from qwendesk.engine.protocol import Devices, Finished, Generate, LoadProgress, Measure, PromptProgress
from qwendesk.engine.state import WorkerExited
from qwendesk.engine.watchdog import TemplateWatchdogLimits
from tests.engine.clients import MESSAGES, MODEL, OPTIONS, WORDS, answer_text, loaded


async def test_worker_that_ignores_cancel_is_killed(make):
    client = await loaded(make("ignores cancel", acknowledge_s=0.2))
    stream = client.generate(Generate(messages=MESSAGES, options=OPTIONS))
    items = []
    async for item in stream:
        items.append(item)
        await stream.cancel()
    assert isinstance(items[-1], EngineExit)
    assert "wasn't responding" in items[-1].sentence


async def test_worker_that_continues_too_long_after_a_cancel_is_killed(make):
    client = await loaded(make("template hangs", cancel_s=0.2, template=TemplateWatchdogLimits(time_s=1000)))
    stream = client.generate(Generate(messages=MESSAGES, options=OPTIONS))
    await stream.cancel()
    items = [item async for item in stream]
    assert isinstance(items[-1], EngineExit)
    assert "wasn't responding" in items[-1].sentence


async def test_cancelling_a_count_does_not_end_the_answer_in_progress(make):
    """The context sheet is closed while a long prompt is read; no time is left for the count to end."""
    client = await loaded(make("reads until another request is cancelled", acknowledge_s=0, cancel_s=0))
    stream = client.generate(Generate(messages=MESSAGES, options=OPTIONS))
    assert isinstance(await anext(aiter(stream)), PromptProgress)
    count = asyncio.create_task(client.ask(Measure(messages=MESSAGES, options=OPTIONS)))
    await asyncio.sleep(0)
    count.cancel()
    with pytest.raises(asyncio.CancelledError):
        await count
    rest = [item async for item in stream]
    assert isinstance(rest[-1], Finished)
    assert answer_text(rest) == WORDS


NO_PROGRESS_ALLOWED = {"acknowledge_s": 1000, "cancel_s": 1000, "load_stall_s": 0, "answer_stall_s": 0, "stop_s": 1000}


async def test_a_load_without_progress_is_cancelled_by_killing_the_process(make):
    client = make("load stalls", **NO_PROGRESS_ALLOWED)
    events = []
    client.subscribe(events.append)
    client.subscribe(lambda each: isinstance(each, LoadProgress) and asyncio.ensure_future(client.cancel_load()))
    failure = await client.load(MODEL)
    assert isinstance(failure, LoadFailure)
    assert failure.kind == "cancelled"
    assert WorkerExited(None) in events, "the user asked for it: no crash"
    assert isinstance(await client.probe(), Devices), "another worker starts"


async def test_a_load_is_cancelled_while_its_worker_does_not_start(make):
    client = make("silent", start_s=1000, **NO_PROGRESS_ALLOWED)
    load = asyncio.create_task(client.load(MODEL))
    while client.worker_pid is None:  # noqa: ASYNC110 nothing tells of the process alone
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    await client.cancel_load()
    assert isinstance(await load, LoadFailure)
    assert client.worker_pid is None


async def test_an_answer_without_progress_is_stopped_by_killing_the_process(make):
    client = await loaded(make("decode stalls", **NO_PROGRESS_ALLOWED))
    stream = client.generate(Generate(messages=MESSAGES, options=OPTIONS))
    items = []
    async for item in stream:
        items.append(item)
        await stream.cancel()
    assert isinstance(items[-1], EngineExit)
    assert "wasn't responding" in items[-1].sentence


@pytest.mark.parametrize("end", [WorkerClient.unload, WorkerClient.close])
async def test_ejecting_a_model_whose_decode_stalls_kills_the_process(make, end):
    client = await loaded(make("decode stalls", **NO_PROGRESS_ALLOWED))
    stream = client.generate(Generate(messages=MESSAGES, options=OPTIONS))
    pid = client.worker_pid
    assert isinstance(await anext(aiter(stream)), PromptProgress)
    await end(client)
    assert not psutil.pid_exists(pid)
