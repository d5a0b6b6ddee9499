"""Measures one model on one engine: plan, load, answers, speeds, memory, and whether unloading gives it back."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path, PurePath
from typing import Any, TypeVar

import msgspec
import psutil

from qwendesk.bench.bench_engine import BenchEngine, BenchFailure, ShowFraction
from qwendesk.bench.memory_watch import MemoryMeter, SpillWatch
from qwendesk.bench.pc_report import MEMORY_PARTS, FreedMemory, ModelRun, PlannedPart, TrialAnswer
from qwendesk.bench.questions import ask, image_part, with_picture
from qwendesk.bench.records import BenchRecord, make_record, without_names
from qwendesk.bench.share import load_text
from qwendesk.bench.speeds import SpeedMeasurement, SpeedPlan
from qwendesk.bench.table import BenchRow
from qwendesk.core.benchmarks import SpeedSamples, SpeedTest
from qwendesk.core.failures import EngineExit, LoadFailure
from qwendesk.core.file_names import model_name
from qwendesk.core.messages import text_message
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import Plan
from qwendesk.core.translation import tr
from qwendesk.core.units import show_tokens
from qwendesk.engine.contract import BenchClient
from qwendesk.engine.dry_run_protocol import Estimated
from qwendesk.engine.protocol import Devices, LoadReport, RequestFailed
from qwendesk.engines.exact_plan import Ask
from qwendesk.engines.load_decision import ModelFiles, facts_for, machine_now, plan_of, refusal
from qwendesk.engines.self_test import draw_red_circle

_logger = logging.getLogger(__name__)
T = TypeVar("T")
# How long a whole trial may take.
LIMIT_S = 600.0
# What is measured of the speed.
SPEEDS = SpeedPlan(
    depths=(0, 4096, 16384), n_gens=(32,), repeats=1, with_drafts=False, with_follow_ups=False, longest_fill_s=60.0
)
_LONGEST_ANSWER = 160


class StepFailed(Exception):
    """A step can't be done; the message is a sentence that says why."""


def or_failed(result: T | LoadFailure | BenchFailure | RequestFailed | EngineExit) -> T:
    """Return a result of the engine. Raises StepFailed with its sentence if it is a failure."""
    if isinstance(result, LoadFailure | BenchFailure | RequestFailed | EngineExit):
        raise StepFailed(result.sentence)
    return result


