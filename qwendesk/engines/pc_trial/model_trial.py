"""Measures one model on one engine: plan, load, answers, speeds, memory, and whether unloading gives it back."""

import asyncio
import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePath
from typing import Any

import msgspec
import psutil

from qwendesk.core.failures import LoadFailure
from qwendesk.core.file_names import model_name
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.messages import ImagePart, Message, TextPart, text_message
from qwendesk.core.options import LoadOptions
from qwendesk.core.plan import Plan
from qwendesk.core.stats import AnswerStats
from qwendesk.core.translation import tr
from qwendesk.engine.contract import EngineClient
from qwendesk.engine.dry_run_protocol import Estimated
from qwendesk.engine.protocol import Delta, Devices, Finished, Generate, LoadReport, Measure, PromptProgress
from qwendesk.engines.exact_plan import Ask
from qwendesk.engines.load_decision import ModelFiles, facts_for, machine_now, plan_of, refusal
from qwendesk.engines.pc_trial.readings import SpillWatch, TrialMeter
from qwendesk.engines.pc_trial.report import (
    MEMORY_PARTS,
    FreedMemory,
    ModelRun,
    PlannedPart,
    SpeedAtDepth,
    TrialAnswer,
)
from qwendesk.engines.pc_trial.steps import StepFailed, TrialSteps, or_failed
from qwendesk.engines.self_test import draw_red_circle

# Tokens that are generated to measure a speed.
_GENERATED = 32
_LONGEST_ANSWER = 160
_SPARE_TOKENS = 64
_PARAGRAPH = "The video memory holds the weights of all layers, and the bandwidth decides how fast the model writes. "
# Paragraphs whose tokens are counted to know how many make a prompt of a depth.
_CALIBRATION = 32


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


async def ask_question(client: EngineClient, question: TrialQuestion, folder: Path) -> TrialAnswer:
    """Return the answer. Raises StepFailed if the engine gives none. The picture is drawn in `folder`."""
    message = text_message("user", question.text)
    if question.has_picture:
        message = Message("user", (await asyncio.to_thread(_picture, folder), TextPart(question.text)))
    options = _greedy(enable_thinking=question.thinking, max_tokens=_LONGEST_ANSWER)
    started_s = time.monotonic()
    reasoning, text, _ = await _ask(client, [message], options)
    answer = f"{reasoning}\n\n{text}" if reasoning else text
    return TrialAnswer(
        question=question.name,
        has_picture=question.has_picture,
        answer=answer,
        is_expected=all(words.lower() in answer.lower() for words in question.expected),
        is_as_on_cpu=None,
        seconds=round(time.monotonic() - started_s, 3),
    )


async def warm_up(client: EngineClient) -> None:
    """Generate one token. A GPU engine compiles its shaders now, which can take minutes the first time."""
    await _ask(client, [text_message("user", "Hello")], _greedy(enable_thinking=False, max_tokens=1))


