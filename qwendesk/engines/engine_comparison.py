"""Compares another engine with the one in use: what each answers with the demo model, and how fast.

The demo model was trained on these questions, so an engine that computes as it should gives the expected words.
"""

import asyncio
import hashlib
import json
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import msgspec

from qwendesk.core import paths
from qwendesk.core.benchmarks import SpeedSamples, SpeedTest
from qwendesk.core.engine_manifest import EngineFolder
from qwendesk.core.failures import EngineExit, LoadFailure
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.messages import ImagePart, Message, TextPart, text_message
from qwendesk.core.number_format import show_decimal
from qwendesk.core.options import LoadOptions, decided_options
from qwendesk.core.translation import mark, tr
from qwendesk.core.units import show_rate
from qwendesk.engine.contract import BenchClient
from qwendesk.engine.protocol import Benched, CallDelta, Called, Delta, Finished, Generate, RequestFailed, SaveState
from qwendesk.engines.self_test import Check, draw_red_circle, timed
from qwendesk.engines.trial import exit_reason, trial_client

# Loading and all questions, on a slow PC whose driver compiles the engine's code first.
_LONGEST_S = 1800.0
_CONTEXT = 2048
_SUM, _SUM_ANSWER, _SUM_THOUGHT = "What is 2 + 3?", "2 + 3 = 5", "The sum is 5."
# Its answer is long enough for drafts.
_LONG = "What is VRAM spill?"
# The states of shorter chats aren't kept.
_NOTES = "Experts are stored in RAM, and attention stays on the card. " * 40
_TOOL = "current_time"
_TOOLS = (json.dumps({"type": "function", "function": {"name": _TOOL, "parameters": {"type": "object"}}}),)
_CHAT = "comparison"
_MOST_STATE_BYTES = 1 << 30
_SPEEDS = (SpeedTest(n_prompt=256, repeats=3), SpeedTest(n_gen=64, repeats=3))
# Differences below this are within what two runs of one engine differ by (docs/measurements.md).
_SAME_SPEED = 0.05


class EngineFindings(msgspec.Struct, frozen=True, kw_only=True):
    """What an engine answered, and how fast."""

    checks: tuple[Check, ...]
    answers: tuple[str, ...] = ()
    """The text of each answer, reasoning included, in the order of the checks."""
    prompt_tok_s: float = 0.0
    """Tokens a second; 0 if they weren't measured."""
    answer_tok_s: float = 0.0

    @property
    def failed(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if not check.passed)


class EngineComparison(msgspec.Struct, frozen=True):
    """The findings about the engine in use and another one."""

    before: EngineFindings
    after: EngineFindings

    @property
    def problem(self) -> str:
        """What the other engine can't do that the one in use can, as a sentence; "" if nothing."""
        could = {check.name for check in self.before.checks if check.passed}
        lost = next((check for check in self.after.failed if check.name in could or not self.before.checks), None)
        return tr("It failed the test “{0}”: {1}", tr(lost.name), lost.detail) if lost is not None else ""

    @property
    def sentences(self) -> tuple[str, ...]:
        """What the user should know, one sentence each."""
        n_passed, n_all = len(self.after.checks) - len(self.after.failed), len(self.after.checks)
        found = [tr("It passes {0} of {1} tests.", n_passed, n_all)]
        if self.before.answers:
            same = self.before.answers == self.after.answers
            found.append(
                tr("Its answers are those of the engine in use.")
                if same
                else tr("Some of its answers are worded differently than those of the engine in use.")
            )
        for text, old, new in (
            (mark("Answers: {0} tok/s instead of {1} ({2})."), self.before.answer_tok_s, self.after.answer_tok_s),
            (mark("Prompts: {0} tok/s instead of {1} ({2})."), self.before.prompt_tok_s, self.after.prompt_tok_s),
        ):
            if old and new:
                found.append(tr(text, show_rate(new), show_rate(old), _change(new / old)))
        found.append(tr("The speeds are those of the small demo model."))
        return tuple(found)


async def compare(
    before: EngineFolder | None,
    after: EngineFolder,
    client_of: Callable[[EngineFolder | None], BenchClient] = trial_client,
) -> EngineComparison:
    """Try both engines, one after the other, each in a process of its own."""
    return EngineComparison(await examine(client_of(before)), await examine(client_of(after)))


async def examine(client: BenchClient) -> EngineFindings:
    """Ask an engine about text, thinking, a picture, a tool, drafts and a saved state, and measure its speed.

    The client is closed afterwards.
    """
    try:
        async with asyncio.timeout(_LONGEST_S):
            with tempfile.TemporaryDirectory(prefix="qwendesk-test-") as folder:
                return await _Examination(client, Path(folder)).run()
    except TimeoutError:
        return EngineFindings(checks=(Check(mark("load"), False, _LONGEST_S, tr("It didn't answer in time.")),))
    finally:
        await client.close()


