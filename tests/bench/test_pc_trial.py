"""A trial of made-up PCs: what the report has, and that no missing piece ends it."""

import asyncio
import shutil
from pathlib import Path

import pytest

from qwendesk.bench.bench_engine import BenchFailure
from qwendesk.bench.bench_runs import BenchRuns
from qwendesk.bench.pc_report import EngineRun, PcTrialReport
from qwendesk.bench.pc_trial import PcTrialState
from qwendesk.core import paths
from qwendesk.core.failures import LoadFailure
from qwendesk.core.observed import Observed
from qwendesk.core.options import LoadOptions
from qwendesk.core.units import GIB, MIB
from qwendesk.engine.protocol import Load
from tests.bench.pc import CPU_ENGINE, GPU_ENGINE, TrialPc
from tests.fakes.bench import FakeBenchClient
from tests.fakes.engine import ScriptedAnswer


def engine(report: PcTrialReport, name: str) -> EngineRun:
    return next(each for each in report.engines if each.name == name)


async def test_every_engine_is_measured_with_the_demo_model():
    pc = TrialPc()

    report = await pc.report()

    assert [each.name for each in report.engines] == ["vulkan", "cpu-avx2", "cuda"]
    assert engine(report, "cuda").reason == "This PC has no NVIDIA driver."
    for name in ("cpu-avx2", "vulkan"):
        (model,) = engine(report, name).models
        assert model.is_demo
        assert model.problems == ()
        assert [answer.is_expected for answer in model.answers] == [True] * 5
        assert [answer.has_picture for answer in model.answers] == [False] * 4 + [True]
        assert model.record is not None
        assert [row.name for row in model.record.rows] == [
            "pp512", "tg32", "pp512 @ d4096", "tg32 @ d4096", "pp512 @ d16384", "tg32 @ d16384",
        ]  # fmt: skip
        assert {row.values for row in model.record.rows} == {(1000.0,)}
        assert [reading.moment for reading in model.readings] == ["before", "loaded", "after answers", "unloaded"]
        assert model.worker_has_exited
        assert model.freed
    assert not report.was_stopped
    assert all(client.closed for _, client in pc.clients)
    assert pc.probe.is_closed


async def test_gpu_answers_are_compared_with_the_cpus():
    pc = TrialPc()

    def say_otherwise(name: str, client: FakeBenchClient) -> None:
        if name == "vulkan":
            client.answers[3] = ScriptedAnswer(text="QwenDesk is a desktop app!")

    pc.prepare = say_otherwise
    report = await pc.report()

    assert [answer.is_as_on_cpu for answer in engine(report, "cpu-avx2").models[0].answers] == [None] * 5
    same = [answer.is_as_on_cpu for answer in engine(report, "vulkan").models[0].answers]
    assert same == [True, True, False, True, True]


async def test_gpu_engine_alone_is_compared_with_itself_without_the_gpu():
    pc = TrialPc(GPU_ENGINE)

    report = await pc.report()

    on_cpu, on_gpu = engine(report, "vulkan").models
    assert (on_cpu.on_cpu, on_gpu.on_cpu) == (True, False)
    assert all(answer.is_as_on_cpu for answer in on_gpu.answers)
    loads = [request.options for request in pc.requests("vulkan") if isinstance(request, Load)]
    assert (loads[0].devices, loads[0].n_gpu_layers, loads[0].vision) == (("none",), 0, "cpu")


async def test_plan_dry_run_and_allocation_stand_side_by_side():
    pc = TrialPc(CPU_ENGINE)

    (model,) = (await pc.report()).engines[0].models

    weights = next(row for row in model.memory if row.part == "weights")
    assert (weights.device, weights.dry_run_bytes, weights.allocated_bytes) == ("CPU", 3 * MIB, 3 * MIB)
    assert weights.planned_bytes > 3 * MIB
    vision = next(row for row in model.memory if row.part == "vision")
    assert vision.dry_run_bytes is None