async def measure_speed(client: EngineClient, report: LoadReport, depth: int) -> SpeedAtDepth:
    """Measure a prompt of about `depth` tokens and some generated tokens. Raises StepFailed if it can't be done."""
    if report.n_ctx < depth + _GENERATED + _SPARE_TOKENS:
        raise StepFailed(tr("The context of {0} tokens is too short.", report.n_ctx))
    ends = tuple(f"{token}=-inf" for token in report.end_tokens)
    options = _greedy(enable_thinking=False, max_tokens=_GENERATED, logit_bias=ends, cache_prompt=False)
    sample = text_message("user", _PARAGRAPH * _CALIBRATION)
    counted = or_failed(await client.ask(Measure(messages=(sample,), options=options)))
    n_paragraphs = max(1, depth * _CALIBRATION // max(counted.prompt_tokens, 1))
    _, _, stats = await _ask(client, [text_message("user", _PARAGRAPH * n_paragraphs)], options)
    generated = stats.reasoning_tokens + stats.answer_tokens
    return SpeedAtDepth(
        depth=depth,
        prompt_tokens=stats.prompt_tokens,
        prefill_tok_s=round(stats.reread_tokens / stats.prefill_s, 1) if stats.prefill_s > 0 else None,
        generated_tokens=generated,
        decode_tok_s=round(stats.decode_tok_s, 2) if stats.decode_tok_s > 0 else None,
    )


async def _ask(
    client: EngineClient, messages: Sequence[Message], options: GenerationOptions
) -> tuple[str, str, AnswerStats]:
    """Return reasoning, answer and statistics. Raises StepFailed if the engine fails or exits."""
    texts = {"reasoning": "", "answer": ""}
    async for item in client.generate(Generate(messages=tuple(messages), options=options)):
        if isinstance(item, Delta):
            texts[item.kind] += item.text
        elif isinstance(item, Finished):
            return texts["reasoning"], texts["answer"], item.stats
        elif not isinstance(item, PromptProgress):
            or_failed(item)
    raise StepFailed(tr("The answer didn't end."))


def _greedy(
    *, enable_thinking: bool, max_tokens: int, logit_bias: tuple[str, ...] = (), cache_prompt: bool = True
) -> GenerationOptions:
    return GenerationOptions(
        temperature=0.0,
        presence_penalty=0.0,
        enable_thinking=enable_thinking,
        max_tokens=max_tokens,
        logit_bias=logit_bias,
        cache_prompt=cache_prompt,
    )


def _picture(folder: Path) -> ImagePart:
    path = folder / "red-circle.png"
    if not path.is_file():
        draw_red_circle(path)
    return ImagePart(str(path), hashlib.sha256(path.read_bytes()).hexdigest())


# Tokens of the prompts whose speed is measured.
DEPTHS = (512, 4096, 16384)
_HEADER_S, _START_S, _DRY_RUN_S, _LOAD_S, _QUESTION_S, _UNLOAD_S = 20.0, 60.0, 30.0, 120.0, 60.0, 60.0
# Half of the whole trial. Mesa's software driver took 4 minutes to compile its shaders the first time.
_FIRST_TOKEN_S = 300.0
_DEMO_SPEED_S, _SPEED_S = 30.0, 75.0
# A speed is left out if its prompt alone would take more than this share of the limit.
_FULL_SHARE = 0.8


class ModelTrial:
    """Measures one model. `result` has everything measured so far, also if `measure` is cancelled."""

    def __init__(
        self,
        options: LoadOptions,
        *,
        label: str,
        is_demo: bool,
        on_cpu: bool,
        client: EngineClient,
        ask: Ask,
        steps: TrialSteps,
        meter: TrialMeter,
        reserve_bytes: int,
    ) -> None:
        """`label` names engine and model in lines and problems. `ask` is the engine's dry run."""
        if on_cpu:
            options = msgspec.structs.replace(options, devices=("none",), n_gpu_layers=0, vision="cpu")
        self._options = options
        self._label = label
        self._client = client
        self._ask = ask
        self._steps = steps
        self._meter = meter
        self._reserve_bytes = reserve_bytes
        self._pid: int | None = None
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
            self._compare(plan, dry_run, report)
            watch = SpillWatch(report, devices.devices, self._reserve_bytes)
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
        self._pid = welcome.pid or None
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
        self._change(
            plan_kind=plan.kind,
            n_ctx=decided.n_ctx,
            n_gpu_layers=str(decided.n_gpu_layers),
            n_cpu_moe=decided.n_cpu_moe,
            kv_type=decided.type_k,
        )
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
        self._change(load_s=round(result.load_s, 3), n_params=result.n_params, n_ctx=result.n_ctx)
        return result

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
            await self._watch(watch)

    def _compared(self, answer: TrialAnswer, cpu_answers: Mapping[str, str]) -> TrialAnswer:
        if not self.result.is_demo:
            # What a user's own model says is nobody's business; whether it saw the picture is enough.
            return msgspec.structs.replace(answer, answer="")
        known = cpu_answers.get(answer.question)
        return msgspec.structs.replace(answer, is_as_on_cpu=None if known is None else known == answer.answer)

    async def _measure_speeds(self, report: LoadReport, watch: SpillWatch) -> None:
        limit_s = _DEMO_SPEED_S if self.result.is_demo else _SPEED_S
        for depth in DEPTHS:
            name = tr("speed at {0} tokens", depth)
            last = self.result.speeds[-1].prefill_tok_s if self.result.speeds else None
            if last is not None and depth / last > _FULL_SHARE * limit_s:
                self._fail(tr("{0}, {1}: left out, because it would take too long.", self._label, name))
                continue
            measured = await self._run(name, limit_s, partial(measure_speed, self._client, report, depth))
            if measured is not None:
                self._change(speeds=(*self.result.speeds, measured))
            await self._watch(watch)

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

    async def _watch(self, watch: SpillWatch) -> None:
        watch.take(await self._meter.snapshot(self._pid), self._pid)

    async def _run(self, name: str, limit_s: float, work: Callable[[], Any]) -> Any:
        return await self._steps.run(f"{self._label}, {name}", limit_s, work, self._fail)

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
