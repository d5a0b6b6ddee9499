"""Chooses what auto-tune measures next, by the speeds that were measured so far. Pure functions.

It is coordinate descent: one option is changed at a time, in the order of expected gain, and a change stays if it
gains more than the measurements scatter, twice. The rounds end when none of the options gains any more, or with the
time. At the end the user's own settings are measured once more, so that luck isn't taken for a gain.
"""

import math
from collections.abc import Generator, Mapping, Sequence
from typing import Any

import msgspec

from qwendesk.core.benchmarks import SpeedSamples

Changes = Mapping[str, Any]
"""Load options by key that differ from the user's own settings."""
PROMPT_TOKENS, ANSWER_TOKENS = 1500, 300
"""The typical turn whose time is to become short: a question with a document or some history, and its answer."""
LEAST_GAIN = 0.02
"""A smaller share of the time isn't worth a change, however exactly it was measured."""
_MOST_ROUNDS = 3


class Dimension(msgspec.Struct, frozen=True, kw_only=True):
    """An option, or options that change together, with the values worth measuring."""

    steps: tuple[dict[str, Any], ...]
    """What each value changes of the user's settings; empty for their own value, which is among them."""
    is_scale: bool = False
    """Whether the steps are in the order of a quantity. Then neighbours of the best value are measured, in one
    direction as long as it gains; otherwise every step is."""

    @property
    def keys(self) -> frozenset[str]:
        return frozenset(key for step in self.steps for key in step)

    def position(self, changes: Changes) -> int:
        """Return which step `changes` contain."""
        own = {key: value for key, value in changes.items() if key in self.keys}
        return self.steps.index(own)

    def moved(self, changes: Changes, position: int) -> dict[str, Any]:
        """Return `changes` with another step of this dimension."""
        others = {key: value for key, value in changes.items() if key not in self.keys}
        return {**others, **self.steps[position]}


class Speed(msgspec.Struct, frozen=True):
    """The measured speeds of one set of options."""

    prompt: SpeedSamples
    decode: SpeedSamples

    @property
    def turn_s(self) -> float:
        """Seconds of a typical turn."""
        return PROMPT_TOKENS / self.prompt.median + ANSWER_TOKENS / self.decode.median

    @property
    def turn_spread_s(self) -> float:
        """By how many seconds `turn_s` scatters, from the standard deviations of both speeds."""
        prompt = PROMPT_TOKENS * self.prompt.spread / self.prompt.median**2
        return math.hypot(prompt, ANSWER_TOKENS * self.decode.spread / self.decode.median**2)


class TriedOptions(msgspec.Struct, frozen=True, kw_only=True):
    """One set of options that was tried."""

    changes: dict[str, Any]
    speed: Speed | None = None
    why_not: str = ""
    """Why there is no speed, in a sentence: it doesn't fit, it spilled, or the engine failed."""
    spilled: bool = False
    seconds: float = 0.0
    """How long it took, with the load."""


def gains(new: Speed | None, old: Speed | None) -> bool:
    """Return whether `new` is faster than `old` by more than both scatter."""
    if new is None or old is None:
        return False
    gained_s = old.turn_s - new.turn_s
    return gained_s > max(new.turn_spread_s + old.turn_spread_s, LEAST_GAIN * old.turn_s)


def next_candidate(
    dimensions: Sequence[Dimension], trials: Sequence[TriedOptions], left_s: float
) -> dict[str, Any] | None:
    """Return the changes to measure next; None if nothing is left to try, or not enough of the time.

    The first ones are none at all: the user's own settings. What gains is measured once more.
    """
    if not trials:
        return {}
    longest_s = max((trial.seconds for trial in trials if trial.speed is not None), default=0.0)
    # Two more are for measuring once more what gained, and the user's own settings.
    if left_s >= 3 * longest_s:
        wanted = _next_new(dimensions, trials)
        if wanted is not None:
            return wanted
    return _next_confirmation(trials) if left_s >= longest_s else None


def best_trial(trials: Sequence[TriedOptions]) -> TriedOptions | None:
    """Return the fastest trial, where a later one counts as faster only if it `gains`; None without any speed."""
    best: TriedOptions | None = None
    for trial in measured(trials):
        if best is None or gains(trial.speed, best.speed):
            best = trial
    return best


