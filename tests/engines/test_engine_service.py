import asyncio

import msgspec

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.failures import EngineExit, LoadFailure
from qwendesk.core.options import DecidedOptions, LoadOptions, decided_options
from qwendesk.core.units import GIB
from qwendesk.engine.protocol import Devices, Load, LoadReport, Unload
from qwendesk.engine.state import Phase
from qwendesk.engines.crash_counts import RestartLimit
from qwendesk.engines.engine_service import EngineService
from tests.fakes.engine import FakeEngineClient
from tools.hollow_model import write_hollow

OPTIONS = LoadOptions(model="/models/a.gguf")
OTHER = LoadOptions(model="/models/b.gguf")


def loads(client: FakeEngineClient) -> list[str]:
    return [request.options.model for request in client.requests if isinstance(request, Load)]


async def test_loading_never_appears_idle(desk):
    report = await desk.engine.load(OPTIONS)
    assert isinstance(report, LoadReport)
    assert desk.engine.state.report == report
    phases = [state.phase for state in desk.states]
    assert phases[0] is Phase.LOADING
    assert phases[-1] is Phase.READY
    assert Phase.IDLE not in phases
    assert all(state.requested == OPTIONS for state in desk.states)


async def test_the_decided_options_are_loaded():
    client = FakeEngineClient()
    engine = EngineService(client, decide=lambda options, devices: DecidedOptions(model=options.model, n_gpu_layers=7))
    report = await engine.load(OPTIONS)
    assert isinstance(report, LoadReport)
    assert report.options.n_gpu_layers == 7
    await engine.close()


async def test_a_model_that_cannot_be_loaded_does_not_reach_the_engine():
    failure = LoadFailure("truncated", "The file is incomplete", "It ends too early.")
    client = FakeEngineClient()
    engine = EngineService(client, decide=lambda options, devices: failure)
    assert await engine.load(OPTIONS) == failure
    assert engine.state.failure == failure
    assert engine.state.phase is Phase.OFF
    assert loads(client) == []
    await engine.close()


async def test_an_engine_that_does_not_start_is_a_failure(desk):
    desk.client.start_result = EngineExit(0xC0000135, "The engine did not find one of its libraries.")
    failure = await desk.engine.load(OPTIONS)
    assert isinstance(failure, LoadFailure)
    assert failure.kind == "missing_library"


async def test_another_model_gets_a_fresh_worker(desk):
    await desk.engine.load(OPTIONS)
    await desk.engine.load(OTHER)
    assert [type(request) for request in desk.client.requests if isinstance(request, Load | Unload)] == [
        Load, Unload, Load,
    ]  # fmt: skip
    assert desk.engine.state.report.options.model == OTHER.model


async def test_a_failed_load_frees_its_worker_and_keeps_its_failure(desk):
    desk.client.load_result = LoadFailure("out_of_vram", "Not enough video memory", "Use less.")
    failure = await desk.engine.load(OPTIONS)
    assert failure == desk.engine.state.failure == desk.client.load_result
    assert desk.engine.state.phase is Phase.OFF


async def test_step_that_is_offered_is_one_that_the_planner_allows_now(tmp_path):
    """Another program took memory between plan and load: a smaller cache would be refused, experts on the CPU not."""
    short = LoadFailure("out_of_vram", "Not enough video memory", "It doesn't fit.")
    client = FakeEngineClient()
    client.devices = (DeviceInfo("CUDA0", "RTX 3090", "gpu", "CUDA", 24 * GIB, 20 * GIB),)
    client.load_result = short
    asked: list[tuple[LoadOptions, int]] = []

    def decide(options: LoadOptions, devices: Devices) -> DecidedOptions | LoadFailure:
        (card,) = devices.devices
        asked.append((options, card.free_bytes or 0))
        if len(asked) == 1:  # the load itself: the other program starts now
            client.devices = (msgspec.structs.replace(card, free_bytes=8 * GIB),)
        elif options.n_cpu_moe != 12:
            return msgspec.structs.replace(short, nearest=msgspec.structs.replace(options, n_cpu_moe=12))
        return decided_options(options, n_gpu_layers="all", n_ctx=8192)

    model = write_hollow(tmp_path / "model.gguf", "35b")
    engine = EngineService(client, decide=decide, check=decide)
    assert await engine.load(LoadOptions(model=str(model))) == short
    step = await engine.wait_for_retry()
    assert step is not None
    assert step.options.n_cpu_moe == 12
    assert [free for _, free in asked] == [20 * GIB, 8 * GIB, 8 * GIB]
    assert engine.state.failure == short
    await engine.close()


