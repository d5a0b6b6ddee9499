"""Auto-tune: finds the load options with which a model is fastest on this PC, by short measurements.

Every candidate is planned first, and refused if it doesn't fit into the memory that may be used. While the GPU works,
its memory is watched, and a run that spills doesn't count. What is measured next is decided in tune_rules.py.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import msgspec
import psutil

from qwendesk.bench.bench_engine import BenchEngine, BenchFailure
from qwendesk.bench.bench_runs import BenchRuns
from qwendesk.bench.memory_watch import SpillWatch
from qwendesk.bench.questions import TEXTS
from qwendesk.bench.tune_rules import (
    PINNED,
    Speed,
    TriedOptions,
    TuneInput,
    best_confirmed,
    best_trial,
    confirmed,
    dimensions,
    faster_answers,
    measured,
    next_candidate,
    pinned,
)
from qwendesk.core.benchmarks import SpeedSamples, SpeedTest
from qwendesk.core.devices import DeviceInfo
from qwendesk.core.failures import EngineExit, LoadFailure
from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.observed import Observed
from qwendesk.core.options import DecidedOptions, LoadOptions
from qwendesk.core.plan import Plan
from qwendesk.core.translation import tr
from qwendesk.engine.protocol import Devices, LoadReport
from qwendesk.engines.idle_unload import CallLater, call_later_on_loop
from qwendesk.settings.profiles import ProfilesService

# How long auto-tune takes at most.
LONGEST_S = 180.0
_REPEATS = 3
# A test is stopped if it takes this many times as long as with the user's settings, and at least these seconds.
_PATIENCE, _LEAST_LIMIT_S = 4.0, 3.0
# Time between two looks at the memory of the GPU.
_SAMPLE_S = 1.0
_PROMPTS, _ANSWERS = (128, 256, 512, 1024, 2048), (16, 32, 64, 128)
# Show roughly how fast the model is, so that the tests get a fitting length.
_PROBES = (SpeedTest(n_prompt=64, repeats=1), SpeedTest(text=TEXTS["text"], n_gen=8, repeats=1))


# Returns the plan of a load that isn't made. Blocks.
MakePlan = Callable[[LoadOptions, Devices], Plan | LoadFailure]
# Returns what the header of the model says; None if it can't be read. Blocks.
ReadFacts = Callable[[LoadOptions], ModelFacts | None]


# Saves the speed of answers with these options, in tokens per second.
NoteSpeed = Callable[[LoadOptions, float], Awaitable[None]]
# Returns the watch of a model that was just loaded by the process with this id.
MakeWatch = Callable[[LoadReport, Sequence[DeviceInfo], int | None], SpillWatch]


class TuneState(msgspec.Struct, frozen=True, kw_only=True):
    """What the section “Make it faster” of the Bench page shows."""

    options: LoadOptions | None = None
    """The user's settings that are or were tuned; None before the first time."""
    plan: Plan | None = None
    """Of these settings."""
    is_running: bool = False
    was_stopped: bool = False
    """The user stopped it, so that what is best so far may have been measured only once."""
    n_planned: int = 0
    """Sets of options that one round may try, the user's own among them; 0 before that is known."""
    trials: tuple[TriedOptions, ...] = ()
    """In the order in which they were made. What gained appears several times."""
    current: dict[str, Any] | None = None
    """The changes that are being measured; None while none are."""
    left_s: float = LONGEST_S
    failure: str = ""
    """Reason why it ended early, in a sentence."""
    also_kept: dict[str, Any] = {}
    """Options that are saved with the best ones, because the planner would shorten the context for them otherwise."""
    used: TriedOptions | None = None
    """What the user chose to use; None as long as they haven't."""

    @property
    def own(self) -> TriedOptions | None:
        """The user's own settings with all their measurements; None if they have no speed."""
        return next((trial for trial in measured(self.trials) if not trial.changes), None)

    @property
    def found(self) -> TriedOptions | None:
        """What is faster than the user's own settings; None if nothing is."""
        best = best_confirmed(self.trials)
        if self.was_stopped and (best is None or not best.changes):
            best = best_trial(self.trials)
        return best if best is not None and best.changes else None

    @property
    def trade(self) -> TriedOptions | None:
        """What answers clearly faster than `found`, or else than the user's settings, though a typical turn isn't."""
        than = self.found or self.own
        if than is None or than.speed is None:
            return None
        return faster_answers(self.trials if self.was_stopped else confirmed(self.trials), than.speed)

    @property
    def offers(self) -> tuple[TriedOptions, ...]:
        """What the user may use instead of their own settings, the best first."""
        return tuple(each for each in (self.found, self.trade) if each is not None)

    @property
    def n_spilled(self) -> int:
        return sum(trial.spilled for trial in self.trials)


