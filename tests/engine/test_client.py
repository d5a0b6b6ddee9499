"""The client and its process, against a worker that misbehaves on order."""

import asyncio
import gc
import sys

import msgspec
import psutil
import pytest

from qwendesk.core.failures import EngineExit, LoadFailure
from qwendesk.core.messages import ImagePart
from qwendesk.engine.client import WorkerClient
from qwendesk.engine.process import CARD_SPIN, SHORT_SPIN
from qwendesk.engine.protocol import (
    Delta,
    Devices,
    Finished,
    Generate,
    Loaded,
    LoadProgress,
    LoadReport,
    Measure,
    Measured,
    PromptProgress,
    RequestFailed,
    Welcome,
)
from qwendesk.engine.state import LoadAsked, LoadFailed, WorkerExited, WorkerStarting
from qwendesk.engine.watchdog import TemplateWatchdogLimits
from tests.engine.clients import MESSAGES, MODEL, OPTIONS, WORDS, answer_text, loaded, whole
from tests.fakes import worker as fake_worker

KILLED = "ended by another program" if sys.platform == "win32" else "was killed, by another program or by your system"
"""Windows has no signals, and no system that kills for memory: who ends a process chooses its exit code."""


async def test_load_stream_measure_probe_and_unload(make):
    client = make()
    events = []
    client.subscribe(events.append)
    await loaded(client)
    items = await whole(client)
    assert isinstance(items[0], PromptProgress)
    assert answer_text(items) == WORDS
    assert isinstance(items[-1], Finished)
    measured = await client.ask(Measure(messages=MESSAGES, pictures=(ImagePart("a.png", "00"),), options=OPTIONS))
    assert isinstance(measured, Measured)
    assert measured.pictures[0].tokens == 64
    assert isinstance(await client.probe(), Devices)
    pid = client.worker_pid
    await client.unload()
    assert not psutil.pid_exists(pid)
    kinds = [type(each) for each in events]
    assert kinds[:3] == [WorkerStarting, Welcome, LoadAsked]
    assert LoadProgress in kinds
    assert Loaded in kinds
    assert Delta not in kinds
    assert Measured not in kinds, "counting tokens meanwhile must not look like the end of an answer"
    assert events[-1] == WorkerExited(None)


async def test_experts_in_ram_beside_a_card_get_a_worker_whose_threads_spin_longer(make, monkeypatch):
    monkeypatch.delenv("GOMP_SPINCOUNT", raising=False)
    client = make("has a card")
    with_experts_in_ram = msgspec.structs.replace(MODEL, n_cpu_moe=3)
    workers = []
    for options in (MODEL, MODEL, with_experts_in_ram, with_experts_in_ram, MODEL):
        assert isinstance(await client.load(options), LoadReport)
        welcome = await client.start()
        workers.append((client.worker_pid, welcome.system_info))
    pids = [pid for pid, _ in workers]
    assert [spin for _, spin in workers] == [SHORT_SPIN, SHORT_SPIN, CARD_SPIN, CARD_SPIN, SHORT_SPIN]
    assert [pids[0] == pids[1], pids[1] == pids[2], pids[2] == pids[3], pids[3] == pids[4]] == [True, False] * 2
    assert not any(psutil.pid_exists(pid) for pid in pids[:4])


async def test_stale_gpu_folders_do_not_reach_the_worker(make, monkeypatch):
    monkeypatch.setenv("CUDA_PATH", "/gone")
    monkeypatch.setenv("HIP_PATH", "/gone")
    welcome = await make().start()
    assert isinstance(welcome, Welcome)
    assert welcome.system_info == ""


async def test_requests_at_the_same_time_get_their_own_answers(make):
    client = await loaded(make())
    results = await asyncio.gather(
        *(whole(client) for _ in range(5)), client.ask(Measure(messages=MESSAGES, options=OPTIONS))
    )
    assert [answer_text(items) for items in results[:5]] == [WORDS] * 5
    assert isinstance(results[5], Measured)


async def test_a_line_of_5_mib_arrives_whole(make):
    client = await loaded(make("long line"))
    assert answer_text(await whole(client)) == fake_worker.LONG_TEXT


