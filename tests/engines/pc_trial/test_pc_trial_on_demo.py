"""A trial with the real engine: the demo model answers as the trial expects, and every figure is there."""

from qwendesk.core.paths import demo_model
from qwendesk.engines.engine_choice import INSTALLED, EngineChoice
from qwendesk.engines.pc_trial import model_trial
from qwendesk.engines.pc_trial.report import report_page
from qwendesk.engines.pc_trial.service import PcTrial
from qwendesk.engines.trial import EngineTrial


async def installed_engine() -> EngineChoice:
    return EngineChoice((EngineTrial(name=INSTALLED, backend="cpu", usable=True),), INSTALLED)


async def no_models() -> tuple[()]:
    return ()


async def test_trial_of_the_installed_engine_finds_nothing_wrong(monkeypatch):
    monkeypatch.setattr(model_trial, "DEPTHS", (64, 128))
    for limit in ("_HEADER_S", "_START_S", "_DRY_RUN_S", "_LOAD_S", "_QUESTION_S", "_DEMO_SPEED_S", "_UNLOAD_S"):
        monkeypatch.setattr(model_trial, limit, 170.0)  # a busy machine may be slow

    report = await PcTrial(installed_engine, no_models).run()

    assert report.problems == ()
    (model,) = report.engines[0].models
    assert model.problems == ()
    assert [(answer.question, answer.is_expected) for answer in model.answers if not answer.is_expected] == []
    assert len(model.answers) == 5
    assert [speed.generated_tokens for speed in model.speeds] == [32, 32]
    assert all(speed.prefill_tok_s and speed.decode_tok_s for speed in model.speeds)
    weights = next(row for row in model.memory if row.part == "weights")
    # The plan leaves out the draft head, which only drafts read, but the whole file is mapped into memory.
    assert 0.98 * weights.planned_bytes <= weights.allocated_bytes <= demo_model().stat().st_size
    assert model.worker_has_exited
    assert "The engine process exited: yes" in report_page(report)
