"""When a program counts as one that needs the card, and when that is over."""

from collections.abc import Sequence

import msgspec
import pytest

from qwendesk.core.app_options import AppOptions, ProgramRule
from qwendesk.core.units import GIB, MIB
from qwendesk.games.rules import (
    Cause,
    GameTrack,
    Observation,
    ProgramMemory,
    VramPressure,
    accept,
    bytes_when_over,
    find_cause,
    next_track,
)
from qwendesk.hardware.programs import RunningProgram

GAME, VIDEO = RunningProgram(900, "Cyberdrome.exe"), RunningProgram(77, "firefox")
LISTED = ProgramRule("cyberdrome", "unload")
PRESSING = Cause("Cyberdrome.exe", "unload", is_listed=False, pid=900)
QUIET = Observation()


def options(*rules: ProgramRule, **changes: object) -> AppOptions:
    return msgspec.structs.replace(AppOptions(game_programs=rules), **changes)


def short(
    *programs: ProgramMemory, full_screen: RunningProgram | None = None, is_in_front: bool = False
) -> Observation:
    pressure = VramPressure(is_short=True, programs=programs, free_bytes=300 * MIB)
    return Observation(running=(GAME, VIDEO), pressure=pressure, full_screen=full_screen, is_in_front=is_in_front)


def took(n_bytes: int, program: RunningProgram = GAME) -> ProgramMemory:
    return ProgramMemory(program.name, program.pid, n_bytes)


def runs(*programs: RunningProgram) -> Observation:
    return Observation(running=programs)


@pytest.mark.parametrize(
    ("seen", "chosen", "expected"),
    [
        (QUIET, options(LISTED), None),
        (runs(VIDEO), options(LISTED), None),
        (runs(VIDEO, GAME), options(LISTED), "cyberdrome: unload"),
        (runs(GAME), options(ProgramRule("Cyberdrome.exe", "experts")), "Cyberdrome.exe: experts"),
        (runs(GAME), options(ProgramRule("Cyberdrome.exe", "keep")), None),
        (runs(GAME, VIDEO), options(ProgramRule("Firefox", "experts"), LISTED), "cyberdrome: unload"),
        (short(took(2 * GIB)), options(), "Cyberdrome.exe: unload"),
        (short(took(2 * GIB)), options(game_action="experts"), "Cyberdrome.exe: experts"),
        (short(took(2 * GIB)), options(game_trigger="listed"), None),
        (short(took(2 * GIB)), options(game_trigger="full_screen"), None),
        (short(took(2 * GIB)), options(ProgramRule("cyberdrome.exe", "keep")), None),
        (short(took(2 * GIB), is_in_front=True), options(), None),
        (short(took(700 * MIB)), options(), None),
        (short(took(700 * MIB), full_screen=GAME), options(), "Cyberdrome.exe: unload"),
        (short(took(700 * MIB), full_screen=GAME), options(game_trigger="full_screen"), "Cyberdrome.exe: unload"),
        (short(took(300 * MIB), full_screen=GAME), options(), None),
        (short(took(300 * MIB, VIDEO), full_screen=VIDEO), options(), None),
        (short(full_screen=GAME), options(), None),
        (short(took(300 * MIB, VIDEO), took(2 * GIB)), options(), "Cyberdrome.exe: unload"),
        (short(took(2 * GIB, RunningProgram(5, "dwm.exe"))), options(), None),
        (short(took(2 * GIB, RunningProgram(5, "qwendesk-engine"))), options(), None),
        (short(ProgramMemory("", None, 2 * GIB)), options(), ": unload"),
        (short(ProgramMemory("", None, 700 * MIB), full_screen=GAME), options(), "Cyberdrome.exe: unload"),
        (Observation(pressure=VramPressure(programs=(took(9 * GIB),)), full_screen=GAME), options(), None),
    ],
)
def test_which_program_needs_the_card(seen: Observation, chosen: AppOptions, expected: str | None) -> None:
    cause = find_cause(GameTrack(), seen, chosen)
    assert (f"{cause.program}: {cause.action}" if cause is not None else None) == expected


def follow(track: GameTrack, looks: Sequence[Observation], chosen: AppOptions, needed: int | None = None) -> str:
    """A letter for each look: what the model makes room for after it (u, e), or a dash."""
    letters = ""
    for seen in looks:
        track = next_track(track, seen, chosen, needed)
        letters += track.active.action[0] if track.active is not None else "-"
    return letters


