"""The whole trial: every engine with the demo model, then a few of the user's models on the best engine."""

import asyncio
import datetime
import logging
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec
import psutil

from qwendesk.bench.bench_engine import BenchEngine, BenchFailure
from qwendesk.bench.bench_runs import BenchRuns
from qwendesk.bench.memory_watch import MemoryMeter
from qwendesk.bench.model_trial import ModelTrial, TrialSteps
from qwendesk.bench.pc_report import EngineRun, PcTrialReport, redacted
from qwendesk.core import paths
from qwendesk.core.app_options import AppOptions
from qwendesk.core.failures import LoadFailure
from qwendesk.core.observed import Observed
from qwendesk.core.options import DecidedOptions, LoadOptions
from qwendesk.core.translation import tr
from qwendesk.engine.contract import BenchClient
from qwendesk.engine.dry_run import ask_engine
from qwendesk.engine.dry_run_protocol import Estimated
from qwendesk.engine.engine_folders import library_environment
from qwendesk.engine.protocol import Devices
from qwendesk.engines.engine_choice import EngineChoice, every_engine_tried
from qwendesk.engines.exact_plan import Ask
from qwendesk.engines.load_decision import machine_now, plan_for, refusal
from qwendesk.engines.self_test import versions
from qwendesk.engines.trial import EngineTrial, trial_client
from qwendesk.hardware.snapshot import Snapshot
from qwendesk.hardware.snapshot_reader import SnapshotReader

_logger = logging.getLogger(__name__)
# How many of the user's own models are measured at most.
MOST_MODELS = 2
_FIND_ENGINES_S, _FIND_MODELS_S, _READ_S = 240.0, 60.0, 30.0
# Tries every engine of this PC.
FindEngines = Callable[[], Awaitable[EngineChoice]]
# Returns the user's models, largest first, each with its vision file.
FindModels = Callable[[], Awaitable[Sequence[LoadOptions]]]


class PcTrialState(msgspec.Struct, frozen=True):
    """What the section This PC of the Bench page shows."""

    is_running: bool = False
    lines: tuple[str, ...] = ()
    """Finished steps, a line for each."""
    failure: BenchFailure | None = None
    """Reason why the latest trial didn't begin; None if it did."""
    report: PcTrialReport | None = None
    """The result of the latest trial that began; None before it ends."""


def dry_run_of(trial: EngineTrial) -> Ask:
    """Return the dry run of one engine."""

    async def ask(options: DecidedOptions) -> Estimated:
        return await ask_engine(options, environment=library_environment(trial.engine))

    return ask