async def test_garbage_between_events_is_skipped(make):
    client = await loaded(make("garbage"))
    assert answer_text(await whole(client)) == WORDS
    assert "ggml: something a library printed" in client.engine_lines


async def test_log_of_the_worker_is_bounded(make):
    client = await loaded(make("chatters"))
    assert answer_text(await whole(client)) == WORDS
    assert len(client.engine_lines) <= 400
    assert max(map(len, client.engine_lines)) <= 2000
    assert any(line.startswith("line 1999 ") for line in client.engine_lines)


@pytest.mark.parametrize(
    ("manner", "words"),
    [
        ("killed", KILLED),
        ("half a line", "exit code 5"),
        ("other language", "doesn't understand"),
        ("hangs up", "closed its connection"),
    ],
)
async def test_exited_or_unintelligible_worker_ends_the_answer_at_once(make, manner, words):
    client = await loaded(make(manner))
    events = []
    client.subscribe(events.append)
    items = await whole(client)
    assert isinstance(items[-1], EngineExit)
    assert words in items[-1].sentence
    assert events[-1] == WorkerExited(items[-1])
    assert client.worker_pid is None


async def test_last_log_lines_are_kept(make):
    client = await loaded(make("killed"))
    items = await whole(client)
    assert "last words" in items[-1].engine_lines


async def test_killed_worker_ends_all_requests(make):
    client = await loaded(make("endless"))
    stream = client.generate(Generate(messages=MESSAGES, options=OPTIONS))
    measure = asyncio.create_task(client.ask(Measure(messages=MESSAGES, options=OPTIONS)))
    async for item in stream:
        if isinstance(item, Delta):
            break
    psutil.Process(client.worker_pid).kill()
    rest = [item async for item in stream]
    assert isinstance(rest[-1], EngineExit)
    assert isinstance(await measure, EngineExit)
    assert isinstance(await client.load(MODEL), LoadReport), "another worker starts"


async def test_cancel_ends_the_answer_with_that_reason(make):
    client = await loaded(make("endless"))
    stream = client.generate(Generate(messages=MESSAGES, options=OPTIONS))
    items = []
    async for item in stream:
        items.append(item)
        if isinstance(item, Delta):
            await stream.cancel()
    assert items[-1].stop_reason == "cancelled"
    await stream.cancel()


async def test_answer_now_reaches_the_worker(make):
    client = await loaded(make("endless"))
    stream = client.generate(Generate(messages=MESSAGES, options=OPTIONS))
    async for item in stream:
        if isinstance(item, Delta) and item.kind == "reasoning":
            await stream.answer_now()
        elif isinstance(item, Delta):
            await stream.cancel()
            break
    assert isinstance(item, Delta)
    assert item.kind == "answer"


async def test_an_abandoned_answer_is_cancelled(make):
    client = await loaded(make("endless"))
    async for item in client.generate(Generate(messages=MESSAGES, options=OPTIONS)):
        if isinstance(item, Delta):
            break
    gc.collect()
    assert isinstance(await client.probe(), Devices), "the worker is free again"


async def test_cancelling_the_reading_task_cancels_the_answer(make):
    client = await loaded(make("endless"))
    began = asyncio.Event()

    async def read() -> None:
        async for item in client.generate(Generate(messages=MESSAGES, options=OPTIONS)):
            if isinstance(item, Delta):
                began.set()

    task = asyncio.create_task(read())
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert isinstance(await client.probe(), Devices), "the worker is free again"


@pytest.mark.parametrize("manner", ["template hangs", "template grows"])
async def test_endless_template_is_named_as_the_reason(make, manner):
    limits = (
        TemplateWatchdogLimits(time_s=0.3)
        if manner == "template hangs"
        else TemplateWatchdogLimits(1000, 128 * 1024**2)
    )
    client = await loaded(make(manner, template=limits))
    items = await whole(client)
    assert isinstance(items[-1], EngineExit)
    assert "chat template" in items[-1].sentence
    assert "chat_template_file" in items[-1].sentence


async def test_slow_pictures_are_not_blamed_on_the_template(make):
    client = await loaded(make("decodes pictures", template=TemplateWatchdogLimits(time_s=0.3)))
    assert answer_text(await whole(client)) == WORDS