def best_confirmed(trials: Sequence[TriedOptions]) -> TriedOptions | None:
    """Return the fastest of the user's own settings and of what was measured at least twice."""
    return best_trial([trial for trial in trials if not trial.changes or _count(trial.changes, trials) > 1])


def measured(trials: Sequence[TriedOptions]) -> tuple[TriedOptions, ...]:
    """Return one trial for each set of options that has a speed, with the samples of all its measurements."""
    found: list[TriedOptions] = []
    for trial in trials:
        if trial.speed is None:
            continue
        at = next((at for at, each in enumerate(found) if each.changes == trial.changes), None)
        if at is None:
            found.append(trial)
        else:
            found[at] = msgspec.structs.replace(found[at], speed=_joined(found[at].speed, trial.speed))
    return tuple(found)


def _joined(first: Speed | None, second: Speed) -> Speed:
    if first is None:
        return second
    return Speed(_joined_samples(first.prompt, second.prompt), _joined_samples(first.decode, second.decode))


def _joined_samples(first: SpeedSamples, second: SpeedSamples) -> SpeedSamples:
    return SpeedSamples(
        tok_s=(*first.tok_s, *second.tok_s),
        drafted=first.drafted + second.drafted,
        accepted=first.accepted + second.accepted,
    )


def _next_new(dimensions: Sequence[Dimension], trials: Sequence[TriedOptions]) -> dict[str, Any] | None:
    """Go through the search with the results of all trials, and return what it asks for after them."""
    search = _descend(dimensions)
    wanted = next(search)
    try:
        while (known := _known(wanted, trials)) is not None:
            wanted = search.send(known)
    except StopIteration:
        return None
    return wanted.changes


class _Wanted(msgspec.Struct, frozen=True):
    """A set of options whose first or second measurement the search needs."""

    changes: dict[str, Any]
    is_second: bool = False


_Search = Generator[_Wanted, TriedOptions, TriedOptions]


def _known(wanted: _Wanted, trials: Sequence[TriedOptions]) -> TriedOptions | None:
    """Return the wanted measurement; None if it wasn't made."""
    found = [trial for trial in trials if trial.changes == wanted.changes]
    return found[wanted.is_second] if len(found) > wanted.is_second else None


def _next_confirmation(trials: Sequence[TriedOptions]) -> dict[str, Any] | None:
    """Return the best changes if they were measured once, then the user's settings; None if both are confirmed."""
    best = best_trial(trials)
    if best is None or not best.changes:
        return None
    for changes in (best.changes, {}):
        if _count(changes, trials) < 2:
            return changes
    return None


def _count(changes: Changes, trials: Sequence[TriedOptions]) -> int:
    return sum(trial.changes == changes for trial in trials)


def _descend(dimensions: Sequence[Dimension]) -> Generator[_Wanted, TriedOptions, None]:
    """Yield what to measure, and receive the results."""
    best = yield _Wanted({})
    if best.speed is None:
        return
    for _ in range(_MOST_ROUNDS):
        before = best
        for dimension in dimensions:
            best = yield from (_along if dimension.is_scale else _among)(dimension, best)
        if best is before:
            return


def _try(changes: dict[str, Any], best: TriedOptions) -> _Search:
    """Measure changes, and once more if they gain: of many measurements, some are fast by luck."""
    trial = yield _Wanted(changes)
    if not gains(trial.speed, best.speed):
        return trial
    again = yield _Wanted(changes, is_second=True)
    return measured((trial, again))[0] if gains(again.speed, best.speed) else again


def _among(dimension: Dimension, best: TriedOptions) -> _Search:
    """Try every other step."""
    base = best
    for position in range(len(dimension.steps)):
        if position != dimension.position(base.changes):
            trial = yield from _try(dimension.moved(base.changes, position), best)
            best = trial if gains(trial.speed, best.speed) else best
    return best


def _along(dimension: Dimension, best: TriedOptions) -> _Search:
    """Go up as long as it gains, or else down. One step without a difference is passed over."""
    start = dimension.position(best.changes)
    for direction in (1, -1):
        position, was_flat, has_gained = start + direction, False, False
        while 0 <= position < len(dimension.steps):
            trial = yield from _try(dimension.moved(best.changes, position), best)
            if gains(trial.speed, best.speed):
                best, was_flat, has_gained = trial, False, True
            elif trial.speed is None or was_flat or gains(best.speed, trial.speed):
                break
            else:
                was_flat = True
            position += direction
        if has_gained:
            break
    return best
