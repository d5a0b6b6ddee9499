"""Decides from observations when the model makes room for another program, how, and when it may come back. Pure.

A program needs the card if the user listed it. It also does if video memory runs short, QwenDesk isn't in front, and
the program has taken much of it since the model was loaded. So a browser with a video in full screen changes nothing
while the memory suffices, and nothing happens to a user who chats: the spill banner offers what helps.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import Literal

import msgspec
import psutil

from qwendesk.core.app_options import AppOptions, ProgramRule
from qwendesk.core.failures import LoadFailure
from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.options import LoadOptions
from qwendesk.core.units import GIB, MIB
from qwendesk.engine.protocol import LoadReport
from qwendesk.hardware.ladder import ModelShape, step_levels
from qwendesk.hardware.programs import RunningProgram, is_same_program
from qwendesk.hardware.spill import SpillState
from qwendesk.meters.meter_state import MeterState

# A program that took this much since the load needs the card, if video memory is short.
GROWN_BYTES = GIB
# The same for a program in full screen: less, because a game takes its memory little by little.
FULL_SCREEN_BYTES = 512 * MIB
# How many looks in a row, which are 2 s apart, must agree before the model makes room, and before it comes back.
_CONFIRM_LOOKS, _END_LOOKS = 2, 3
# Programs that never count: those that draw the desktop, whose memory is that of others' windows, and our own.
_NEVER = (
    "dwm", "explorer", "xorg", "xwayland", "gnome-shell", "kwin_x11", "kwin_wayland",
    "qwendesk", "qwendesk-gui", "qwendesk-engine", "qwendeskengine",
)  # fmt: skip


class ProgramMemory(msgspec.Struct, frozen=True):
    """How much video memory a program has taken since the model was loaded.

    The name is "" and the pid None for all other programs together, where the system tells no more.
    """

    name: str
    pid: int | None
    n_bytes: int


class VramPressure(msgspec.Struct, frozen=True, kw_only=True):
    """The video memory of the GPUs that the model is on."""

    is_short: bool = False
    """Less is free than should be, or the model spills."""
    programs: tuple[ProgramMemory, ...] = ()
    free_bytes: int | None = None
    """Free memory of all GPUs with memory of their own, also while no model is loaded; None if unknown."""
    spilled_bytes: int = 0
    """Bytes of the model in shared memory."""


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """The findings of one look."""

    running: tuple[RunningProgram, ...] = ()
    """All programs; () if no rule needs them."""
    pressure: VramPressure = VramPressure()
    full_screen: RunningProgram | None = None
    is_in_front: bool = False
    """True if QwenDesk is the program that the user works with."""


class Cause(msgspec.Struct, frozen=True):
    """The program that the model makes room for, and how."""

    program: str
    """File name; "" if the system doesn't tell which program took the memory."""
    action: Literal["unload", "experts"]
    is_listed: bool
    pid: int | None = None


class GameTrack(msgspec.Struct, frozen=True, kw_only=True):
    """The decision after a look, with what the next one needs."""

    active: Cause | None = None
    candidate: Cause | None = None
    """Another cause, which the next looks must confirm."""
    looks: int = 0
    """Number of looks in a row that found the candidate, or the end of the active cause."""
    accepted: tuple[str, ...] = ()
    """Programs that run beside the model because the user wants it; "" for unknown ones."""


def may_count(program: str) -> bool:
    """Return whether a program can need the card at all: it has a name, and isn't QwenDesk or the desktop itself."""
    return bool(program) and not _is_in(_NEVER, program)


def rule_of(options: AppOptions, program: str) -> ProgramRule | None:
    """Return the user's rule for a program, or None."""
    return next((rule for rule in options.game_programs if is_same_program(rule.name, program)), None)