class PcTrial:
    """Runs one trial at a time. Call its methods on the event loop's thread."""

    def __init__(
        self,
        runs: BenchRuns,
        find_models: FindModels,
        *,
        app: Observed[AppOptions],
        find_engines: FindEngines = every_engine_tried,
        client_of: Callable[[EngineTrial], BenchClient] = lambda trial: trial_client(trial.engine),
        dry_run: Callable[[EngineTrial], Ask] = dry_run_of,
        make_reader: Callable[[], SnapshotReader] = SnapshotReader,
    ) -> None:
        self._runs = runs
        self._find_engines = find_engines
        self._find_models = find_models
        self._app = app
        self._client_of = client_of
        self._dry_run = dry_run
        self._make_reader = make_reader
        self.state = Observed(PcTrialState())

    async def run(self, most_models: int = MOST_MODELS) -> None:
        """Run a trial. `state` has its report, without the user's name and folders; a running trial goes on."""
        if self.state.value.is_running:
            return
        earlier = self.state.value.report
        self.state.set(PcTrialState(is_running=True))
        measured = _Measured(TrialSteps(self._say), MemoryMeter(self._make_reader()))
        failure: BenchFailure | None = None
        try:
            failure = await self._runs.run_alone("pc", lambda: self._measure(measured, most_models))
        except asyncio.CancelledError:
            self.state.set(PcTrialState())
            raise
        except Exception as error:
            # Between two steps, such as no space for the folder of the picture: what was measured is kept.
            _logger.exception("The trial ended early")
            measured.problems.append(f"{type(error).__name__}: {error}")
        finally:
            measured.meter.close()
        if failure is not None and not self.state.value.lines:
            self.state.set(PcTrialState(failure=failure, report=earlier))
        else:
            report = redacted(measured.report(was_stopped=failure is not None))
            self.state.update(is_running=False, report=report)

    def stop(self) -> None:
        """Stop the trial. Its report has what was measured until now."""
        if self.state.value.is_running:
            self._runs.stop()

    def _say(self, line: str) -> None:
        self.state.update(lines=(*self.state.value.lines, line))

    async def _measure(self, measured: "_Measured", most_models: int) -> None:
        steps, fail = measured.steps, measured.problems.append
        measured.snapshot = await steps.run(tr("read the meters"), _READ_S, lambda: measured.meter.snapshot(None), fail)
        choice = await steps.run(tr("try every engine"), _FIND_ENGINES_S, self._find_engines, fail)
        if choice is None:
            return
        measured.add_engines(choice.trials)
        usable = [trial for trial in choice.trials if trial.usable]
        demo = LoadOptions(model=str(paths.demo_model()), mmproj=str(paths.demo_mmproj()))
        with tempfile.TemporaryDirectory(prefix="qwendesk-trial-", ignore_cleanup_errors=True) as name:
            for trial, on_cpu in _demo_runs(usable):
                label = tr("{0} without a GPU", trial.name) if on_cpu and trial.backend != "cpu" else trial.name
                await self._measure_one(measured, trial, demo, tr("{0}: demo", label), Path(name), on_cpu=on_cpu)
            best = choice.current if choice.current in usable else next(iter(usable), None)
            if best is None or most_models <= 0:
                return
            found = await steps.run(tr("look for models"), _FIND_MODELS_S, self._find_models, fail) or ()
            chosen = await steps.run(
                tr("choose models that fit"), _FIND_MODELS_S, lambda: self._fitting(best, found, most_models), fail
            )
            for number, options in enumerate(chosen or (), 1):
                label = tr("{0}: own model {1}", best.name, number)
                await self._measure_one(measured, best, options, label, Path(name), on_cpu=best.backend == "cpu")

    async def _measure_one(
        self, measured: "_Measured", trial: EngineTrial, options: LoadOptions, label: str, folder: Path, *, on_cpu: bool
    ) -> None:
        is_demo = options.model == str(paths.demo_model())
        engine = BenchEngine(partial(self._client_of, trial))
        model = ModelTrial(
            options,
            label=label,
            is_demo=is_demo,
            on_cpu=on_cpu,
            engine=engine,
            ask=self._dry_run(trial),
            steps=measured.steps,
            meter=measured.meter,
            reserve_bytes=self._app.value.reserve_bytes,
        )
        try:
            await model.measure(folder, measured.cpu_answers)
        finally:
            measured.add_model(trial.name, model)
            await engine.close()
        if is_demo and on_cpu and not measured.cpu_answers:
            measured.cpu_answers = {each.question: each.answer for each in model.result.answers}

    async def _fitting(self, trial: EngineTrial, found: Sequence[LoadOptions], most: int) -> list[LoadOptions]:
        """Return the largest models that fit into the free memory without reading from disk repeatedly."""
        machine = machine_now(
            Devices(id=0, devices=trial.devices, cpu_features=()), reserve_bytes=self._app.value.reserve_bytes
        )
        chosen: list[LoadOptions] = []
        for options in found:
            plan = await asyncio.to_thread(plan_for, options, machine)
            if not isinstance(plan, LoadFailure) and plan.kind != "disk" and refusal(plan, options) is None:
                chosen.append(options)
            if len(chosen) == most:
                break
        return chosen


def _demo_runs(usable: Sequence[EngineTrial]) -> list[tuple[EngineTrial, bool]]:
    """Return each engine and whether it runs without a GPU: one on the CPU first, because the others are compared."""
    on_cpu = [(trial, True) for trial in usable if trial.backend == "cpu"]
    on_gpu = [(trial, False) for trial in usable if trial.backend != "cpu"]
    return [*(on_cpu or [(trial, True) for trial, _ in on_gpu[:1]]), *on_gpu]


class _Measured:
    """Collects what was measured, so that nothing is lost if the trial is stopped."""

    def __init__(self, steps: TrialSteps, meter: MemoryMeter) -> None:
        self.steps = steps
        self.meter = meter
        self.snapshot: Snapshot | None = None
        self.problems: list[str] = []
        self.cpu_answers: dict[str, str] = {}
        self._engines: dict[str, EngineRun] = {}

    def add_engines(self, trials: Sequence[EngineTrial]) -> None:
        for trial in trials:
            self._engines[trial.name] = EngineRun(
                name=trial.name,
                backend=trial.backend,
                is_usable=trial.usable,
                reason=trial.reason,
                devices=trial.devices,
            )

    def add_model(self, engine: str, model: ModelTrial) -> None:
        run = self._engines[engine]
        self._engines[engine] = msgspec.structs.replace(run, models=(*run.models, model.result))

    def report(self, *, was_stopped: bool) -> PcTrialReport:
        gpus = self.snapshot.gpus if self.snapshot is not None else ()
        return PcTrialReport(
            date=datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
            versions=versions(),
            ram_total_bytes=self.snapshot.system.ram_total_bytes if self.snapshot is not None else None,
            physical_cores=psutil.cpu_count(logical=False),
            gpus=tuple(" ".join(filter(None, (gpu.name or str(gpu.vendor), gpu.driver))) for gpu in gpus),
            notes=self.snapshot.notes if self.snapshot is not None else (),
            engines=tuple(self._engines.values()),
            problems=tuple(self.problems),
            was_stopped=was_stopped,
            seconds=round(self.steps.elapsed_s, 1),
        )
