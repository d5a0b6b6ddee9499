"""A whole run with the real engine and the demo model."""

from collections.abc import AsyncIterator

import msgspec
import pytest_asyncio

from qwendesk.bench.bench_engine import BenchEngine
from qwendesk.bench.speeds import SpeedMeasurement, SpeedPlan, SpeedProgress
from qwendesk.bench.table import BenchRow, find_row
from qwendesk.core import paths
from qwendesk.core.failures import LoadFailure
from qwendesk.core.options import LoadOptions
from qwendesk.engine.client import WorkerClient
from qwendesk.engine.protocol import LoadReport
from qwendesk.engines.load_decision import decide

OPTIONS = LoadOptions(
    model=str(paths.demo_model()), mmproj=str(paths.demo_mmproj()), n_ctx=4096, n_threads=1, devices=("none",)
)
PLAN = SpeedPlan(depths=(0, 1024, 65_536), n_prompts=(64,), n_gens=(16,), repeats=2)


class Run:
    """What a run gave."""

    def __init__(self, engine: BenchEngine, plan: SpeedPlan) -> None:
        self.rows: list[BenchRow] = []
        self.notes: list[str] = []
        self.progress: list[SpeedProgress] = []
        self.measurement = SpeedMeasurement(
            engine, plan, add_row=self.rows.append, add_note=self.notes.append, show=self.progress.append
        )


@pytest_asyncio.fixture
async def engine() -> AsyncIterator[BenchEngine]:
    async with BenchEngine(WorkerClient, decide) as made:
        yield made


async def test_a_run_measures_depths_turns_pictures_and_drafts(engine: BenchEngine) -> None:
    run = Run(engine, PLAN)

    result = await run.measurement.run(OPTIONS)

    assert isinstance(result, LoadReport)
    plain = [(row.test, row.depth) for row in run.rows if row.drafts == "off"]
    texts = [(f"{name}16", depth) for depth in (0, 1024) for name in ("text", "edit")]
    assert set(plain) == {
        *((test, depth) for test in ("pp64", "tg16") for depth in (0, 1024)), *texts,
        ("turn 1", 2000), ("turn 2", 2000), ("new picture", 0), ("same picture", 0),
    }  # fmt: skip
    assert [(row.test, row.depth) for row in run.rows if row.drafts != "off"] == texts
    assert all(len(row.values) == 2 and min(row.values) > 0 for row in run.rows)
    assert len(run.rows) == run.progress[-1].n_tests
    assert any("64K" in note for note in run.notes)


async def test_second_questions_are_answered_sooner_than_first_ones(engine: BenchEngine) -> None:
    run = Run(engine, msgspec.structs.replace(PLAN, depths=(), with_drafts=False))

    await run.measurement.run(OPTIONS)

    first, second = (find_row(run.rows, f"turn {number}", 2000, with_drafts=False) for number in (1, 2))
    assert first is not None
    assert second is not None
    assert second.median < first.median / 2


async def test_depths_that_take_too_long_to_reach_are_left_out(engine: BenchEngine) -> None:
    plan = msgspec.structs.replace(
        PLAN, depths=(0, 2048), with_drafts=False, with_follow_ups=False, longest_fill_s=1e-6
    )
    run = Run(engine, plan)

    await run.measurement.run(OPTIONS)

    assert {row.depth for row in run.rows} == {0}
    assert any("2K" in note for note in run.notes)


async def test_a_model_that_does_not_load_ends_the_run(engine: BenchEngine) -> None:
    run = Run(engine, PLAN)

    result = await run.measurement.run(LoadOptions(model="/nowhere/none.gguf"))

    assert isinstance(result, LoadFailure)
    assert run.rows == []