def next_track(track: GameTrack, seen: Observation, options: AppOptions, needed_bytes: int | None) -> GameTrack:
    """Return the track after one more look. `needed_bytes` must be free before the active cause counts as over."""
    if not options.game_mode:
        return GameTrack()
    track = msgspec.structs.replace(track, accepted=_still_accepted(track.accepted, seen))
    found, active = find_cause(track, seen, options), track.active
    if active is not None:
        is_over = _is_over(active, seen, options, needed_bytes)
        if not is_over and (found is None or active.action in ("unload", found.action)):
            return msgspec.structs.replace(track, candidate=None, looks=0)
        if is_over and found is None:
            looks = track.looks + 1 if track.candidate is None else 1
            ended = GameTrack(accepted=track.accepted)
            return ended if looks >= _END_LOOKS else msgspec.structs.replace(track, candidate=None, looks=looks)
    if found is None:
        return msgspec.structs.replace(track, candidate=None, looks=0)
    looks = track.looks + 1 if found == track.candidate else 1
    if looks < _CONFIRM_LOOKS:
        return msgspec.structs.replace(track, candidate=found, looks=looks)
    return GameTrack(active=found, accepted=track.accepted)


def accept(track: GameTrack, programs: Iterable[str]) -> GameTrack:
    """Return the track after the user chose to have the model loaded beside these programs and the active one."""
    active = () if track.active is None else (track.active.program,)
    return GameTrack(accepted=tuple(dict.fromkeys((*track.accepted, *active, *programs))))


def bytes_when_over(cause: Cause, pressure: VramPressure, freed_bytes: int) -> int | None:
    """Return how much video memory is free once the program of `cause` has given most of what it took back.

    `pressure` is from before the model made room, and `freed_bytes` is what that freed. None if it can't be known, or
    if it doesn't matter because the program is listed.
    """
    taken = [each.n_bytes for each in pressure.programs if each.pid in (cause.pid, None)]
    if cause.is_listed or not taken or pressure.free_bytes is None:
        return None
    return pressure.free_bytes - pressure.spilled_bytes + freed_bytes + max(taken) * 3 // 4


def listed_programs(seen: Observation, options: AppOptions) -> Iterator[Cause]:
    """Yield a cause for each running program whose rule asks for room, those to unload for first."""
    for action in ("unload", "experts"):
        for rule in options.game_programs:
            if rule.action == action and _runs(rule.name, seen.running):
                yield Cause(rule.name, action, is_listed=True)


def find_cause(track: GameTrack, seen: Observation, options: AppOptions) -> Cause | None:
    """Return the program that needs the card at this look; None if none does."""
    listed = next((each for each in listed_programs(seen, options) if not _is_in(track.accepted, each.program)), None)
    if listed is not None and listed.action == "unload":
        return listed
    return _pressing_program(track, seen, options) or listed


def _pressing_program(track: GameTrack, seen: Observation, options: AppOptions) -> Cause | None:
    """Return the program that takes so much video memory that the model doesn't fit any more."""
    pressure = seen.pressure
    if options.game_trigger == "listed" or not pressure.is_short or seen.is_in_front:
        return None
    moved_experts = track.active is not None and track.active.action == "experts"
    for each in sorted(pressure.programs, key=lambda each: each.n_bytes, reverse=True):
        program, is_full_screen = _with_full_screen(each, seen.full_screen)
        rule = rule_of(options, program.name)
        # The memory is short again after the experts moved: that wasn't enough, whatever the rule says.
        counts = rule is None or (rule.action == "experts" and moved_experts)
        if not counts or _is_in(track.accepted, program.name) or _is_in(_NEVER, program.name):
            continue
        least = FULL_SCREEN_BYTES if is_full_screen else GROWN_BYTES
        if program.n_bytes >= least and (is_full_screen or options.game_trigger == "growing"):
            action = "unload" if moved_experts else options.game_action
            return Cause(program.name, action, is_listed=False, pid=program.pid)
    return None


