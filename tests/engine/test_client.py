"""The client and its process, against a worker that misbehaves on order."""

import asyncio
import gc
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from qwendesk.core.failures import EngineDeath, LoadFailure
from qwendesk.core.messages import ImagePart, text_message
from qwendesk.core.options import GenerationOptions, LoadOptions
from qwendesk.engine.client import Patience, WorkerClient
from qwendesk.engine.protocol import (
    Delta,
    Devices,
    Finished,
    Loaded,
    LoadProgress,
    LoadReport,
    Measured,
    PromptProgress,
    RequestFailed,
    Welcome,
)
from qwendesk.engine.state import LoadAsked, LoadFailed, WorkerEnded, WorkerStarting
from qwendesk.engine.watchdog import TemplateLimits
from tests.fakes import worker as fake_worker

pytestmark = pytest.mark.asyncio
MESSAGES = (text_message("user", "Hi"),)
OPTIONS = GenerationOptions()
MODEL = LoadOptions(model="/models/a.gguf")
Make = Callable[..., WorkerClient]


@pytest_asyncio.fixture
async def make() -> AsyncIterator[Make]:
    """Makes clients of a fake worker of that manner, and closes them."""
    clients = []

    def make_one(manner: str = "well", **patience) -> WorkerClient:
        command = (sys.executable, str(Path(fake_worker.__file__)), *manner.split())
        client = WorkerClient(command, Patience(**patience))
        clients.append(client)
        return client

    yield make_one
    for client in clients:
        await client.close()


async def loaded(client: WorkerClient) -> WorkerClient:
    assert isinstance(await client.load(MODEL), LoadReport)
    return client


async def whole(client: WorkerClient) -> list:
    return [item async for item in client.generate(MESSAGES, OPTIONS)]


def answer_text(items: list) -> str:
    return "".join(item.text for item in items if isinstance(item, Delta))


WORDS = "".join(f"w{number} " for number in range(1, fake_worker.WORDS + 1))


async def test_load_stream_measure_probe_and_unload(make):
    client = make()
    news = []
    client.subscribe(news.append)
    await loaded(client)
    items = await whole(client)
    assert isinstance(items[0], PromptProgress)
    assert answer_text(items) == WORDS
    assert isinstance(items[-1], Finished)
    measured = await client.measure(MESSAGES, (ImagePart("a.png", "00"),), OPTIONS)
    assert isinstance(measured, Measured)
    assert measured.pictures[0].tokens == 64
    assert isinstance(await client.probe(), Devices)
    pid = client.worker_pid
    await client.unload()
    assert not psutil.pid_exists(pid)
    kinds = [type(each) for each in news]
    assert kinds[:3] == [WorkerStarting, Welcome, LoadAsked]
    assert LoadProgress in kinds
    assert Loaded in kinds
    assert Delta not in kinds
    assert Measured not in kinds, "counting tokens meanwhile must not look like the end of an answer"
    assert news[-1] == WorkerEnded(None)


async def test_stale_gpu_folders_do_not_reach_the_worker(make, monkeypatch):
    monkeypatch.setenv("CUDA_PATH", "/gone")
    monkeypatch.setenv("HIP_PATH", "/gone")
    welcome = await make().start()
    assert isinstance(welcome, Welcome)
    assert welcome.system_info == ""


async def test_requests_at_the_same_time_get_their_own_answers(make):
    client = await loaded(make())
    results = await asyncio.gather(*(whole(client) for _ in range(5)), client.measure(MESSAGES, (), OPTIONS))
    assert [answer_text(items) for items in results[:5]] == [WORDS] * 5
    assert isinstance(results[5], Measured)


async def test_a_line_of_5_mib_arrives_whole(make):
    client = await loaded(make("long line"))
    assert answer_text(await whole(client)) == fake_worker.LONG_TEXT


async def test_garbage_between_events_is_passed_over(make):
    client = await loaded(make("garbage"))
    assert answer_text(await whole(client)) == WORDS
    assert "ggml: something a library printed" in client.engine_lines


