"""Measures the speed of a model: llama-bench's tests by depth, second questions, and answers with and without drafts.

Each row is handed out as soon as it is known, so a stop loses only the test that runs.
"""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from qwendesk.bench.bench_engine import BenchEngine, BenchFailure, ShowFraction
from qwendesk.bench.questions import TEXTS, ask, draw_picture, lines_for, numbered_text, with_picture
from qwendesk.bench.table import BenchRow, Drafts, find_row
from qwendesk.core.benchmarks import SpeedSamples, SpeedTest
from qwendesk.core.errors import BadModelFile
from qwendesk.core.failures import LoadFailure
from qwendesk.core.messages import Message, text_message
from qwendesk.core.options import LoadOptions
from qwendesk.core.translation import tr
from qwendesk.core.units import show_duration, show_tokens
from qwendesk.engine.protocol import LoadReport
from qwendesk.hub.gguf import read_facts

# Names of the tests that ask a second question about what is in memory already.
TURNS, PICTURE_TURNS = ("turn 1", "turn 2"), ("new picture", "same picture")
# The depths that are measured as far as they fit into the context.
DEPTHS = (0, 2048, 8192, 32768, 131072)
# How long the first question is, after which a second one is asked.
_TURN_TOKENS = 2000
# Room for the question of a text and for the format of a chat.
_SPARE_TOKENS = 512


class SpeedPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What to measure."""

    depths: tuple[int, ...] = DEPTHS
    n_prompts: tuple[int, ...] = (512,)
    n_gens: tuple[int, ...] = (128,)
    pairs: tuple[tuple[int, int], ...] = ()
    """Tests that process a prompt and decode after it: (n_prompt, n_gen)."""
    repeats: int = 3
    with_drafts: bool = True
    """Whether answers to texts are measured, with and without drafts."""
    with_follow_ups: bool = True
    """Whether second questions about a text and a picture are measured."""
    longest_fill_s: float = 600.0
    """A depth that takes longer to reach is left out."""

    def tests(self, depth: int) -> Iterator[SpeedTest]:
        """Yield llama-bench's tests at one depth."""
        counts = [(n, 0) for n in self.n_prompts] + [(0, n) for n in self.n_gens] + list(self.pairs)
        for n_prompt, n_gen in counts:
            if n_prompt or n_gen:
                yield SpeedTest(n_prompt=n_prompt, n_gen=n_gen, depth=depth, repeats=self.repeats)

    def text_tests(self, depth: int) -> Iterator[tuple[str, SpeedTest]]:
        """Yield the tests of drafts at one depth, each with its name."""
        n_gen = max(self.n_gens, default=128)
        for name, text in TEXTS.items():
            yield f"{name}{n_gen}", SpeedTest(n_gen=n_gen, depth=depth, repeats=self.repeats, text=text)

    def depths_in(self, n_ctx: int) -> tuple[int, ...]:
        """Return the depths at which every test fits into a context."""
        return tuple(depth for depth in sorted(set(self.depths)) if self.context_for(depth) <= n_ctx)

    def context_for(self, depth: int) -> int:
        """Return how many tokens of context the tests at a depth need."""
        longest = max((test.n_timed for test in self.tests(0)), default=0)
        if self.with_drafts:
            longest = max(longest, _SPARE_TOKENS + max(self.n_gens, default=0))
        return depth + longest

    def n_tests(self, n_ctx: int) -> int:
        """Return how many rows a run has, with a context of this length."""
        n_texts = 2 * len(TEXTS) if self.with_drafts else 0
        n_turns = len(TURNS) + len(PICTURE_TURNS) if self.with_follow_ups else 0
        return len(self.depths_in(n_ctx)) * (len(tuple(self.tests(0))) + n_texts) + n_turns


class SpeedProgress(msgspec.Struct, frozen=True):
    """The test that runs, how much of it is done, from 0 to 1, and how many tests the whole run has."""

    test: str
    fraction: float = 0.0
    n_tests: int = 0
    """0 before the model is loaded."""


# Measures the loaded model with one test.
MeasureTest = Callable[[SpeedTest, ShowFraction], Awaitable[SpeedSamples | BenchFailure]]