def _with_full_screen(program: ProgramMemory, full_screen: RunningProgram | None) -> tuple[ProgramMemory, bool]:
    """Return a program and whether it is the one in full screen, which also names memory that nobody has a name for."""
    if full_screen is None:
        return program, False
    if program.pid is None:
        return ProgramMemory(full_screen.name, full_screen.pid, program.n_bytes), True
    return program, program.pid == full_screen.pid or is_same_program(program.name, full_screen.name)


def _is_over(cause: Cause, seen: Observation, options: AppOptions, needed_bytes: int | None) -> bool:
    """Return whether a program no longer needs the card: it has ended, it gave its memory back, or its rule changed."""
    rule = rule_of(options, cause.program)
    if cause.is_listed:
        return rule is None or rule.action == "keep" or not _runs(cause.program, seen.running)
    if (rule is not None and rule.action == "keep") or options.game_trigger == "listed":
        return True
    if cause.pid is not None and all(each.pid != cause.pid for each in seen.running):
        return True
    free = seen.pressure.free_bytes
    return needed_bytes is not None and free is not None and free >= needed_bytes


def _still_accepted(accepted: tuple[str, ...], seen: Observation) -> tuple[str, ...]:
    return tuple(name for name in accepted if (_runs(name, seen.running) if name else seen.pressure.is_short))


def _runs(name: str, running: Iterable[RunningProgram]) -> bool:
    return any(is_same_program(each.name, name) for each in running)


def _is_in(names: Iterable[str], program: str) -> bool:
    return any(is_same_program(name, program) if name else not program for name in names)


def vram_pressure(meters: MeterState) -> VramPressure:
    """Return what the meters say of the video memory, as game mode takes it."""
    short = (SpillState.NEAR_LIMIT, SpillState.SPILLING, SpillState.SUSPECTED)
    return VramPressure(
        is_short=meters.state in short,
        programs=tuple(ProgramMemory(each.name, each.pid, each.n_bytes) for each in meters.consumers),
        free_bytes=sum(bar.total_bytes - bar.used_bytes for bar in meters.bars) if meters.bars else None,
        spilled_bytes=sum(bar.excess_bytes for bar in meters.bars),
    )


def programs_on_gpus(meters: MeterState) -> tuple[str, ...]:
    """Return the names of other programs that use a GPU now, those with the most memory first."""
    gpus = meters.snapshot.gpus if meters.snapshot is not None else ()
    used: dict[str, int] = {}
    for row in (row for gpu in gpus for row in gpu.processes or ()):
        used[row.name] = used.get(row.name, 0) + (row.dedicated_bytes or 0)
    return tuple(name for name in sorted(used, key=lambda name: -used[name]) if may_count(name))


# RAM that stays free for the game.
_RAM_LEFT_BYTES = 2 * GIB

ReadHeaders = Callable[[LoadOptions], tuple[ModelFacts, ModelFacts | None] | LoadFailure]


async def experts_on_cpu(
    report: LoadReport, read_headers: ReadHeaders, ram_bytes: int | None = None
) -> LoadOptions | None:
    """Return how to load this model with all its experts on the CPU, and everything else as it is.

    None if it has no experts on a GPU, or if RAM would be short. `read_headers` blocks. `ram_bytes` is the RAM that is
    available; None takes what is so now.
    """
    available = psutil.virtual_memory().available if ram_bytes is None else ram_bytes
    on_gpu = sum(row.weights_bytes for row in report.allocations if row.device != "CPU")
    if not on_gpu or available - on_gpu < _RAM_LEFT_BYTES:
        return None
    headers = await asyncio.to_thread(read_headers, report.options)
    if isinstance(headers, LoadFailure) or not headers[0].expert_count:
        return None
    shape = ModelShape(report.n_layers, report.n_layers, has_vision=bool(report.options.mmproj))
    levels = tuple(step_levels("experts", report.options, shape))
    return levels[-1] if levels else None