async def test_a_flood_on_standard_error_is_kept_within_bounds(make):
    client = await loaded(make("chatters"))
    assert answer_text(await whole(client)) == WORDS
    assert len(client.engine_lines) <= 400
    assert max(map(len, client.engine_lines)) <= 2000
    assert any(line.startswith("line 1999 ") for line in client.engine_lines)


@pytest.mark.parametrize(
    ("manner", "words"),
    [
        ("killed", "ended from outside (out of memory, or killed)"),
        ("half a line", "exit code 5"),
        ("other language", "does not understand"),
        ("hangs up", "closed its connection"),
    ],
)
async def test_a_worker_that_ends_or_talks_nonsense_ends_the_answer_at_once(make, manner, words):
    client = await loaded(make(manner))
    news = []
    client.subscribe(news.append)
    items = await whole(client)
    assert isinstance(items[-1], EngineDeath)
    assert words in items[-1].sentence
    assert news[-1] == WorkerEnded(items[-1])
    assert client.worker_pid is None


async def test_last_words_are_kept(make):
    client = await loaded(make("killed"))
    items = await whole(client)
    assert "last words" in items[-1].engine_lines


async def test_kill_minus_9_ends_everything_that_waits(make):
    client = await loaded(make("endless"))
    stream = client.generate(MESSAGES, OPTIONS)
    measure = asyncio.create_task(client.measure(MESSAGES, (), OPTIONS))
    async for item in stream:
        if isinstance(item, Delta):
            break
    psutil.Process(client.worker_pid).kill()
    rest = [item async for item in stream]
    assert isinstance(rest[-1], EngineDeath)
    assert isinstance(await measure, EngineDeath)
    assert isinstance(await client.load(MODEL), LoadReport), "another worker starts"


async def test_cancel_ends_the_answer_with_that_reason(make):
    client = await loaded(make("endless"))
    stream = client.generate(MESSAGES, OPTIONS)
    items = []
    async for item in stream:
        items.append(item)
        if isinstance(item, Delta):
            await stream.cancel()
    assert items[-1].stop_reason == "cancelled"
    await stream.cancel()


async def test_answer_now_reaches_the_worker(make):
    client = await loaded(make("endless"))
    stream = client.generate(MESSAGES, OPTIONS)
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
    async for item in client.generate(MESSAGES, OPTIONS):
        if isinstance(item, Delta):
            break
    gc.collect()
    assert isinstance(await client.probe(), Devices), "the worker is free again"


async def test_cancelling_the_reading_task_cancels_the_answer(make):
    client = await loaded(make("endless"))
    began = asyncio.Event()

    async def read() -> None:
        async for item in client.generate(MESSAGES, OPTIONS):
            if isinstance(item, Delta):
                began.set()

    task = asyncio.create_task(read())
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert isinstance(await client.probe(), Devices), "the worker is free again"


async def test_a_worker_that_ignores_cancel_is_ended(make):
    client = await loaded(make("ignores cancel", acknowledge_s=0.2))
    stream = client.generate(MESSAGES, OPTIONS)
    items = []
    async for item in stream:
        items.append(item)
        await stream.cancel()
    assert isinstance(items[-1], EngineDeath)
    assert "did not stop" in items[-1].sentence


async def test_a_worker_that_acknowledges_cancel_but_goes_on_for_too_long_is_ended(make):
    client = await loaded(make("template hangs", cancel_s=0.2, template=TemplateLimits(time_s=1000)))
    stream = client.generate(MESSAGES, OPTIONS)
    await stream.cancel()
    items = [item async for item in stream]
    assert isinstance(items[-1], EngineDeath)
    assert "did not stop" in items[-1].sentence


@pytest.mark.parametrize("manner", ["template hangs", "template grows"])
async def test_a_template_without_end_is_blamed(make, manner):
    limits = TemplateLimits(time_s=0.3) if manner == "template hangs" else TemplateLimits(1000, 128 * 1024**2)
    client = await loaded(make(manner, template=limits))
    items = await whole(client)
    assert isinstance(items[-1], EngineDeath)
    assert "chat template" in items[-1].sentence
    assert "chat_template_file" in items[-1].sentence


