"""GameMode: looks every two seconds whether another program needs the graphics card, and has the model make room."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Literal

import msgspec

from qwendesk.chat.service import ChatService
from qwendesk.core.app_options import AppOptions, GameAction, ProgramRule
from qwendesk.core.errors import FailureGuard
from qwendesk.core.failures import LoadFailure
from qwendesk.core.observed import Observed
from qwendesk.core.options import LoadOptions
from qwendesk.core.served_model import is_served
from qwendesk.core.translation import join_sentences
from qwendesk.engine.answer_meter import AnswerMeter
from qwendesk.engine.protocol import LoadReport
from qwendesk.engine.state import EngineState, Phase
from qwendesk.engines.engine_service import EngineService
from qwendesk.games.rules import (
    Cause,
    GameTrack,
    Observation,
    VramPressure,
    accept,
    bytes_when_over,
    experts_on_cpu,
    listed_programs,
    may_count,
    next_track,
    rule_of,
    vram_pressure,
)
from qwendesk.hardware.programs import RunningProgram, is_same_program, running_programs, started_programs
from qwendesk.meters.meter_state import MeterState
from qwendesk.remote.service import RemoteService
from qwendesk.settings.service import SettingsService

if TYPE_CHECKING:
    from qwendesk.remote.loaded_models import HeldModel

_logger = logging.getLogger(__name__)

# Seconds between two looks.
EVERY_S = 2.0


class GameSources(msgspec.Struct, frozen=True):
    """Where observations come from. The first three block, and are called on another thread."""

    running: Callable[[], tuple[RunningProgram, ...]]
    started: Callable[[], tuple[RunningProgram, ...]]
    """Programs that the user has started, the latest first."""
    full_screen: Callable[[], RunningProgram | None]
    pressure: Callable[[], VramPressure]
    held_elsewhere: "Callable[[], Awaitable[tuple[HeldModel, ...]]] | None" = None
    """Returns the models that other programs hold; None asks nobody."""
    unload_elsewhere: "Callable[[HeldModel], Awaitable[str]] | None" = None
    """Has a program unload its model. Returns why that failed, or ""."""


def sources_of_this_pc(meters: Observed[MeterState], remote: RemoteService) -> GameSources:
    """Return the real sources; the pressure is what the meters say."""

    def full_screen() -> RunningProgram | None:
        # Imported only now, because it is asked only while video memory is short.
        from qwendesk.hardware.probes.full_screen import full_screen_program  # noqa: PLC0415

        return full_screen_program()

    pressure = partial(_pressure_of, meters)
    held, unload = remote.models_in_memory, remote.unload
    return GameSources(running_programs, started_programs, full_screen, pressure, held, unload)


def _pressure_of(meters: Observed[MeterState]) -> VramPressure:
    return vram_pressure(meters.value)


class GameState(msgspec.Struct, frozen=True):
    """The state of game mode, for the window."""

    status: Literal["", "waiting", "unloaded", "experts"] = ""
    """"waiting" for the end of an answer; "experts" if they were moved to the CPU; "" if nothing is to be done."""
    program: str = ""
    """The program that the model makes room for; "" if its name isn't known."""
    others: "tuple[HeldModel, ...]" = ()
    """Models that other programs hold in memory meanwhile."""
    problem: str = ""
    """Why other programs didn't unload what they were asked to."""


# Returns how to load this model with all its experts on the CPU; None if it has none on a GPU or RAM is short.
MoveExperts = Callable[[LoadReport], Awaitable[LoadOptions | None]]