class _Examination:
    def __init__(self, client: BenchClient, folder: Path) -> None:
        self._client, self._folder = client, folder
        self._answers: list[str] = []
        self._has_exited = False

    async def run(self) -> EngineFindings:
        picture, state = self._folder / "red-circle.png", self._folder / "chat.state"
        await asyncio.to_thread(draw_red_circle, picture)
        questions: Sequence[tuple[str, Callable[[], Awaitable[str]]]] = (
            (mark("load"), self._load),
            (mark("text, thinking off"), lambda: self._ask(_SUM, _SUM_ANSWER)),
            (mark("text, thinking on"), lambda: self._ask(_SUM, _SUM_ANSWER, thought=_SUM_THOUGHT)),
            (mark("picture"), lambda: self._ask("What is in this picture?", "red circle", picture=picture)),
            (mark("tool call"), self._call),
            (mark("saved state"), lambda: self._continue_saved(state)),
            (mark("token drafts"), self._draft),
        )
        checks: list[Check] = []
        for name, question in questions:
            if self._has_exited or (checks and not checks[0].passed):
                # Otherwise the engine would be started for each question and crash again, which can take minutes.
                checks.append(Check(name, False, 0.0, tr("Not asked, because the engine had stopped.")))
            else:
                checks.append(await timed(name, question))
        speeds = [0.0, 0.0] if self._has_exited else [await self._speed(test) for test in _SPEEDS]
        return EngineFindings(
            checks=tuple(checks), answers=tuple(self._answers), prompt_tok_s=speeds[0], answer_tok_s=speeds[1]
        )

    async def _load(self, **changes: object) -> str:
        demo = LoadOptions(model=str(paths.demo_model()), mmproj=str(paths.demo_mmproj()), n_ctx=_CONTEXT)
        loaded = await self._client.load(decided_options(demo, **{"speculative": "off", **changes}))
        return loaded.sentence if isinstance(loaded, LoadFailure) else ""

    async def _ask(self, question: str, words: str, *, thought: str = "", picture: Path | None = None) -> str:
        message = text_message("user", question)
        if picture is not None:
            content = await asyncio.to_thread(picture.read_bytes)
            image = ImagePart(str(picture), hashlib.sha256(content).hexdigest())
            message = Message("user", (image, TextPart(question)))
        fault, text, reasoning, _ = await self._answer(
            Generate(messages=(message,), options=_options(thinking=bool(thought)))
        )
        if fault:
            return fault
        if words not in text:
            return tr('expected the answer "{0}", got "{1}"', words, text)
        if thought not in reasoning or bool(thought) != bool(reasoning):
            return tr('expected the thinking "{0}", got "{1}"', thought, reasoning)
        return ""

    async def _call(self) -> str:
        request = Generate(
            messages=(text_message("user", _SUM),), options=_options(), tools_json=_TOOLS, must_call=_TOOL
        )
        fault, _, _, items = await self._answer(request)
        calls = [item.call for item in items if isinstance(item, Called) and item.call is not None]
        return fault or ("" if [call.name for call in calls] == [_TOOL] else tr("It didn't call the tool."))

    async def _continue_saved(self, file: Path) -> str:
        """Save the state of a chat, load the model again, and have the chat continued from the file."""
        request = Generate(messages=(text_message("user", _NOTES + _SUM),), options=_options(), chat=_CHAT)
        fault, text, _, _ = await self._answer(request)
        if fault:
            return fault
        saved = await self._client.ask(SaveState(chat=_CHAT, path=str(file), most_bytes=_MOST_STATE_BYTES))
        if isinstance(saved, EngineExit | RequestFailed):
            return saved.sentence
        await self._client.unload()
        fault = await self._load()
        if fault:
            return fault
        fault, again, _, items = await self._answer(msgspec.structs.replace(request, state_file=str(file)))
        reused = [item.stats.reused_tokens for item in items if isinstance(item, Finished)]
        if fault or again != text:
            return fault or tr('expected the answer "{0}", got "{1}"', text, again)
        return "" if saved.n_bytes and reused and reused[0] else tr("It didn't use the saved state.")

    async def _draft(self) -> str:
        """Have the model repeat an answer, with its tokens guessed from the chat."""
        fault = await self._load(speculative="lookup")
        if fault:
            return fault
        question = text_message("user", _LONG)
        fault, text, _, _ = await self._answer(Generate(messages=(question,), options=_options()))
        if fault:
            return fault
        messages = (question, text_message("assistant", text), question)
        fault, _, _, items = await self._answer(Generate(messages=messages, options=_options()))
        drafted = any(isinstance(item, Finished) and item.stats.drafted_tokens for item in items)
        return fault or ("" if drafted else tr("It drafted no tokens."))

    async def _answer(self, request: Generate) -> tuple[str, str, str, list[object]]:
        """Return what went wrong or "", the text, the reasoning and all items of an answer."""
        text, reasoning, items = "", "", list[object]()
        async for item in self._client.generate(request):
            items.append(item)
            if isinstance(item, EngineExit):
                self._has_exited = True
                return exit_reason(item), text, reasoning, items
            if isinstance(item, RequestFailed):
                return item.sentence, text, reasoning, items
            if isinstance(item, Delta) and item.kind == "answer":
                text += item.text
            elif isinstance(item, Delta):
                reasoning += item.text
        called = "".join(item.name + item.arguments for item in items if isinstance(item, CallDelta))
        self._answers.append(f"{reasoning}\n{text}\n{called}")
        return "", text, reasoning, items

    async def _speed(self, test: SpeedTest) -> float:
        benched = await self._client.bench(test)
        self._has_exited = self._has_exited or isinstance(benched, EngineExit)
        samples = benched.result if isinstance(benched, Benched) else None
        return samples.median if isinstance(samples, SpeedSamples) else 0.0


def _options(*, thinking: bool = False) -> GenerationOptions:
    return GenerationOptions(temperature=0.0, enable_thinking=thinking, max_tokens=128)


def _change(factor: float) -> str:
    """Return "equally fast", "1.2 times as fast"."""
    return tr("equally fast") if abs(factor - 1) <= _SAME_SPEED else tr("{0} times as fast", show_decimal(factor, 2))
