"""Whoever measures may be cancelled at any moment: no engine is left, and the next measurement and question go on."""

import asyncio
import itertools
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from qwendesk.bench.auto_tune import AutoTune
from qwendesk.bench.bench_engine import BenchEngine
from qwendesk.bench.bench_runs import BenchRuns
from qwendesk.bench.compare import CompareService
from qwendesk.bench.comparison import ENDED, Column, PromptComparison
from qwendesk.bench.quality_service import QualityPlan, QualityService
from qwendesk.bench.records import BenchRecords
from qwendesk.bench.speed_service import SpeedService
from qwendesk.bench.speeds import SpeedPlan
from qwendesk.core.app_options import AppOptions
from qwendesk.core.observed import Observed
from qwendesk.core.options import LoadOptions
from qwendesk.engine.state import Phase
from qwendesk.engines.engine_service import EngineService
from qwendesk.engines.load_planner import LoadPlanner
from qwendesk.engines.measurements import Measurements
from qwendesk.settings.profiles import ProfilesService
from tests.bench.test_auto_tune import DEMO, Clock, Watch
from tests.cancelling import cancelled_at, public_coroutines
from tests.fakes.bench import FakeBenchClient
from tests.fakes.engine import FakeEngineClient, decide_by_default

MODEL = LoadOptions(model="/models/one.gguf")
SHORT = SpeedPlan(n_prompts=(16,), n_gens=(), depths=(0,), repeats=1, with_drafts=False, with_follow_ups=False)
Runs = Callable[[BenchRuns, Path], Coroutine[Any, Any, Any]]


async def measured(engine: BenchEngine) -> str:
    await engine.load(MODEL)
    return "done"


async def nothing_measured() -> str:
    await asyncio.sleep(0)
    return "done"


async def speed(runs: BenchRuns, folder: Path) -> None:
    service = SpeedService(runs, BenchRecords(folder / "speed.json"))
    await service.read()
    await service.choose(MODEL)
    try:
        await service.run(SHORT)
        for record in service.state.value.records:
            await service.row_of(record)
    finally:
        assert not service.state.value.is_running


async def quality(runs: BenchRuns, folder: Path) -> None:
    service, text = QualityService(runs, decide_by_default, folder / "quality.json"), folder / "text.txt"
    text.write_text("A text.")
    await service.read()
    service.choose(MODEL)
    try:
        await service.run(QualityPlan(text=str(text)))
    finally:
        assert not service.state.value.is_running


async def compare(runs: BenchRuns, _folder: Path) -> None:
    """Compare two models, neither of which the chat's engine has loaded."""

    async def options_for(model: Path) -> LoadOptions:
        return LoadOptions(model=str(model))

    engine = EngineService(FakeEngineClient(), decide=decide_by_default, options_for=options_for)
    service = CompareService(engine, FakeEngineClient(), runs)
    columns = (Column(model="/models/one.gguf"), Column(model="/models/two.gguf"))
    try:
        await service.run(PromptComparison(prompt="Which colour?", columns=columns))
    finally:
        assert not service.state.value.is_running
        assert all(result.phase in ENDED for result in service.state.value.results)
        await engine.close()


async def tune(runs: BenchRuns, folder: Path) -> None:
    """Measure the user's settings and a few others, until the clock says that the time is up."""
    profiles, clock = ProfilesService(folder / "profiles.json"), Clock()

    async def reload(_model: str) -> None:
        return

    service = AutoTune(
        runs, profiles, make_plan=LoadPlanner(Observed(AppOptions(reserve_gb=1.0)), Measurements()).plan,
        read_facts=lambda _options: None, make_watch=lambda *_: Watch(has_spilled=False), reload=reload, clock=clock,
        call_later=clock.call_later, longest_s=8.0, test_s=0.02,
    )  # fmt: skip
    try:
        await service.run(DEMO)
    finally:
        assert not service.state.value.is_running
        assert service.state.value.current is None
        await profiles.close()


RUNS: dict[str, Runs] = {
    "run": lambda runs, _: runs.run("speed", measured),
    "alone": lambda runs, _: runs.run_alone("pc", nothing_measured),
    "speed": speed,
    "quality": quality,
    "compare": compare,
    "tune": tune,
}


async def test_every_coroutine_of_the_measurements_is_tried() -> None:
    assert public_coroutines(BenchRuns) == {"run", "run_alone"}
    assert public_coroutines(SpeedService) == {"choose", "read", "row_of", "run"}
    assert public_coroutines(CompareService) == {"run"}
    assert public_coroutines(QualityService) == {"read", "run"}
    assert public_coroutines(AutoTune) == {"run", "use"}


@pytest.mark.parametrize("when_done", [False, True])
@pytest.mark.parametrize("is_stopped", [False, True])
@pytest.mark.parametrize("name", RUNS)
async def test_cancelled_at_each_await_it_leaves_no_engine(
    tmp_path: Path, name: str, is_stopped: bool, when_done: bool
) -> None:
    for number in itertools.count(1):
        clients: list[FakeBenchClient] = []

        def make_client(clients: list[FakeBenchClient] = clients) -> FakeBenchClient:
            clients.append(FakeBenchClient())
            return clients[-1]

        engine = EngineService(FakeEngineClient(), decide=decide_by_default, check=decide_by_default)
        runs = BenchRuns(engine, make_client, decide_by_default)
        await engine.load(MODEL)
        work = RUNS[name](runs, tmp_path)
        if is_stopped:
            unsubscribe = runs.running.subscribe(lambda _, runs=runs: asyncio.get_running_loop().call_soon(runs.stop))
        has_ended = await cancelled_at(number, work, when_done=when_done)
        if is_stopped:
            unsubscribe()
        await engine.wait_until_settled()
        assert not runs.running.value
        assert not any(client.is_running for client in clients)
        assert await runs.run("speed", measured) == "done"
        engine.reload_idle()
        await engine.wait_until_settled()
        assert engine.state.phase is Phase.READY
        await engine.close()
        if has_ended:
            break