async def test_growing_shared_memory_is_a_sign_of_a_spill():
    pc = TrialPc(GPU_ENGINE, CPU_ENGINE)

    def spill(state: PcTrialState) -> None:
        if state.lines and "vulkan: demo, pp512" in state.lines[-1]:
            pc.probe.shared_bytes = GIB

    pc.trial.state.subscribe(spill)
    report = await pc.report()

    (sign,) = engine(report, "vulkan").models[0].spill
    assert (sign.device, sign.state, sign.excess_bytes) == ("Vulkan0", "spilling", GIB)


async def test_meter_reading_names_card_driver_and_the_workers_share():
    report = await TrialPc(GPU_ENGINE).report()

    (card,) = report.engines[0].models[0].readings[1].gpus
    assert (card.name, card.driver, card.used_bytes, card.worker_dedicated_bytes) == ("Fake Card", "1.2", 2 * GIB, GIB)
    assert report.gpus == ("Fake Card 1.2",)


async def test_failed_load_is_a_sentence_and_other_engines_go_on():
    pc = TrialPc()

    def refuse(name: str, client: FakeBenchClient) -> None:
        if name == "vulkan":
            client.load_result = LoadFailure("out_of_vram", "Not enough", "The buffer is too large.", ("last line",))

    pc.prepare = refuse
    report = await pc.report()

    (model,) = engine(report, "vulkan").models
    assert model.problems == ("vulkan: demo, load: The buffer is too large. last line",)
    assert model.answers == ()
    assert engine(report, "cpu-avx2").models[0].answers


async def test_crash_in_an_answer_loses_only_what_came_after_it():
    pc = TrialPc(CPU_ENGINE)

    def crash(_name: str, client: FakeBenchClient) -> None:
        client.answers[2] = ScriptedAnswer(text="2 + 3 = 5", crashes_after=1)

    pc.prepare = crash
    (model,) = (await pc.report()).engines[0].models

    assert [answer.question for answer in model.answers] == ["What is 2 + 3?"]
    assert "stopped unexpectedly" in model.problems[0]
    assert model.freed, "a fresh worker says what is free again"


async def test_unexpected_error_is_a_sentence(monkeypatch, caplog):
    pc = TrialPc(CPU_ENGINE)

    async def broken(*_arguments: object) -> None:
        raise ZeroDivisionError("no such probe")

    monkeypatch.setattr(FakeBenchClient, "bench", broken)
    (model,) = (await pc.report()).engines[0].models

    assert model.problems[0] == "cpu-avx2: demo, pp512: ZeroDivisionError: no such probe"
    assert "ZeroDivisionError" in caplog.text


async def test_own_models_that_fit_are_measured_without_their_names_and_words(tmp_path: Path):
    pc = TrialPc(CPU_ENGINE)
    mine = [tmp_path / f"my-secret-{number}.gguf" for number in range(3)]
    for path in mine:
        shutil.copy(paths.demo_model(), path)
    missing = LoadOptions(model=str(tmp_path / "gone.gguf"))
    pc.models = [missing, *(LoadOptions(model=str(path)) for path in mine)]

    report = await pc.report()

    loaded = [request.options.model for request in pc.requests("cpu-avx2") if isinstance(request, Load)]
    assert loaded[1:] == [str(mine[0]), str(mine[1])]
    own = report.engines[0].models[1:]
    assert [(model.is_demo, model.on_cpu) for model in own] == [(False, True), (False, True)]
    assert [model.architecture for model in own] == ["qwen35moe", "qwen35moe"]
    assert {answer.answer for model in own for answer in model.answers} == {""}
    assert [model.record.title for model in own if model.record is not None] == ["qwen35moe Q8_0"] * 2
    assert "secret" not in repr(report)


async def test_names_of_own_files_are_not_in_a_failure(tmp_path: Path):
    pc = TrialPc(CPU_ENGINE)
    secret = tmp_path / "my-secret-00001-of-00002.gguf"
    shutil.copy(paths.demo_model(), secret)
    pc.models = [LoadOptions(model=str(secret))]

    def refuse(_name: str, client: FakeBenchClient) -> None:
        line = f"failed to open {secret.with_name('my-secret-00002-of-00002.gguf')}"
        if pc.clients:  # not for the demo model, which comes first
            client.load_result = LoadFailure("other", "Not loaded", f"{secret.name} is incomplete.", (line,))

    pc.prepare = refuse
    report = await pc.report()

    (problem,) = report.engines[0].models[1].problems
    assert problem.startswith("cpu-avx2: own model 1, load: FILE is incomplete. failed to open ")
    assert "secret" not in repr(report)


