"""Whoever awaits the engine service may be cancelled at any moment: nothing is left half done."""

import asyncio
import itertools
from collections.abc import Callable, Coroutine
from typing import Any

import psutil
import pytest

from qwendesk.core import paths
from qwendesk.core.failures import LoadFailure
from qwendesk.core.messages import text_message
from qwendesk.core.options import LoadOptions, decided_options
from qwendesk.engine.client import WorkerClient
from qwendesk.engine.protocol import Finished, Generate, LoadProgress, LoadReport
from qwendesk.engine.state import EngineEvent, Phase
from qwendesk.engines.engine_service import EngineService
from tests.cancelling import cancelled_at, public_coroutines
from tests.fakes.engine import FakeEngineClient, decide_by_default

OPTIONS, OTHER = LoadOptions(model="/models/a.gguf"), LoadOptions(model="/models/b.gguf")
METHODS: dict[str, Callable[[EngineService], Coroutine[Any, Any, Any]]] = {
    "load": lambda engine: engine.load(OTHER),
    "load_file": lambda engine: engine.load_file(paths.demo_model()),
    "load_demo": EngineService.load_demo,
    "load_mmproj": lambda engine: engine.load_mmproj(paths.demo_mmproj()),
    "reload": EngineService.reload,
    "reload_if_loaded": lambda engine: engine.reload_if_loaded(OPTIONS.model),
    "wait_for_retry": EngineService.wait_for_retry,
    "load_retry": EngineService.load_retry,
    "probe": EngineService.probe,
    "cancel_load": EngineService.cancel_load,
    "eject": EngineService.eject,
    "unload_idle": EngineService.unload_idle,
    "wait_until_settled": EngineService.wait_until_settled,
    "close": EngineService.close,
}


async def answers(client: Any) -> bool:
    items = [item async for item in client.generate(Generate(messages=(text_message("user", "Hi"),)))]
    return isinstance(items[-1], Finished)


async def settled(engine: EngineService) -> None:
    await engine.wait_until_settled()
    await engine.wait_for_retry()


async def test_every_coroutine_of_the_service_is_tried():
    assert set(METHODS) == public_coroutines(EngineService)


@pytest.mark.parametrize("when_done", [False, True])
@pytest.mark.parametrize("is_loaded", [False, True])
@pytest.mark.parametrize("name", METHODS)
async def test_cancelled_at_each_await_it_leaves_an_engine_that_answers(name, is_loaded, when_done):
    for number in itertools.count(1):
        client = FakeEngineClient()
        engine = EngineService(client, decide=decide_by_default)
        if is_loaded:
            await engine.load(OPTIONS)
        has_ended = await cancelled_at(number, METHODS[name](engine), when_done=when_done)
        if name == "close":
            while client.is_running:  # noqa: ASYNC110 - the fake has no event for it
                await asyncio.sleep(0)
        else:
            await settled(engine)
            state = engine.state
            assert state.phase in (Phase.OFF, Phase.IDLE, Phase.READY)
            assert (state.phase is Phase.READY) == client.is_loaded() == (state.report is not None)
            assert not state.is_saving_states
            assert client.is_loaded() or not client.is_running or name == "probe", "a load leaves no process"
            engine.reload_idle()
            await settled(engine)
            assert engine.state.report or isinstance(await engine.load(OPTIONS), LoadReport)
            assert await answers(client)
            await engine.close()
        assert not client.is_running
        if has_ended:
            break


async def test_a_model_that_answers_stays_if_another_is_given_up_before_it_is_unloaded(desk):
    """The states of chats are saved first. A crash after that loads the first model again."""
    await desk.engine.load(OPTIONS)
    saving, saved = asyncio.Event(), asyncio.Event()

    async def save() -> None:
        saving.set()
        await saved.wait()

    desk.engine.before_unload = save
    load = asyncio.create_task(desk.engine.load(OTHER))
    await saving.wait()
    load.cancel()
    await asyncio.wait({load})
    saved.set()
    await settled(desk.engine)
    assert desk.engine.state.report.options.model == OPTIONS.model
    desk.client.kill()
    await settled(desk.engine)
    assert desk.engine.state.report.options.model == OPTIONS.model


async def test_load_for_which_a_question_waits_goes_on_when_its_caller_is_cancelled(desk):
    desk.client.load_delay_s = 0.05
    load = asyncio.create_task(desk.engine.load(OPTIONS))
    await desk.until(lambda: desk.engine.state.phase is Phase.LOADING)
    question = asyncio.create_task(desk.engine.wait_until_settled())
    await desk.until(lambda: desk.engine.question_waits.value)
    load.cancel()
    await question
    assert desk.engine.state.report.options.model == OPTIONS.model


async def test_load_that_another_load_replaced_does_not_take_it_along(desk):
    desk.client.load_delay_s = 0.05
    first = asyncio.create_task(desk.engine.load(OPTIONS))
    await desk.until(lambda: desk.engine.state.phase is Phase.LOADING)
    second = asyncio.create_task(desk.engine.load(OTHER))
    await asyncio.sleep(0)
    first.cancel()
    assert isinstance(await second, LoadReport)
    assert desk.engine.state.report.options.model == OTHER.model


async def test_load_in_a_real_process_is_ended_whenever_its_caller_is_cancelled():
    client = WorkerClient()
    engine = EngineService(client, decide=lambda options, _: decided_options(options, n_threads=1, n_ctx=512))
    for event in ("Welcome", "LoadAsked", "LoadProgress", "template"):
        load = asyncio.create_task(engine.load_demo())

        def cancel(
            seen: EngineEvent, event: str = event, load: "asyncio.Task[LoadReport | LoadFailure]" = load
        ) -> None:
            if event in (type(seen).__name__, getattr(seen, "stage", "")):
                load.cancel()

        unsubscribe = client.subscribe(cancel)
        await asyncio.wait({load})
        unsubscribe()
        assert load.cancelled()
        await settled(engine)
        assert engine.state.phase is Phase.OFF
        assert engine.state.failure is None or engine.state.failure.kind == "cancelled"
        assert client.worker_pid is None
        assert not [each for each in psutil.Process().children() if "engine" in each.name()]
    assert isinstance(await engine.load_demo(), LoadReport)
    assert await answers(client)
    await engine.close()


async def test_client_says_that_a_load_has_ended_whose_caller_was_cancelled(make):
    client = make("loads slowly")
    events: list[EngineEvent] = []
    client.subscribe(events.append)
    load = asyncio.create_task(client.load(decided_options(OPTIONS)))
    while not any(isinstance(each, LoadProgress) for each in events):  # noqa: ASYNC110 - the client has no such event
        await asyncio.sleep(0)
    load.cancel()
    await asyncio.wait({load})
    assert [each.failure.kind for each in events if hasattr(each, "failure")] == ["cancelled"]
    assert not isinstance(await client.probe(), LoadFailure)