@pytest.mark.parametrize(
    ("looks", "expected"),
    [
        ([short(took(2 * GIB))] * 3, "-uu"),
        ([short(took(2 * GIB)), QUIET] * 3, "------"),
        ([*[short(took(2 * GIB))] * 2, *[runs(GAME)] * 4], "-uuuuu"),
        ([*[short(took(2 * GIB))] * 2, *[runs(VIDEO)] * 4], "-uuu--"),
        ([*[short(took(2 * GIB))] * 2, runs(), runs(), runs(GAME), runs(), runs(), runs()], "-uuuuuu-"),
    ],
    ids=["confirmed", "flickers", "stays while it runs", "ends", "restarts"],
)
def test_a_cause_must_be_confirmed_and_its_end_too(looks: list[Observation], expected: str) -> None:
    assert follow(GameTrack(), looks, options()) == expected


def test_memory_that_was_given_back_ends_the_cause_while_the_program_runs() -> None:
    track = GameTrack(active=PRESSING)
    before = VramPressure(is_short=True, programs=(took(4 * GIB),), free_bytes=0, spilled_bytes=GIB)
    needed = bytes_when_over(PRESSING, before, freed_bytes=20 * GIB)
    assert needed == 22 * GIB

    def free(n_gib: int) -> Observation:
        return Observation(running=(GAME,), pressure=VramPressure(free_bytes=n_gib * GIB))

    assert follow(track, [free(19)] * 4, options(), needed) == "uuuu", "that is what the model itself freed"
    assert follow(track, [free(23)] * 4, options(), needed) == "uu--"


@pytest.mark.parametrize(
    ("cause", "pressure"),
    [
        (PRESSING, VramPressure(programs=(took(GIB),))),
        (PRESSING, VramPressure(free_bytes=GIB)),
        (Cause("x", "unload", is_listed=True), VramPressure(programs=(took(GIB),), free_bytes=GIB)),
    ],
    ids=["free memory unknown", "program unknown", "listed"],
)
def test_without_numbers_only_the_end_of_the_program_counts(cause: Cause, pressure: VramPressure) -> None:
    assert bytes_when_over(cause, pressure, GIB) is None


def test_a_changed_rule_ends_the_cause() -> None:
    listed = GameTrack(active=Cause("cyberdrome", "unload", is_listed=True))
    assert follow(listed, [runs(GAME)] * 3, options(LISTED)) == "uuu"
    assert follow(listed, [runs(GAME)] * 3, options()) == "uu-"
    assert follow(listed, [runs(GAME)] * 3, options(ProgramRule("cyberdrome", "keep"))) == "uu-"
    pressing = GameTrack(active=PRESSING)
    assert follow(pressing, [runs(GAME)] * 3, options(ProgramRule("cyberdrome", "keep"))) == "uu-"
    assert follow(pressing, [runs(GAME)] * 3, options(game_trigger="listed")) == "uu-"
    assert follow(pressing, [runs(GAME)], options(LISTED, game_mode=False)) == "-"


def test_the_model_is_unloaded_if_moving_its_experts_was_not_enough() -> None:
    moved = GameTrack(active=msgspec.structs.replace(PRESSING, action="experts"))
    chosen = options(game_action="experts")
    assert follow(moved, [runs(GAME)] * 2 + [short(took(2 * GIB))] * 2, chosen) == "eeeu"
    listed = GameTrack(active=Cause("cyberdrome", "experts", is_listed=True))
    chosen = options(ProgramRule("cyberdrome", "experts"))
    assert follow(listed, [short(took(2 * GIB))] * 2, chosen) == "eu"


def test_one_program_after_another_leaves_no_gap() -> None:
    chosen = options(LISTED, ProgramRule("other", "unload"))
    other = RunningProgram(5, "other")
    track = GameTrack(active=Cause("cyberdrome", "unload", is_listed=True))
    assert follow(track, [runs(GAME, other), *[runs(other)] * 6], chosen) == "uuuuuuu"
    weaker = options(LISTED, ProgramRule("other", "experts"))
    assert follow(track, [*[runs(GAME, other)] * 3, *[runs(other)] * 2], weaker) == "uuuue"


def test_a_program_that_the_user_accepted_counts_again_when_it_has_been_restarted() -> None:
    chosen = options(LISTED)
    track = accept(GameTrack(active=Cause("cyberdrome", "unload", is_listed=True)), ())
    assert follow(track, [runs(GAME)] * 4, chosen) == "----"
    assert follow(track, [runs(GAME), runs(), runs(GAME), runs(GAME)], chosen) == "---u"
    pressing = accept(GameTrack(active=PRESSING), ())
    assert follow(pressing, [short(took(3 * GIB), full_screen=GAME)] * 3, chosen) == "---"
    unknown = accept(GameTrack(active=Cause("", "unload", is_listed=False)), ())
    assert follow(unknown, [short(ProgramMemory("", None, 3 * GIB))] * 3, options()) == "---"
