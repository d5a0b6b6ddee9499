"""Auto-tune with the real engine and the demo model, and with an engine whose speed a test wrote down."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from qwendesk.bench import auto_tune
from qwendesk.bench.auto_tune import AutoTune, TuneState
from qwendesk.bench.bench_runs import BenchRuns
from qwendesk.bench.tune_rules import best_confirmed
from qwendesk.bench.tune_text import result_sentence
from qwendesk.core import paths
from qwendesk.core.app_options import AppOptions
from qwendesk.core.benchmarks import SpeedTest
from qwendesk.core.devices import DeviceInfo
from qwendesk.core.failures import LoadFailure
from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.observed import Observed
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import Plan
from qwendesk.core.units import GIB
from qwendesk.engine.client import WorkerClient
from qwendesk.engine.contract import BenchClient
from qwendesk.engine.protocol import Allocation, Devices, LoadReport
from qwendesk.engines.engine_service import EngineService
from qwendesk.engines.load_decision import decide, facts_for
from qwendesk.engines.load_planner import LoadPlanner
from qwendesk.engines.measurements import Measurements
from qwendesk.settings.profiles import ProfilesService
from tests.fakes.bench import FakeBenchClient

DEMO = LoadOptions(model=str(paths.demo_model()), n_ctx=2048, devices=("none",), speculative="off")
CARD = DeviceInfo("CUDA0", "Card", "gpu", "CUDA", 24 * GIB, 22 * GIB)


class Clock:
    """Goes on by one second each time somebody looks."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.at_deadline: Callable[[], None] | None = None

    def __call__(self) -> float:
        self.now_s += 1.0
        return self.now_s

    def call_later(self, _seconds: float, call: Callable[[], None]) -> Callable[[], None]:
        self.at_deadline = call
        return self.cancel

    def cancel(self) -> None:
        self.at_deadline = None


class Watch:
    """The memory of a card that a test wrote down."""

    def __init__(self, *, has_spilled: bool) -> None:
        self.has_spilled, self.looks = has_spilled, 0

    async def look(self) -> None:
        self.looks += 1


def by_threads(options: LoadOptions, _test: SpeedTest) -> float:
    """The demo model is planned with one thread; two are faster here."""
    return {1: 1000.0, 2: 1500.0}.get(options.n_threads, 900.0)


class Desk:
    """Auto-tune on a PC with the demo model and with what a test wrote down."""

    def __init__(self, folder: Path, make_client: Callable[[], BenchClient]) -> None:
        self.client = WorkerClient()
        self.engine = EngineService(self.client, decide=decide)
        self.profiles = ProfilesService(folder / "profiles.json")
        self.planner = LoadPlanner(Observed(AppOptions(reserve_gb=1.0)), Measurements())
        self.clock = Clock()
        self.reloaded: list[str] = []
        self.noted: list[tuple[int, float]] = []
        self.watches: list[Watch] = []
        self.spills: Callable[[LoadReport], bool] = lambda _report: False
        self.runs = BenchRuns(self.engine, make_client, decide)
        self.tune = self.make()

    def make(self, longest_s: float = 400.0, make_plan: Callable[..., Plan | LoadFailure] | None = None) -> AutoTune:
        return AutoTune(
            self.runs,
            self.profiles,
            make_plan=make_plan or self.planner.plan,
            read_facts=read_facts,
            make_watch=self.watch,
            reload=self.reload,
            note_speed=self.note_speed,
            clock=self.clock,
            call_later=self.clock.call_later,
            longest_s=longest_s,
            test_s=0.02,
        )

    def watch(self, report: LoadReport, _devices: Sequence[DeviceInfo], _pid: int | None) -> Watch:
        self.watches.append(Watch(has_spilled=self.spills(report)))
        return self.watches[-1]

    async def reload(self, model: str) -> None:
        self.reloaded.append(model)

    async def note_speed(self, options: LoadOptions, tok_s: float) -> None:
        self.noted.append((options.n_threads, tok_s))

    async def run(self, options: LoadOptions = DEMO) -> TuneState:
        await self.tune.run(options)
        return self.tune.state.value

    async def close(self) -> None:
        await self.profiles.close()
        await self.engine.close()


def read_facts(options: LoadOptions) -> ModelFacts | None:
    files = facts_for(options)
    return None if isinstance(files, LoadFailure) else files[0]


@pytest_asyncio.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    made = Desk(tmp_path, WorkerClient)
    yield made
    await made.close()


@pytest.fixture
def speedy() -> FakeBenchClient:
    client = FakeBenchClient()
    client.speed = by_threads
    return client


@pytest_asyncio.fixture
async def made_up(tmp_path: Path, speedy: FakeBenchClient) -> AsyncIterator[Desk]:
    made = Desk(tmp_path, lambda: speedy)
    yield made
    await made.close()


async def test_the_demo_model_is_tuned_on_the_cpu(desk: Desk) -> None:
    desk.tune = desk.make(longest_s=200.0)

    state = await desk.run()

    assert state.failure == ""
    assert state.own is not None
    assert len(state.trials) > 2
    assert all(trial.speed is not None or trial.why_not for trial in state.trials)
    assert not state.is_running
    assert desk.watches == []  # there is no GPU to watch