async def test_slow_pictures_are_not_blamed_on_the_template(make):
    client = await loaded(make("decodes pictures", template=TemplateLimits(time_s=0.3)))
    assert answer_text(await whole(client)) == WORDS


async def test_a_template_that_hangs_while_loading_fails_the_load(make):
    client = make("template hangs on load", template=TemplateLimits(time_s=0.3))
    failure = await client.load(MODEL)
    assert isinstance(failure, LoadFailure)
    assert "chat template" in failure.sentence


async def test_a_refused_load_is_classified_and_published(make):
    client = make("refuses")
    news = []
    client.subscribe(news.append)
    failure = await client.load(MODEL)
    assert isinstance(failure, LoadFailure)
    assert failure.kind == "unsupported_architecture"
    assert news[-1] == LoadFailed(failure)


async def test_a_crash_while_loading_is_classified_by_its_last_lines(make):
    failure = await make("crashes on load").load(MODEL)
    assert isinstance(failure, LoadFailure)
    assert failure.kind == "out_of_vram"


async def test_a_load_can_be_cancelled(make):
    client = make("loads slowly")
    client.subscribe(lambda news: isinstance(news, LoadProgress) and asyncio.ensure_future(client.cancel_load()))
    failure = await client.load(MODEL)
    assert isinstance(failure, LoadFailure)
    assert failure.kind == "cancelled"


@pytest.mark.parametrize(
    ("manner", "words"),
    [("dies at start", "exit code 1"), ("silent", "did not answer"), ("other version", "Install both again.")],
)
async def test_a_worker_that_does_not_start_is_a_death_with_a_reason(make, manner, words):
    client = make(manner, start_s=0.5 if manner == "silent" else 60.0)
    death = await client.start()
    assert isinstance(death, EngineDeath)
    assert words in death.sentence
    assert client.worker_pid is None


async def test_a_missing_library_is_named_when_loading(make):
    failure = await make("dies at start").load(MODEL)
    assert isinstance(failure, LoadFailure)
    assert failure.kind == "missing_library"


async def test_a_command_that_does_not_exist_is_a_death_too():
    client = WorkerClient(("/no/such/program",))
    assert isinstance(await client.start(), EngineDeath)
    await client.close()


async def test_a_deaf_worker_is_ended_by_force(make):
    client = await loaded(make("deaf", stop_s=0.2))
    pid = client.worker_pid
    await client.close()
    assert not psutil.pid_exists(pid)


async def test_unload_while_answering_ends_the_stream(make):
    client = await loaded(make("endless"))
    stream = client.generate(MESSAGES, OPTIONS)
    async for item in stream:
        if isinstance(item, Delta):
            break
    await client.unload()
    assert isinstance([item async for item in stream][-1], EngineDeath)


async def test_a_new_worker_waits_for_the_old_one_to_be_gone(make):
    client = await loaded(make("deaf", stop_s=0.2))
    unload = asyncio.create_task(client.unload())
    await asyncio.sleep(0)
    assert isinstance(await client.load(MODEL), LoadReport)
    await unload


async def test_nothing_is_asked_of_an_engine_that_is_off(make):
    client = make()
    assert isinstance(await client.measure(MESSAGES, (), OPTIONS), RequestFailed)
    assert [type(item) for item in await whole(client)] == [RequestFailed]
    await client.unload()
    await client.cancel_load()


async def test_a_closed_client_starts_nothing(make):
    client = make()
    await client.close()
    assert isinstance(await client.start(), EngineDeath)


@pytest.mark.parametrize("has_process", [False, True])
async def test_a_start_that_somebody_cancels_is_no_crash(make, has_process):
    client = make("silent")
    news: asyncio.Queue[object] = asyncio.Queue()
    client.subscribe(news.put_nowait)
    start = asyncio.create_task(client.start())
    assert isinstance(await news.get(), WorkerStarting)
    while has_process and client.worker_pid is None:  # noqa: ASYNC110 nothing tells of the process alone
        await asyncio.sleep(0)
    start.cancel()
    with pytest.raises(asyncio.CancelledError):
        await start
    assert await news.get() == WorkerEnded(None)