async def test_a_template_that_hangs_while_loading_fails_the_load(make):
    client = make("template hangs on load", template=TemplateWatchdogLimits(time_s=0.3))
    failure = await client.load(MODEL)
    assert isinstance(failure, LoadFailure)
    assert "chat template" in failure.sentence


async def test_a_refused_load_is_classified_and_published(make):
    client = make("refuses")
    events = []
    client.subscribe(events.append)
    failure = await client.load(MODEL)
    assert isinstance(failure, LoadFailure)
    assert failure.kind == "unsupported_architecture"
    assert events[-1] == LoadFailed(failure)


async def test_a_crash_while_loading_is_classified_by_its_last_lines(make):
    failure = await make("crashes on load").load(MODEL)
    assert isinstance(failure, LoadFailure)
    assert failure.kind == "out_of_vram"


async def test_a_load_can_be_cancelled(make):
    client = make("loads slowly")
    client.subscribe(lambda event: isinstance(event, LoadProgress) and asyncio.ensure_future(client.cancel_load()))
    failure = await client.load(MODEL)
    assert isinstance(failure, LoadFailure)
    assert failure.kind == "cancelled"


@pytest.mark.parametrize(
    ("manner", "words"),
    [
        ("dies at start", "Microsoft's Visual C++ runtime from https://"),
        ("silent", "didn't respond"),
        ("other version", "Install both again."),
    ],
)
async def test_worker_that_does_not_start_is_an_exit_with_a_reason(make, manner, words):
    client = make(manner, start_s=0.5 if manner == "silent" else 60.0)
    engine_exit = await client.start()
    assert isinstance(engine_exit, EngineExit)
    assert words in engine_exit.sentence
    assert client.worker_pid is None


async def test_a_missing_library_is_named_when_loading(make):
    failure = await make("dies at start").load(MODEL)
    assert isinstance(failure, LoadFailure)
    assert failure.kind == "missing_library"


async def test_missing_program_is_an_exit_with_a_reason():
    client = WorkerClient(("/no/such/program",))
    assert isinstance(await client.start(), EngineExit)
    failure = await client.load(MODEL)
    assert isinstance(failure, LoadFailure)
    assert "program is missing or blocked. An antivirus program may have done that" in failure.sentence
    await client.close()


async def test_worker_that_ignores_shutdown_is_killed(make):
    client = await loaded(make("deaf", stop_s=0.2))
    pid = client.worker_pid
    await client.close()
    assert not psutil.pid_exists(pid)


async def test_unload_while_answering_ends_the_stream(make):
    client = await loaded(make("endless"))
    stream = client.generate(Generate(messages=MESSAGES, options=OPTIONS))
    async for item in stream:
        if isinstance(item, Delta):
            break
    await client.unload()
    assert isinstance([item async for item in stream][-1], EngineExit)


async def test_new_worker_starts_after_the_old_one_has_exited(make):
    client = await loaded(make("deaf", stop_s=0.2))
    unload = asyncio.create_task(client.unload())
    await asyncio.sleep(0)
    assert isinstance(await client.load(MODEL), LoadReport)
    await unload


async def test_requests_without_a_worker_fail_at_once(make):
    client = make()
    assert isinstance(await client.ask(Measure(messages=MESSAGES, options=OPTIONS)), RequestFailed)
    assert [type(item) for item in await whole(client)] == [RequestFailed]
    await client.unload()
    await client.cancel_load()


async def test_a_closed_client_starts_nothing(make):
    client = make()
    await client.close()
    assert isinstance(await client.start(), EngineExit)


@pytest.mark.parametrize("has_process", [False, True])
async def test_cancelled_start_is_not_a_crash(make, has_process):
    client = make("silent")
    events: asyncio.Queue[object] = asyncio.Queue()
    client.subscribe(events.put_nowait)
    start = asyncio.create_task(client.start())
    assert isinstance(await events.get(), WorkerStarting)
    while has_process and client.worker_pid is None:  # noqa: ASYNC110 nothing tells of the process alone
        await asyncio.sleep(0)
    start.cancel()
    with pytest.raises(asyncio.CancelledError):
        await start
    assert await events.get() == WorkerExited(None)
