"""A trial with the real engine: the demo model answers as the trial expects, and every figure is there."""

import msgspec

from qwendesk.bench import model_trial
from qwendesk.bench.bench_runs import BenchRuns
from qwendesk.bench.pc_report import report_page
from qwendesk.bench.pc_trial import PcTrial
from qwendesk.core.app_options import AppOptions
from qwendesk.core.observed import Observed
from qwendesk.core.paths import demo_model
from qwendesk.engines.engine_choice import INSTALLED, EngineChoice
from qwendesk.engines.trial import EngineTrial


async def installed_engine() -> EngineChoice:
    return EngineChoice((EngineTrial(name=INSTALLED, backend="cpu", usable=True),), INSTALLED)


async def no_models() -> tuple[()]:
    return ()


async def test_trial_of_the_installed_engine_finds_nothing_wrong(monkeypatch):
    short = msgspec.structs.replace(model_trial.SPEEDS, depths=(0, 128), n_prompts=(64,))
    monkeypatch.setattr(model_trial, "SPEEDS", short)
    for limit in ("_HEADER_S", "_START_S", "_DRY_RUN_S", "_LOAD_S", "_QUESTION_S", "_SPEED_S", "_UNLOAD_S"):
        monkeypatch.setattr(model_trial, limit, 170.0)  # a busy machine may be slow

    trial = PcTrial(BenchRuns(), no_models, app=Observed(AppOptions()), find_engines=installed_engine)
    await trial.run()
    report = trial.state.value.report

    assert report is not None
    assert report.problems == ()
    (model,) = report.engines[0].models
    assert model.problems == ()
    assert [(answer.question, answer.is_expected) for answer in model.answers if not answer.is_expected] == []
    assert len(model.answers) == 5
    assert model.record is not None
    assert [row.name for row in model.record.rows] == ["pp64", "tg32", "pp64 @ d128", "tg32 @ d128"]
    assert all(row.median > 0 for row in model.record.rows)
    weights = next(row for row in model.memory if row.part == "weights")
    # The plan leaves out the draft head, which only drafts read, but the whole file is mapped into memory.
    assert 0.98 * weights.planned_bytes <= weights.allocated_bytes <= demo_model().stat().st_size
    assert model.worker_has_exited
    assert "The engine process exited: yes" in report_page(report)