class AutoTune:
    """Tunes one model at a time. Call its methods on the event loop's thread."""

    def __init__(
        self,
        runs: BenchRuns,
        profiles: ProfilesService,
        *,
        make_plan: MakePlan,
        read_facts: ReadFacts,
        make_watch: MakeWatch,
        reload: Callable[[str], Awaitable[None]],
        note_speed: NoteSpeed | None = None,
        clock: Callable[[], float] = time.monotonic,
        call_later: CallLater = call_later_on_loop,
        longest_s: float = LONGEST_S,
        test_s: float = 1.5,
    ) -> None:
        """`reload` loads a model again if a chat has it loaded; it takes the path. `clock` returns seconds.

        `test_s` is how long one repetition of a test should take.
        """
        self._runs, self._profiles = runs, profiles
        self._make_plan, self._read_facts, self._make_watch, self._reload = make_plan, read_facts, make_watch, reload
        self._note_speed, self._clock, self._call_later = note_speed, clock, call_later
        self._longest_s, self._test_s = longest_s, test_s
        self.state = Observed(TuneState())
        self._deadline = 0.0
        self._is_ending = False
        """Whether it was stopped by the user or by the time, so that what was found counts."""
        self._loaded: LoadOptions | None = None
        self._latest_plan: Plan | None = None
        self._test_times_s: dict[SpeedTest, float] = {}
        """How long each test took with the user's settings."""

    async def run(self, options: LoadOptions, *, may_change_answers: bool = False) -> None:
        """Tune a model with the user's `options`. The state says what came of it; a run in progress goes on."""
        if self.state.value.is_running:
            return
        self._deadline, self._is_ending, self._loaded = self._clock() + self._longest_s, False, None
        self._test_times_s = {}
        self.state.set(TuneState(options=options, is_running=True, left_s=self._longest_s))
        cancel_timer = self._call_later(self._longest_s, self._end)
        try:
            ended = await self._runs.run("tune", lambda engine: self._tune(engine, options, may_change_answers))
            if (isinstance(ended, BenchFailure) and not self._is_ending) or isinstance(ended, LoadFailure):
                self.state.update(failure=ended.sentence)
        finally:
            cancel_timer()
            self.state.update(is_running=False, current=None)

    def stop(self) -> None:
        """End now. What was found so far counts."""
        if self.state.value.is_running:
            self.state.update(was_stopped=True)
            self._end()

    def _end(self) -> None:
        self._is_ending = True
        self._runs.stop()

    async def use(self, wanted: TriedOptions | None = None) -> None:
        """Keep `wanted`, or else the first offer, as a profile of the model, and use it.

        The settings before it are kept as a profile, too.
        """
        state = self.state.value
        used = wanted or next(iter(state.offers), None)
        if state.options is None or used is None:
            return
        model = state.options.model
        before = self._profiles.changes(model)
        if before:
            self._profiles.save_as(model, tr("Before auto-tune"))
        self._profiles.save_changes(model, {**before, **state.also_kept, **used.changes})
        self._profiles.save_as(model, tr("Auto-tuned"))
        self.state.update(used=used)
        if self._note_speed is not None and used.options is not None and used.speed is not None:
            await self._note_speed(used.options, used.speed.decode.median)
        await self._reload(model)

    async def _tune(
        self, engine: BenchEngine, options: LoadOptions, may_change_answers: bool
    ) -> LoadFailure | BenchFailure | None:
        report = await self._load(engine, options, is_own=True)
        plan = self._latest_plan
        if isinstance(report, LoadFailure) or plan is None:
            return report if isinstance(report, LoadFailure) else None
        self.state.update(plan=plan, also_kept={key: getattr(plan.options, key) for key in PINNED})
        tests = await self._tests(engine, report.n_ctx)
        if isinstance(tests, BenchFailure):
            return tests
        facts = await asyncio.to_thread(self._read_facts, options)
        base = self._loaded = pinned(options, plan)
        space = dimensions(
            TuneInput(
                plan=plan,
                can_draft=facts is not None and facts.can_draft,
                n_layers=report.n_layers,
                n_prompt=tests[0].n_prompt,
                physical_cores=psutil.cpu_count(logical=False) or 1,
                logical_cores=os.cpu_count() or 1,
                may_change_answers=may_change_answers,
            )
        )
        self.state.update(n_planned=1 + sum(len(each.steps) - 1 for each in space))
        while (changes := next_candidate(space, self.state.value.trials, self._left_s())) is not None:
            trial = await self._try(engine, base, changes, tests)
            self.state.update(trials=(*self.state.value.trials, trial), current=None, left_s=self._left_s())
            if not changes and trial.speed is None:
                spills = tr("The model spills with your settings, so their speed means little. End the spill first.")
                return BenchFailure("", spills if trial.spilled else trial.why_not)
        await self._keep_context(engine, options)
        return None

    async def _try(
        self, engine: BenchEngine, base: LoadOptions, changes: dict[str, Any], tests: Sequence[SpeedTest]
    ) -> TriedOptions:
        """Measure the user's settings with some changes."""
        started_s = self._clock()
        self.state.update(current=changes, left_s=self._left_s())
        options = msgspec.structs.replace(base, **changes)
        report = engine.report
        if options != self._loaded or report is None:
            loaded = await self._load(engine, options, is_own=not changes)
            if isinstance(loaded, LoadFailure):
                return TriedOptions(changes=changes, why_not=loaded.sentence, seconds=self._clock() - started_s)
            report = loaded
        async with self._watching(engine, report) as watch:
            results: list[SpeedSamples | BenchFailure] = []
            for test in tests:
                results.append(await self._measure_in_time(engine, test))
                if isinstance(results[-1], BenchFailure):
                    break
        seconds = self._clock() - started_s
        failure = next((result for result in results if isinstance(result, BenchFailure)), None)
        if failure is not None:
            self._loaded = None
            return TriedOptions(changes=changes, why_not=failure.sentence, seconds=seconds)
        if watch is not None and watch.has_spilled:
            why = tr("It spilled into shared memory, so it doesn't count.")
            return TriedOptions(changes=changes, why_not=why, spilled=True, seconds=seconds)
        prompt, decode = (result for result in results if isinstance(result, SpeedSamples))
        return TriedOptions(changes=changes, speed=Speed(prompt, decode), options=report.options, seconds=seconds)

    async def _load(self, engine: BenchEngine, options: LoadOptions, *, is_own: bool) -> LoadReport | LoadFailure:
        """Load `options` if they fit. The user's own settings are loaded as in chats, even if they are tight."""

        def decide(options: LoadOptions, devices: Devices) -> DecidedOptions | LoadFailure:
            plan = self._make_plan(options, devices)
            if isinstance(plan, LoadFailure):
                return plan
            if not (plan.fits or is_own):
                return LoadFailure("out_of_vram", tr("Doesn't fit"), tr("It needs more memory than may be used."))
            self._latest_plan = plan
            return plan.options

        self._loaded = None
        report = await engine.load(options, decide)
        if not isinstance(report, LoadFailure):
            self._loaded = options
        return report

    async def _tests(self, engine: BenchEngine, n_ctx: int) -> tuple[SpeedTest, SpeedTest] | BenchFailure:
        """Return a test of prompts and one of answers that each take a fitting time on this PC."""
        rates = []
        for probe in _PROBES:
            samples = await self._measure(engine, probe)
            if isinstance(samples, BenchFailure):
                return samples
            rates.append(samples.median)
        longest = n_ctx // 2
        n_prompt = max((n for n in _PROMPTS if n <= min(rates[0] * self._test_s, longest)), default=_PROMPTS[0])
        n_gen = max((n for n in _ANSWERS if n <= min(rates[1] * self._test_s, longest)), default=_ANSWERS[0])
        return (
            SpeedTest(n_prompt=n_prompt, repeats=_REPEATS),
            SpeedTest(text=TEXTS["text"], n_gen=n_gen, repeats=_REPEATS),
        )

    async def _measure_in_time(self, engine: BenchEngine, test: SpeedTest) -> SpeedSamples | BenchFailure:
        """Measure a test. The first time takes as long as it takes; later ones are stopped if they are much slower."""
        loop = asyncio.get_running_loop()
        known_s, started_s = self._test_times_s.get(test), loop.time()
        limit_s = max(_LEAST_LIMIT_S, _PATIENCE * known_s) if known_s is not None else None
        try:
            async with asyncio.timeout(limit_s):
                result = await self._measure(engine, test)
        except TimeoutError:
            return BenchFailure("", tr("Much slower, so it was stopped."))
        self._test_times_s.setdefault(test, loop.time() - started_s)
        return result

    async def _measure(self, engine: BenchEngine, test: SpeedTest) -> SpeedSamples | BenchFailure:
        return await engine.measure(test, lambda _fraction: self.state.update(left_s=self._left_s()))

    @contextlib.asynccontextmanager
    async def _watching(self, engine: BenchEngine, report: LoadReport) -> AsyncIterator[SpillWatch | None]:
        """Watch the GPUs while something is measured; None if the model uses none."""
        gpus = {device.name for device in engine.devices if device.kind in ("gpu", "igpu")}
        if not any(row.device in gpus and row.total_bytes for row in report.allocations):
            yield None
            return
        watch = self._make_watch(report, engine.devices, getattr(engine.client, "worker_pid", None))
        await watch.look()

        async def keep_looking() -> None:
            while True:
                await asyncio.sleep(_SAMPLE_S)
                await watch.look()

        looking = asyncio.ensure_future(keep_looking())
        try:
            yield watch
        finally:
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)
        await watch.look()

    async def _keep_context(self, engine: BenchEngine, options: LoadOptions) -> None:
        """Note which options really must be saved with the best ones: those that the planner would change for them."""
        offers = self.state.value.offers
        if not offers:
            return
        await engine.client.unload()
        self._loaded = None
        devices = await engine.client.probe()
        if isinstance(devices, EngineExit):
            return
        kept: dict[str, Any] = {}
        for offer in offers:
            changed = msgspec.structs.replace(options, **offer.changes)
            other = await asyncio.to_thread(self._make_plan, changed, devices)
            kept |= {
                key: value
                for key, value in self.state.value.also_kept.items()
                if key not in offer.changes and (isinstance(other, LoadFailure) or getattr(other.options, key) != value)
            }
        self.state.update(also_kept=kept)

    def _left_s(self) -> float:
        return max(0.0, self._deadline - self._clock())