class GameMode:
    """Owns what is done to the model for other programs. Methods are called on the event loop's thread."""

    def __init__(
        self,
        engine: EngineService,
        settings: SettingsService,
        sources: GameSources,
        *,
        chat: ChatService,
        answers: AnswerMeter,
        move_experts: MoveExperts | None = None,
    ) -> None:
        """`answers` knows those for other programs too."""
        self._engine, self._settings, self._sources = engine, settings, sources
        self._chat, self._answers = chat, answers
        self._move_experts = move_experts or partial(experts_on_cpu, read_headers=engine.read_files)
        self.state = Observed(GameState())
        self._track = GameTrack()
        self._pressure = VramPressure()
        self._done: Cause | None = None
        """The cause for which the model has made room."""
        self._others: tuple[HeldModel, ...] = ()
        self._others_problem = ""
        self._original: LoadOptions | None = None
        """How the model was loaded before, while its experts are on the CPU."""
        self._moved: LoadOptions | None = None
        """How the model is loaded with its experts on the CPU."""
        self._needed_bytes: int | None = None
        """How much video memory is free once the cause has given its memory back."""
        self._is_moving = False
        """Whether the model is being loaded with its experts on the CPU."""
        self._was_loaded = False
        """Whether the user has loaded a model since the last look, beside whatever runs."""
        self._expects_load = False
        """Whether the app is about to load the last model, which no user has chosen."""
        self._guard = FailureGuard(_logger, "Game mode couldn't look at other programs")
        self._is_in_front = False
        self._phase = engine.state.phase
        self._looking = asyncio.Lock()
        self._polling: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._unsubscribe = (engine.observed.subscribe(self._on_engine), settings.subscribe(self._on_options))

    def start(self) -> None:
        """Begin to look regularly. Further calls do nothing."""
        if self._polling is None:
            self._polling = asyncio.get_running_loop().create_task(self._poll())

    async def close(self) -> None:
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        if self._polling is not None:
            self._polling.cancel()
            await asyncio.gather(self._polling, return_exceptions=True)

    def set_in_front(self, is_in_front: bool) -> None:
        """Note whether the user works with QwenDesk, which keeps the model loaded while memory runs short."""
        self._is_in_front = is_in_front

    async def look(self) -> None:
        """Look once, and do what follows from it. Waits for the end of a load that follows."""
        async with self._looking:
            state, options = self._engine.state, self._settings.options
            if not _takes_memory(state) and self._done is None and not self._was_loaded:
                self._track = GameTrack(accepted=self._track.accepted)
            else:
                seen = await self._observe(options)
                if self._was_loaded:
                    self._was_loaded = False
                    self._track = accept(self._track, (each.program for each in listed_programs(seen, options)))
                self._pressure = seen.pressure
                self._track = next_track(self._track, seen, options, self._needed_bytes)
            await self._follow()

    async def holds_first_load(self) -> bool:
        """Hold the model that is to be loaded at start if a listed program runs. Return whether it is held."""
        async with self._looking:
            seen = await self._observe(self._settings.options)
            cause = next(listed_programs(seen, self._settings.options), None)
            if cause is None or cause.action != "unload":
                self._expects_load = True
                return False
            self._track = GameTrack(active=cause)
            await self._follow()
            return self._engine.state.questions_held

    def load_anyway(self) -> None:
        """Load the model as it was, and leave it loaded until the program has ended."""
        done, original = self._done, self._original
        self._accept()
        if done is not None and done.action == "experts" and original is not None:
            self._engine.load_with_next_message(original)
            self._engine.reload_idle()
        elif done is not None:
            self._engine.release_questions(load=True)

    async def unload_others(self) -> None:
        """Have the other programs unload their models. Those that refuse stay in the state, with the reason."""
        unload, others = self._sources.unload_elsewhere, self._others
        if unload is None:
            return
        problems = await asyncio.gather(*map(unload, others))
        self._others = tuple(model for model, problem in zip(others, problems, strict=True) if problem)
        self._others_problem = join_sentences(*problems)
        self._show_done()

    def set_rule(self, program: str, action: GameAction | None) -> None:
        """Save what happens while this program runs; None deletes its rule."""
        rules = self._settings.options.game_programs
        name = program.strip()
        if not name:
            return
        new = () if action is None else (ProgramRule(name, action),)
        if new and rule_of(self._settings.options, name) is not None:
            changed = tuple(new[0] if is_same_program(rule.name, name) else rule for rule in rules)
        else:
            changed = (*(rule for rule in rules if not is_same_program(rule.name, name)), *new)
        self._settings.change({"game_programs": changed})

    def never_again(self) -> None:
        """Keep the model loaded for the present program from now on, and load it as it was."""
        program = self.state.value.program
        self.load_anyway()
        self.set_rule(program, "keep")

    async def started_names(self) -> tuple[str, ...]:
        """Return the names of programs that the user has started, the latest first."""
        started = await asyncio.to_thread(self._sources.started)
        return tuple(program.name for program in started if may_count(program.name))

    async def _poll(self) -> None:
        while True:
            self._wake.clear()
            with self._guard:
                await self.look()
            try:
                await asyncio.wait_for(self._wake.wait(), EVERY_S)
            except TimeoutError:
                continue

    async def _observe(self, options: AppOptions) -> Observation:
        """Return what can be seen, without asking the system for what no rule needs."""
        if not options.game_mode:
            return Observation()
        pressure = self._sources.pressure()
        has_rules = any(rule.action != "keep" for rule in options.game_programs)
        asks_running = has_rules or self._track.active is not None or bool(self._track.accepted)
        asks_full_screen = options.game_trigger != "listed" and pressure.is_short and bool(pressure.programs)
        return Observation(
            running=await asyncio.to_thread(self._sources.running) if asks_running else (),
            pressure=pressure,
            full_screen=await asyncio.to_thread(self._sources.full_screen) if asks_full_screen else None,
            is_in_front=self._is_in_front,
        )

    async def _follow(self) -> None:
        """Bring the model into the state that the track asks for, once no answer is running."""
        cause = self._track.active
        if cause is None and self._done is None:
            self.state.set(GameState())
        elif cause is not None and self._done is not None and cause.action == self._done.action:
            self._done = cause
            self._show_done()
        elif self._engine.state.report is not None and (
            self._is_answering or self._engine.state.phase is Phase.ANSWERING
        ):
            self.state.set(GameState("waiting", cause.program) if cause is not None else self.state.value)
        elif cause is None:
            self._give_back()
        elif cause.action == "experts":
            await self._put_experts_on_cpu(cause)
        else:
            await self._unload(cause)

    @property
    def _is_answering(self) -> bool:
        """Whether an answer is running or being prepared."""
        return self._chat.busy or self._answers.is_answering

    async def _unload(self, cause: Cause) -> None:
        """Unload the model and let questions wait. A model that is unloaded already stays remembered."""
        report, original = self._engine.state.report, self._original
        if report is None and self._engine.state.idle_unloaded is None:
            return  # it is being loaded; the next look comes after that
        self._track = msgspec.structs.replace(self._track, active=cause)  # experts that can't move are unloaded
        freed = _gpu_bytes(report) if report is not None else 0
        self._needed_bytes = bytes_when_over(cause, self._pressure, freed)
        self._done = cause
        self._engine.hold_questions()
        await self._engine.unload_idle()
        if original is not None and self._engine.state.idle_unloaded is not None:
            self._engine.load_with_next_message(original)
        self._original = self._moved = None
        await self._show_with_others()

    async def _put_experts_on_cpu(self, cause: Cause) -> None:
        """Load the model with its experts on the CPU; unload it if that isn't possible."""
        report, original = self._engine.state.report, self._engine.state.requested
        options = await self._move_experts(report) if report is not None else None
        if report is not self._engine.state.report or self._is_answering:
            return  # the next look decides anew
        if options is None or report is None or original is None:
            await self._unload(msgspec.structs.replace(cause, action="unload"))
            return
        self._done, self._original, self._moved = cause, original, options
        before = self._pressure
        self._is_moving = True
        try:
            result = await self._engine.load(options)
        finally:
            self._is_moving = False
        if self._done is not cause:
            return  # the user has loaded another model meanwhile
        if isinstance(result, LoadFailure):
            self._engine.load_with_next_message(original)
            await self._unload(msgspec.structs.replace(cause, action="unload"))
            return
        self._needed_bytes = bytes_when_over(cause, before, _gpu_bytes(report) - _gpu_bytes(result))
        await self._show_with_others()

    def _give_back(self) -> None:
        """Let the model come back as it was."""
        done, original, report = self._done, self._original, self._engine.state.report
        self._forget()
        if done is None:
            return
        if done.action == "unload":
            self._engine.release_questions(load=self._settings.options.game_return == "automatic")
        elif original is not None and (report is not None or self._engine.state.idle_unloaded is not None):
            self._engine.load_with_next_message(original)
            if report is not None:
                self._engine.reload_idle()

    def _show_done(self) -> None:
        if self._done is not None:
            status: Literal["unloaded", "experts"] = "unloaded" if self._done.action == "unload" else "experts"
            self.state.set(GameState(status, self._done.program, self._others, self._others_problem))

    async def _show_with_others(self) -> None:
        """Show what was done, and then what other programs hold, to be offered too. Nothing of theirs is unloaded."""
        self._others, self._others_problem = (), ""
        self._show_done()
        if self._sources.held_elsewhere is not None:
            self._others = await self._sources.held_elsewhere()
            self._show_done()

    def _accept(self) -> None:
        """Note that the user wants the model loaded beside the programs that run now."""
        self._track = accept(self._track, ())
        self._was_loaded = True
        self._wake.set()
        self._forget()

    def _forget(self) -> None:
        self._done = self._original = self._moved = self._needed_bytes = None
        self.state.set(GameState())

    def _on_engine(self, state: EngineState) -> None:
        was, self._phase = self._phase, state.phase
        is_gone = state.report is None and state.idle_unloaded is None and state.engine_exit is None
        # While a load waits for the worker to start, the phase is STARTING for a moment.
        begins_load = state.phase is Phase.LOADING and was not in (Phase.LOADING, Phase.STARTING)
        if begins_load and state.requested != self._moved:
            if not self._expects_load:
                self._accept()  # the user loads a model
            self._expects_load = False
        elif self._done is not None and is_gone and not state.is_loading and not self._is_moving:
            self._forget()  # the user has ejected the model
        elif was is Phase.ANSWERING and state.phase is Phase.READY and self._track.active is not None:
            self._wake.set()

    def _on_options(self, _options: AppOptions) -> None:
        self._wake.set()


def _takes_memory(state: EngineState) -> bool:
    """Return whether a model takes memory of this PC, or will with the next question. One on a server doesn't."""
    waiting = state.idle_unloaded
    return state.local_report is not None or (waiting is not None and not is_served(waiting.model))


def _gpu_bytes(report: LoadReport) -> int:
    """Return the bytes that the engine allocated outside of the RAM."""
    return sum(row.total_bytes for row in report.allocations if row.device != "CPU")