async def test_own_models_can_be_left_out():
    pc = TrialPc(CPU_ENGINE)
    pc.models = [LoadOptions(model=str(paths.demo_model().parent / "other.gguf"))]

    report = await pc.report(0)

    assert len(report.engines[0].models) == 1


async def test_cancelled_task_closes_the_engine():
    pc = TrialPc()
    running = asyncio.create_task(pc.trial.run())
    pc.trial.state.subscribe(lambda state: running.cancel() if len(state.lines) > 5 else None)

    with pytest.raises(asyncio.CancelledError):
        await running

    assert all(client.closed for _, client in pc.clients)
    assert not pc.trial.state.value.is_running


async def test_pc_without_a_working_engine_has_a_report_too():
    broken = [each for each in TrialPc().trials if not each.usable]

    report = await TrialPc(*broken).report()

    assert [each.models for each in report.engines] == [()]


async def test_lines_tell_the_step_and_its_limit():
    pc = TrialPc(CPU_ENGINE)

    await pc.report()

    lines = pc.trial.state.value.lines
    assert lines[0].endswith("read the meters (at most 30 s)")
    assert any("cpu-avx2: demo, load (at most 120 s)" in line for line in lines)


async def test_depths_that_take_too_long_to_reach_are_left_out():
    pc = TrialPc(CPU_ENGINE)

    def be_slow(_name: str, client: FakeBenchClient) -> None:
        client.tok_s = 50.0

    pc.prepare = be_slow
    (model,) = (await pc.report()).engines[0].models

    assert model.record is not None
    assert {row.depth for row in model.record.rows} == {0}
    (problem,) = model.problems
    assert problem.startswith("cpu-avx2: demo: Depths from 4K are left out")


async def test_a_test_that_fails_ends_the_speeds_and_keeps_those_before_it():
    pc = TrialPc(CPU_ENGINE)

    def hang(_name: str, client: FakeBenchClient) -> None:
        client.blocks_at = "tg32 @ d4096"

    def stop(state: PcTrialState) -> None:
        if state.lines and "tg32 @ d4096" in state.lines[-1]:
            pc.trial.stop()

    pc.prepare = hang
    pc.trial.state.subscribe(stop)
    report = await pc.report()

    (model,) = report.engines[0].models
    assert report.was_stopped
    assert model.record is not None
    assert [row.name for row in model.record.rows] == ["pp512", "tg32", "pp512 @ d4096"]


async def test_a_second_measurement_is_refused_while_a_trial_runs():
    pc = TrialPc(CPU_ENGINE)
    runs = BenchRuns()
    refused: list[BenchFailure] = []

    async def nothing() -> None:
        return

    async def measure_too() -> None:
        result = await runs.run_alone("speed", nothing)
        assert result is not None
        refused.append(result)

    tasks: list[asyncio.Task[None]] = []

    def begin_too(name: str) -> None:
        if name:
            tasks.append(asyncio.create_task(measure_too()))

    unsubscribe = runs.running.subscribe(begin_too)
    pc.trial_with(runs)
    report = await pc.report()
    unsubscribe()
    await asyncio.gather(*tasks)

    assert [failure.title for failure in refused] == ["Busy"]
    assert not report.was_stopped


async def test_a_trial_is_refused_while_something_else_is_measured_and_keeps_the_report_before_it():
    pc = TrialPc(CPU_ENGINE)
    running = Observed("")
    pc.trial_with(BenchRuns(running=running))
    report = await pc.report()
    n_clients = len(pc.clients)

    running.set("speed")
    await pc.trial.run()

    state = pc.trial.state.value
    assert state.failure is not None
    assert "Another measurement" in state.failure.sentence
    assert (state.is_running, state.report, len(pc.clients)) == (False, report, n_clients)