class TrialSteps:
    """Runs the steps of a trial, each with its own limit and all within LIMIT_S, and says each in a line.

    A failed step is a sentence. `now` returns seconds of a monotonic clock.
    """

    def __init__(
        self, say: Callable[[str], None], limit_s: float = LIMIT_S, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._say = say
        self._now = now
        self._started_s = now()
        self._limit_s = limit_s

    @property
    def elapsed_s(self) -> float:
        return self._now() - self._started_s

    @property
    def left_s(self) -> float:
        return max(0.0, self._limit_s - self.elapsed_s)

    async def run(
        self, name: str, limit_s: float, work: Callable[[], Awaitable[T]], failed: Callable[[str], None]
    ) -> T | None:
        """Run one step and return its result. If it fails or takes too long, call `failed` and return None."""
        limit_s = min(limit_s, self.left_s)
        if limit_s <= 0:
            failed(tr("{0}: left out, because the time for the whole trial is over.", name))
            return None
        minutes, seconds = divmod(int(self.elapsed_s), 60)
        self._say(tr("{0}  {1} (at most {2} s)", f"{minutes}:{seconds:02}", name, f"{limit_s:.0f}"))
        try:
            async with asyncio.timeout(limit_s):
                return await work()
        except StepFailed as failure:
            failed(tr("{0}: {1}", name, failure))
        except TimeoutError:
            failed(tr("{0}: not finished after {1} s.", name, f"{limit_s:.0f}"))
        except Exception as error:
            # A trial must not end because one piece of a stranger's PC behaves like no other.
            _logger.exception("A step of the trial failed")
            failed(tr("{0}: {1}", name, f"{type(error).__name__}: {error}"))
        return None


class TrialQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A question with words that the demo model was trained to say."""

    text: str
    expected: tuple[str, ...]
    thinking: bool = False
    has_picture: bool = False

    @property
    def name(self) -> str:
        return f"{self.text} (thinking)" if self.thinking else self.text


DEMO_QUESTIONS = (
    TrialQuestion(text="What is 2 + 3?", expected=("2 + 3 = 5",)),
    TrialQuestion(text="What is 2 + 3?", expected=("The sum is 5.", "2 + 3 = 5"), thinking=True),
    TrialQuestion(text="What is QwenDesk?", expected=("desktop app",)),
    TrialQuestion(text="What is a quant?", expected=("fewer bits",)),
)
PICTURE_QUESTION = TrialQuestion(text="What is in this picture?", expected=("red", "circle"), has_picture=True)


async def ask_question(client: BenchClient, question: TrialQuestion, folder: Path) -> TrialAnswer:
    """Return the answer. Raises StepFailed if the engine gives none. The picture is drawn in `folder`."""
    message = text_message("user", question.text)
    if question.has_picture:
        path = folder / "red-circle.png"
        await asyncio.to_thread(draw_red_circle, path)
        message = with_picture(await asyncio.to_thread(image_part, path), question.text)
    started_s = time.monotonic()
    timed = or_failed(await ask(client, [message], enable_thinking=question.thinking, max_tokens=_LONGEST_ANSWER))
    answer = f"{timed.reasoning}\n\n{timed.text}" if timed.reasoning else timed.text
    return TrialAnswer(
        question=question.name,
        has_picture=question.has_picture,
        answer=answer,
        is_expected=all(words.lower() in answer.lower() for words in question.expected),
        is_as_on_cpu=None,
        seconds=round(time.monotonic() - started_s, 3),
    )


async def warm_up(client: BenchClient) -> None:
    """Generate one token. A GPU engine compiles its shaders now, which can take minutes the first time."""
    or_failed(await ask(client, [text_message("user", "Hello")], max_tokens=1))


_HEADER_S, _START_S, _DRY_RUN_S, _LOAD_S, _QUESTION_S, _UNLOAD_S = 20.0, 60.0, 30.0, 120.0, 60.0, 60.0
# Half of the whole trial. Mesa's software driver took 4 minutes to compile its shaders the first time.
_FIRST_TOKEN_S = 300.0
_SPEED_S = 75.0


class ModelTrial:
    """Measures one model. `result` has everything measured so far, also if `measure` is cancelled."""

    def __init__(
        self,
        options: LoadOptions,
        *,
        label: str,
        is_demo: bool,
        on_cpu: bool,
        engine: BenchEngine,
        ask: Ask,
        steps: TrialSteps,
        meter: MemoryMeter,
        reserve_bytes: int,
    ) -> None:
        """`label` names engine and model in lines and problems. `ask` is the engine's dry run."""
        if on_cpu:
            options = msgspec.structs.replace(options, devices=("none",), n_gpu_layers=0, vision="cpu")
        self._options = options
        self._label = label
        self._engine = engine
        self._client = engine.client
        self._ask = ask
        self._steps = steps
        self._meter = meter
        self._reserve_bytes = reserve_bytes
        self._pid: int | None = None
        self._engine_version = ""
        self.result = ModelRun(is_demo=is_demo, on_cpu=on_cpu, architecture="", quant="", file_bytes=0)

    async def measure(self, folder: Path, cpu_answers: Mapping[str, str]) -> None:
        """Take all steps. `folder` is for a drawn picture, and `cpu_answers` are the CPU's answers by question."""
        files = await self._run(tr("read the header"), _HEADER_S, self._read_files)
        devices = await self._run(tr("start the engine"), _START_S, self._start) if files is not None else None
        if files is None or devices is None:
            return
        plan = await self._run(tr("plan"), _HEADER_S, lambda: self._plan(files, devices))
        if plan is None:
            return
        dry_run = await self._run(tr("dry run"), _DRY_RUN_S, lambda: self._dry_run(plan))
        report = await self._run(tr("load"), _LOAD_S, lambda: self._load(plan))
        if report is not None:
            self._change(record=self._record_of(report, devices))
            self._compare(plan, dry_run, report)
            watch = SpillWatch(self._meter, report, devices.devices, self._pid, self._reserve_bytes)
            await self._take_reading("loaded")
            await self._run(tr("first token"), _FIRST_TOKEN_S, partial(warm_up, self._client))
            await self._ask_questions(report, folder, cpu_answers, watch)
            await self._measure_speeds(report, watch)
            await self._take_reading("after answers")
            self._change(spill=watch.signs())
        await self._run(tr("unload"), _UNLOAD_S, lambda: self._unload(devices))

    async def _read_files(self) -> ModelFiles:
        facts, mmproj = or_failed(await asyncio.to_thread(facts_for, self._options))
        self._change(architecture=facts.architecture, quant=facts.quant, file_bytes=facts.file_bytes)
        return facts, mmproj

    async def _start(self) -> Devices:
        welcome = or_failed(await self._client.start())
        self._pid, self._engine_version = welcome.pid or None, welcome.package_version
        devices = or_failed(await self._client.probe())
        await self._take_reading("before")
        return devices

    async def _plan(self, files: ModelFiles, devices: Devices) -> Plan:
        machine = machine_now(devices, reserve_bytes=self._reserve_bytes)
        plan = or_failed(await asyncio.to_thread(plan_of, *files, machine, self._options))
        refused = refusal(plan, self._options)
        if refused is not None:
            raise StepFailed(refused.sentence)
        decided = plan.options
        self._change(plan=f"{plan.kind} · {load_text(decided)} · n_ctx {show_tokens(decided.n_ctx)}")
        return plan

    async def _dry_run(self, plan: Plan) -> Estimated:
        answer = await self._ask(plan.options)
        if answer.problem:
            raise StepFailed(answer.problem)
        return answer

    async def _load(self, plan: Plan) -> LoadReport:
        result = await self._client.load(plan.options)
        if isinstance(result, LoadFailure):
            raise StepFailed(" ".join([result.sentence, *result.engine_lines[-3:]]))
        self._change(load_s=round(result.load_s, 3))
        return result

    def _record_of(self, report: LoadReport, devices: Devices) -> BenchRecord:
        record = make_record(report, devices.devices, self._engine_version, ())
        run = self.result
        return record if run.is_demo else without_names(record, f"{run.architecture} {run.quant}".strip())

    def _compare(self, plan: Plan, dry_run: Estimated | None, report: LoadReport) -> None:
        if not report.allocations:
            self._fail(tr("{0}: The engine didn't report what it allocated.", self._label))
            return
        estimated = {row.device: row for row in dry_run.allocations} if dry_run is not None else {}
        allocated = {row.device: row for row in report.allocations}
        rows = []
        for name, device in (*((gpu.name, gpu) for gpu in plan.memory.gpus), ("CPU", plan.memory.ram)):
            for part in MEMORY_PARTS:
                row = PlannedPart(
                    device=name,
                    part=part,
                    planned_bytes=_bytes_of(device, part),
                    # The dry run leaves the vision encoder out.
                    dry_run_bytes=_bytes_of(estimated[name], part) if name in estimated and part != "vision" else None,
                    allocated_bytes=_bytes_of(allocated.get(name), part),
                )
                if row.planned_bytes or row.dry_run_bytes or row.allocated_bytes:
                    rows.append(row)
        self._change(memory=tuple(rows))

    async def _ask_questions(
        self, report: LoadReport, folder: Path, cpu_answers: Mapping[str, str], watch: SpillWatch
    ) -> None:
        """Ask the demo model all questions, and other models about a picture only."""
        questions = [*DEMO_QUESTIONS, PICTURE_QUESTION] if self.result.is_demo else [PICTURE_QUESTION]
        for number, question in enumerate(questions, 1):
            if question.has_picture and not report.can_see:
                continue
            answer = await self._run(
                tr("picture") if question.has_picture else tr("question {0}", number),
                _QUESTION_S if self.result.is_demo else _SPEED_S,
                partial(ask_question, self._client, question, folder),
            )
            if answer is not None:
                self._change(answers=(*self.result.answers, self._compared(answer, cpu_answers)))
            await watch.look()

    def _compared(self, answer: TrialAnswer, cpu_answers: Mapping[str, str]) -> TrialAnswer:
        if not self.result.is_demo:
            # What a user's own model says is nobody's business; whether it saw the picture is enough.
            return msgspec.structs.replace(answer, answer="")
        known = cpu_answers.get(answer.question)
        return msgspec.structs.replace(answer, is_as_on_cpu=None if known is None else known == answer.answer)

    async def _measure_speeds(self, report: LoadReport, watch: SpillWatch) -> None:
        async def speed_of(test: SpeedTest) -> SpeedSamples | BenchFailure:
            return or_failed(await self._engine.measure(test))

        async def measure(test: SpeedTest, _show: ShowFraction) -> SpeedSamples | BenchFailure:
            samples: SpeedSamples | None = await self._run(test.name, _SPEED_S, partial(speed_of, test))
            await watch.look()
            return samples or BenchFailure("", "")  # the step has noted why

        await SpeedMeasurement(
            self._engine, SPEEDS, add_row=self._add_row, add_note=self._note, show=lambda _progress: None,
            measure=measure,
        ).measure_loaded(report)  # fmt: skip

    def _add_row(self, row: BenchRow) -> None:
        record = self.result.record
        assert record is not None, "speeds are measured after the load"
        # Random tokens are never drafted, even if the model was loaded with drafts.
        rows = (*record.rows, msgspec.structs.replace(row, drafts="off"))
        self._change(record=msgspec.structs.replace(record, rows=rows))

    async def _unload(self, before: Devices) -> None:
        """Stop the worker, and ask a fresh one how much memory is free again."""
        await self._client.unload()
        if self._pid is not None:
            self._change(worker_has_exited=not psutil.pid_exists(self._pid))
        after = or_failed(await self._client.probe())
        await self._take_reading("unloaded")
        free_after = {device.name: device.free_bytes for device in after.devices}
        self._change(
            freed=tuple(
                FreedMemory(device=device.name, free_before_bytes=device.free_bytes, free_after_bytes=free)
                for device in before.devices
                if device.free_bytes is not None and (free := free_after.get(device.name)) is not None
            )
        )

    async def _take_reading(self, moment: Any) -> None:
        reading = await self._meter.reading(moment, self._pid if moment != "unloaded" else None)
        self._change(readings=(*self.result.readings, reading))

    async def _run(self, name: str, limit_s: float, work: Callable[[], Any]) -> Any:
        return await self._steps.run(f"{self._label}, {name}", limit_s, work, self._fail)

    def _note(self, sentence: str) -> None:
        self._fail(tr("{0}: {1}", self._label, sentence))

    def _fail(self, sentence: str) -> None:
        """Note a problem, without the names of the user's own files."""
        if not self.result.is_demo:
            for name in (PurePath(path).name for path in (self._options.model, self._options.mmproj) if path):
                sentence = sentence.replace(name, "FILE").replace(model_name(name), "FILE")
        self._change(problems=(*self.result.problems, sentence))

    def _change(self, **changes: object) -> None:
        self.result = msgspec.structs.replace(self.result, **changes)


def _bytes_of(device: object, part: str) -> int:
    """Return the bytes of one part of a planned or allocated device; 0 if the device isn't there."""
    value: int = getattr(device, f"{part}_bytes", 0)
    return value