async def test_failure_stays_when_the_worker_died_of_it(desk, tmp_path):
    """Some drivers end the process when video memory runs out: another worker lists what is free now."""
    short = LoadFailure("out_of_vram", "Not enough video memory", "It doesn't fit.")
    load = desk.client.load

    async def load_and_die(options: DecidedOptions) -> LoadReport | LoadFailure:
        desk.client.load_result = short
        result = await load(options)
        await desk.client.unload()
        return result

    desk.client.load = load_and_die
    assert await desk.engine.load(LoadOptions(model=str(write_hollow(tmp_path / "model.gguf", "35b")))) == short
    await desk.engine.wait_for_retry()
    failures = [state.failure for state in desk.states]
    assert failures[failures.index(short) :] == [short] * (len(failures) - failures.index(short))


async def test_latest_requested_model_is_loaded(desk):
    desk.client.load_delay_s = 0.01
    first = asyncio.create_task(desk.engine.load(OPTIONS))
    await desk.until(lambda: loads(desk.client))
    second = asyncio.create_task(desk.engine.load(LoadOptions(model="/models/never.gguf")))
    third = asyncio.create_task(desk.engine.load(OTHER))
    results = await asyncio.gather(first, second, third)
    assert [isinstance(result, LoadReport) for result in results] == [False, False, True]
    assert desk.engine.state.report.options.model == OTHER.model
    assert "/models/never.gguf" not in loads(desk.client)


async def test_crashed_engine_is_restarted_with_the_same_model(desk):
    await desk.engine.load(OPTIONS)
    desk.client.kill()
    assert desk.engine.state.phase is Phase.OFF
    assert desk.engine.state.engine_exit is not None
    await desk.engine.wait_until_settled()
    assert desk.engine.state.phase is Phase.READY
    assert loads(desk.client) == ["/models/a.gguf"] * 2


async def test_engine_that_crashes_repeatedly_is_not_restarted(desk):
    await desk.engine.load(OPTIONS)
    for _ in range(4):
        desk.client.kill()
        await desk.engine.wait_until_settled()
    assert desk.engine.state.phase is Phase.OFF
    assert "not started again" in desk.engine.state.engine_exit.sentence
    assert len(loads(desk.client)) == 4
    assert isinstance(await desk.engine.load(OPTIONS), LoadReport)


async def test_crash_while_loading_is_a_failed_load_without_a_restart(desk):
    desk.client.load_delay_s = 30.0
    load = asyncio.create_task(desk.engine.load(OPTIONS))
    await desk.until(lambda: loads(desk.client))
    desk.client.kill()
    assert isinstance(await load, LoadFailure)
    await desk.engine.wait_until_settled()
    assert len(loads(desk.client)) == 1


async def test_eject_frees_the_engine_and_does_not_restart_it(desk):
    await desk.engine.load(OPTIONS)
    await desk.engine.eject()
    await desk.engine.wait_until_settled()
    assert desk.engine.state.phase is Phase.OFF
    assert desk.engine.state.report is None
    assert desk.engine.state.engine_exit is None
    assert len(loads(desk.client)) == 1


async def test_restart_limit_counts_only_the_last_minute():
    limit = RestartLimit()
    assert [limit.allow(now) for now in (0, 1, 2, 3)] == [True, True, True, False]
    assert limit.allow(60.5)
    assert not limit.allow(60.6)