async def test_the_fastest_number_of_threads_is_found_saved_and_used(made_up: Desk) -> None:
    made_up.profiles.save_changes(DEMO.model, {"n_ubatch": 256})

    state = await made_up.run()
    await made_up.tune.use()

    assert state.found is not None
    assert state.found.changes == {"n_threads": 2}
    assert made_up.profiles.applied(DEMO).n_threads == 2
    assert made_up.profiles.names(DEMO.model) == ("Auto-tuned", "Before auto-tune")
    assert made_up.reloaded == [DEMO.model]
    used = made_up.tune.state.value.used
    assert used is not None
    assert used.speed is not None
    assert made_up.noted == [(2, used.speed.decode.median)]
    made_up.profiles.use(DEMO.model, "Before auto-tune")
    assert made_up.profiles.changes(DEMO.model) == {"n_ubatch": 256}


async def test_what_the_planner_refuses_is_never_loaded(made_up: Desk, speedy: FakeBenchClient) -> None:
    def plan(options: LoadOptions, devices: Devices) -> Plan | LoadFailure:
        made = made_up.planner.plan(options, devices)
        assert not isinstance(made, LoadFailure)
        return msgspec.structs.replace(made, fits=made.options.n_threads == 1)

    made_up.tune = made_up.make(make_plan=plan)

    state = await made_up.run()

    assert {options.n_threads for options in speedy.loaded} == {1}
    assert any("memory" in trial.why_not for trial in state.trials)
    assert state.found is None


async def test_after_a_stop_the_context_is_saved_with_what_was_found(made_up: Desk) -> None:
    """Whether the planner would shorten it was not asked any more."""

    def stop_when_found(state: TuneState) -> None:
        if state.found is not None:
            made_up.tune.stop()

    made_up.tune.state.subscribe(stop_when_found)

    state = await made_up.run(msgspec.structs.replace(DEMO, n_ctx=0))
    await made_up.tune.use()

    assert state.plan is not None
    assert made_up.profiles.applied(DEMO).n_threads == 2
    assert made_up.profiles.changes(DEMO.model)["n_ctx"] == state.plan.options.n_ctx


async def test_a_stop_offers_the_best_so_far_though_it_was_measured_once(
    made_up: Desk, speedy: FakeBenchClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    measure = speedy.bench

    async def bench(test: SpeedTest, show: object = None) -> object:
        await asyncio.sleep(0)  # where a real engine is waited for, and a stop arrives
        return await measure(test)

    monkeypatch.setattr(speedy, "bench", bench)

    def stop_when_faster(state: TuneState) -> None:
        if any(trial.changes == {"n_threads": 2} and trial.speed is not None for trial in state.trials):
            made_up.tune.stop()

    made_up.tune.state.subscribe(stop_when_faster)

    state = await made_up.run()

    assert best_confirmed(state.trials) is state.own
    assert state.found is not None
    assert state.found.changes == {"n_threads": 2}
    assert result_sentence(state).startswith("Stopped after 2 of 9 settings. This is the best so far. ")
    await made_up.tune.use()
    assert made_up.profiles.applied(DEMO).n_threads == 2


async def test_settings_that_spill_are_not_tuned(made_up: Desk, speedy: FakeBenchClient) -> None:
    speedy.devices = (*speedy.devices, CARD)
    speedy.report = msgspec.structs.replace(speedy.report, allocations=(Allocation("CUDA0", weights_bytes=GIB),))
    made_up.spills = lambda _report: True

    state = await made_up.run()

    assert "spills with your settings" in state.failure
    assert len(state.trials) == 1


async def test_a_run_that_spills_does_not_count(made_up: Desk, speedy: FakeBenchClient) -> None:
    speedy.devices = (*speedy.devices, CARD)
    speedy.report = msgspec.structs.replace(speedy.report, allocations=(Allocation("CUDA0", weights_bytes=GIB),))
    made_up.spills = lambda report: report.options.n_threads == 2

    state = await made_up.run()

    assert made_up.watches
    assert all(watch.looks >= 2 for watch in made_up.watches)
    assert state.n_spilled == 1
    assert state.found is None


async def test_the_search_ends_with_its_time(made_up: Desk) -> None:
    made_up.tune = made_up.make(longest_s=60.0)

    state = await made_up.run()

    assert state.own is not None
    assert sum(trial.seconds for trial in state.trials) <= 60.0


async def test_the_deadline_ends_a_measurement_that_takes_too_long(made_up: Desk, speedy: FakeBenchClient) -> None:
    speedy.blocks_at = "text16"
    running = asyncio.create_task(made_up.run())
    await speedy.is_blocked.wait()
    assert made_up.clock.at_deadline is not None

    made_up.clock.at_deadline()
    state = await running

    assert not state.is_running
    assert state.failure == ""
    assert state.trials == ()


async def test_a_candidate_that_is_much_slower_is_stopped(
    made_up: Desk, speedy: FakeBenchClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two threads never end here."""
    monkeypatch.setattr(auto_tune, "_LEAST_LIMIT_S", 0.05)
    measure = speedy.bench

    async def bench(test: SpeedTest, show: object = None) -> object:
        if speedy.loaded[-1].n_threads == 2:
            await asyncio.Event().wait()
        return await measure(test)

    monkeypatch.setattr(speedy, "bench", bench)

    state = await made_up.run()

    slow = [trial for trial in state.trials if trial.changes == {"n_threads": 2}]
    assert [trial.why_not for trial in slow] == ["Much slower, so it was stopped."]
    assert len(state.trials) > 3