class SpeedMeasurement:
    """Measures one model with one set of options."""

    def __init__(
        self,
        engine: BenchEngine,
        plan: SpeedPlan,
        *,
        add_row: Callable[[BenchRow], None],
        add_note: Callable[[str], None],
        show: Callable[[SpeedProgress], None],
        measure: MeasureTest | None = None,
    ) -> None:
        """`add_note` gets a sentence for everything that was left out. `measure` replaces that of the engine."""
        self._engine, self._plan = engine, plan
        self._add_row, self._add_note, self._show = add_row, add_note, show
        self._measure_test = measure or engine.measure
        self._prompt_tok_s = 0.0
        self._n_tests = 0
        self._last_depth = 0

    async def run(self, options: LoadOptions) -> LoadReport | LoadFailure | BenchFailure:
        """Load the model and measure it. Return its load report if the engine lived to the end."""
        drafts = await asyncio.to_thread(_drafts_of, options) if self._plan.with_drafts else "off"
        report = await self._load(options, "off" if self._plan.with_drafts else options.speculative)
        if isinstance(report, LoadFailure):
            return report
        failure: LoadFailure | BenchFailure | None = await self.measure_loaded(report)
        if failure is None and drafts != "off":
            failure = await self._measure_drafts(options, drafts)
        return failure or report

    async def measure_loaded(self, report: LoadReport) -> BenchFailure | None:
        """Measure the loaded model, without drafts unless it was loaded with them."""
        depths = self._plan.depths_in(report.n_ctx)
        self._n_tests = self._plan.n_tests(report.n_ctx)
        self._note_short_context(depths, report)
        kind: Drafts = report.options.speculative if not self._plan.with_drafts else "off"
        failure = await self._measure_depths(depths, kind, with_tests=True)
        if failure is None and self._plan.with_follow_ups:
            failure = await self._measure_follow_ups(report)
        return failure

    async def _load(self, options: LoadOptions, drafts: Literal["auto"] | Drafts) -> LoadReport | LoadFailure:
        self._show_progress("load")
        self._last_depth = 0
        return await self._engine.load(msgspec.structs.replace(options, speculative=drafts))

    async def _measure_depths(self, depths: Sequence[int], drafts: Drafts, *, with_tests: bool) -> BenchFailure | None:
        for depth in depths:
            if self._is_too_long(depth):
                break
            tests = [(test.kind, test) for test in self._plan.tests(depth)] if with_tests else []
            texts = self._plan.text_tests(depth) if self._plan.with_drafts else ()
            for name, test in (*tests, *texts):
                failure = await self._measure(name, test, drafts)
                if failure is not None:
                    return failure
            self._last_depth = depth
        return None

    async def _measure(self, name: str, test: SpeedTest, drafts: Drafts) -> BenchFailure | None:
        shown = BenchRow(test=name, depth=test.depth, values=(0.0,)).name
        samples = await self._measure_test(test, lambda fraction: self._show_progress(shown, fraction))
        if isinstance(samples, BenchFailure):
            return samples
        if test.n_prompt and not test.n_gen:
            self._prompt_tok_s = samples.median
        self._add_row(
            BenchRow(
                test=name, depth=test.depth, n_prompt=test.n_prompt, n_gen=test.n_gen, drafts=drafts,
                values=samples.tok_s, drafted=samples.drafted, accepted=samples.accepted,
            )
        )  # fmt: skip
        return None

    def _show_progress(self, test: str, fraction: float = 0.0) -> None:
        self._show(SpeedProgress(test, fraction, self._n_tests))

    def _is_too_long(self, depth: int) -> bool:
        """Return whether it would take too long to fill the memory up to `depth`; then say so."""
        if not self._prompt_tok_s:
            return False
        seconds = (depth - self._last_depth) / self._prompt_tok_s
        if seconds <= self._plan.longest_fill_s:
            return False
        self._add_note(
            tr(
                "Depths from {0} are left out: it would take {1} to get there.",
                show_tokens(depth),
                show_duration(seconds),
            )
        )
        return True

    def _note_short_context(self, depths: Sequence[int], report: LoadReport) -> None:
        left_out = [show_tokens(depth) for depth in sorted(self._plan.depths) if depth not in depths]
        if left_out:
            self._add_note(
                tr("Left out: {0}. The context has {1} tokens.", ", ".join(left_out), show_tokens(report.n_ctx))
            )

    async def _measure_drafts(self, options: LoadOptions, drafts: Drafts) -> LoadFailure | BenchFailure | None:
        report = await self._load(options, drafts)
        if isinstance(report, LoadFailure):
            return report
        if not report.n_draft_max:
            self._add_note(tr("This model can't take drafts back, so it is measured without."))
            return None
        return await self._measure_depths(self._plan.depths_in(report.n_ctx), drafts, with_tests=False)

    async def _measure_follow_ups(self, report: LoadReport) -> BenchFailure | None:
        n_tokens = min(_TURN_TOKENS, report.n_ctx // 2)
        n_lines = await lines_for(self._engine.client, n_tokens)
        with tempfile.TemporaryDirectory(prefix="qwendesk-bench-", ignore_cleanup_errors=True) as folder:
            failure = await self._measure_turns(TURNS, n_tokens, lambda number: _text_turns(number, n_lines))
            if failure is None and report.can_see:
                failure = await self._measure_turns(PICTURE_TURNS, 0, lambda number: _picture_turns(folder, number))
        return failure

    async def _measure_turns(
        self, names: tuple[str, str], depth: int, make: Callable[[int], Awaitable[tuple[Message, Message]]]
    ) -> BenchFailure | None:
        """Ask two questions in a new chat, again and again, and time the first token of each answer."""
        seconds: tuple[list[float], list[float]] = ([], [])
        for number in range(self._plan.repeats + 1):
            self._show_progress(names[1], number / (self._plan.repeats + 1))
            first, second = await make(number)
            answer = await ask(self._engine.client, [first])
            if isinstance(answer, BenchFailure):
                return answer
            again = await ask(self._engine.client, [first, text_message("assistant", answer.text), second])
            if isinstance(again, BenchFailure):
                return again
            if number:  # the first time warms up
                seconds[0].append(answer.ttft_s)
                seconds[1].append(again.ttft_s)
        for name, values in zip(names, seconds, strict=True):
            self._add_row(BenchRow(test=name, depth=depth, unit="s", values=tuple(values)))
        return None


async def _text_turns(number: int, n_lines: int) -> tuple[Message, Message]:
    return (
        text_message("user", f"{numbered_text(number, n_lines)}\nWhich shelf comes first?"),
        text_message("user", "And which shelf comes last?"),
    )


async def _picture_turns(folder: str, number: int) -> tuple[Message, Message]:
    image = await asyncio.to_thread(draw_picture, Path(folder) / f"{number}.png", number)
    return with_picture(image, "What is in this picture?"), text_message("user", "Which colours does it have?")


def _drafts_of(options: LoadOptions) -> Drafts:
    """Return the drafts to compare with none: the chosen ones, or the model's own head if it has one. Blocks."""
    if options.speculative in ("mtp", "lookup"):
        return options.speculative
    if options.speculative == "off":
        return "off"
    try:
        has_head = options.draft_model or read_facts(Path(options.model)).nextn_layers
        return "mtp" if has_head else "lookup"
    except BadModelFile:
        return "off"  # the load will say what is wrong


# Prompts are about this much faster than generation where only that is known.
_PROMPT_FACTOR = 12.0
_LOAD_S, _FOLLOW_UPS_TOKENS = 5.0, 2500


def expected_duration_s(
    plan: SpeedPlan, rows: Sequence[BenchRow], n_ctx: int = 0, decode_tok_s: float = 0.0
) -> float | None:
    """Return the seconds that a run takes; None if nothing is known of this model's speed.

    `rows` are those of an earlier run, `n_ctx` is 0 if the context isn't known yet, and `decode_tok_s` is the speed of
    ordinary answers, used without an earlier run.
    """
    prompt_row = find_row(rows, f"pp{max(plan.n_prompts, default=0)}", 0, with_drafts=False)
    decode_row = find_row(rows, f"tg{max(plan.n_gens, default=0)}", 0, with_drafts=False)
    decode_tok_s = decode_row.median if decode_row is not None else decode_tok_s
    if decode_tok_s <= 0:
        return None
    prompt_tok_s = prompt_row.median if prompt_row is not None else _PROMPT_FACTOR * decode_tok_s
    depths = plan.depths_in(n_ctx) if n_ctx else plan.depths
    n_loads = 2 if plan.with_drafts else 1
    texts = len(TEXTS) * n_loads if plan.with_drafts else 0
    prompts = plan.repeats * sum(plan.n_prompts) * len(depths) + n_loads * max(depths, default=0)
    if plan.with_follow_ups:
        prompts += (plan.repeats + 1) * _FOLLOW_UPS_TOKENS
    decoded = plan.repeats * len(depths) * (sum(plan.n_gens) + texts * max(plan.n_gens, default=0))
    return n_loads * _LOAD_S + prompts / prompt_tok_s + decoded / decode_tok_s
