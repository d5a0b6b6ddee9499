"""What auto-tune tried and found, in words. No Qt."""

import math
from collections.abc import Sequence

import msgspec

from qwendesk.bench.auto_tune import TuneState
from qwendesk.bench.tune_rules import LEAST_GAIN, Speed, TriedOptions, change_texts, gains, measured
from qwendesk.core.everyday_units import rate_text
from qwendesk.core.number_format import show_decimal
from qwendesk.core.translation import join_list, join_sentences, tr, tr_n
from qwendesk.core.units import show_rate


class TuneLine(msgspec.Struct, frozen=True, kw_only=True):
    """One set of options that was tried."""

    name: str
    prompt: str = ""
    """Speed of prompts, in tokens per second."""
    answer: str = ""
    """Speed of answers, in tokens per second."""
    remark: str = ""
    """The gain of a typical turn over the user's own settings, or why there is no speed."""
    is_found: bool = False


def tune_lines(state: TuneState) -> tuple[TuneLine, ...]:
    """Return a line for each set of options, in the order in which they were tried; the user's own is the first."""
    joined = {str(trial.changes): trial for trial in measured(state.trials)}
    tried = {str(trial.changes): joined.get(str(trial.changes), trial) for trial in state.trials}
    return tuple(_line(trial, state, tuple(tried)) for trial in tried.values())


def result_sentence(state: TuneState) -> str:
    """Return what came of a run, in a sentence; "" while it runs, before the first one, and after a failure."""
    own, found = state.own, state.found
    if state.is_running or state.failure or state.options is None:
        return ""
    if own is None or own.speed is None:
        return tr("It ended before the speed of your settings was known.")
    n_tried, yours = len(tune_lines(state)), rate_text(own.speed.decode.median)
    if n_tried == 1:
        if state.was_stopped:
            return tr("Stopped before other settings were tried. Yours: {0}.", yours)
        return tr("There was no time to try other settings. Yours: {0}.", yours)
    stopped = tr("Stopped after {0} of {1} settings.", n_tried, max(state.n_planned, n_tried))
    if found is not None and found.speed is not None:
        gain = _gain_sentence(own.speed, found.speed)
        return join_sentences(stopped, tr("This is the best so far."), gain) if state.was_stopped else gain
    is_fastest = not any(_looks_faster(trial.speed, own.speed) for trial in measured(state.trials))
    if state.was_stopped and is_fastest:
        return join_sentences(stopped, tr("Yours is the fastest so far: {0}.", yours))
    if state.was_stopped:
        return join_sentences(stopped, tr("None is clearly faster than yours so far: {0}.", yours))
    if is_fastest:
        return tr("Your settings are already the fastest: {0}.", yours)
    return tr("No other setting is clearly faster than yours: {0}.", yours)


def _looks_faster(speed: Speed | None, own: Speed) -> bool:
    """Return whether answers or a typical turn were faster, by more than `LEAST_GAIN`, be it by luck."""
    if speed is None:
        return False
    is_turn_faster = speed.turn_s < (1 - LEAST_GAIN) * own.turn_s
    return is_turn_faster or speed.decode.median > (1 + LEAST_GAIN) * own.decode.median


def changes_sentence(state: TuneState) -> str:
    """Return what changes with the options that were found; "" if none were, and while it runs."""
    if not result_sentence(state) or state.found is None:
        return ""
    return tr("What changes: {0}. The model is loaded again for it.", join_list(change_texts(state.found.changes)))


def progress_text(state: TuneState) -> str:
    """Return what is measured now, and how long it may take."""
    if state.plan is None:
        return tr("Loading the model…")
    now = _name(state.current) if state.current is not None else tr("Getting ready")
    if state.left_s < 60:
        left = tr("{0} s at most", show_decimal(state.left_s, 0))
    else:
        left = tr_n("{0} minute at most", "{0} minutes at most", math.ceil(state.left_s / 60))
    n_spilled = state.n_spilled
    return " · ".join((now, left, *([tr_n("{0} spilled", "{0} spilled", n_spilled)] if n_spilled else [])))


def _gain_sentence(own: Speed, found: Speed) -> str:
    """Return by how much answers, or else prompts, are faster."""
    gain = found.decode.median / own.decode.median - 1
    if gain >= LEAST_GAIN:
        before, after = rate_text(own.decode.median), rate_text(found.decode.median)
        return tr("{0}% faster is possible: {1} instead of {2}.", show_decimal(100 * gain, 0), after, before)
    gain = found.prompt.median / own.prompt.median - 1
    before, after = show_rate(own.prompt.median), show_rate(found.prompt.median)
    return tr("Prompts can be read {0}% faster: {1} tok/s instead of {2}.", show_decimal(100 * gain, 0), after, before)


def _name(changes: dict[str, object]) -> str:
    return join_list(change_texts(changes)) or tr("Your settings")


def _line(trial: TriedOptions, state: TuneState, tried: Sequence[str]) -> TuneLine:
    name, speed, own, found = _name(trial.changes), trial.speed, state.own, state.found
    if speed is None or own is None or own.speed is None:
        return TuneLine(name=name, remark=trial.why_not)
    is_found = found is not None and trial.changes == found.changes
    remark = ""
    if trial.changes:
        best = tried.index(str(found.changes)) + 1 if found is not None and not is_found else 0
        is_best = best and found is not None and not gains(found.speed, speed)
        is_repeated = sum(each.changes == trial.changes for each in state.trials) > 1
        remark = tr("about the same as {0}", best) if is_best else _gain_text(speed, own.speed, is_repeated=is_repeated)
    return TuneLine(
        name=name,
        prompt=show_rate(speed.prompt.median),
        answer=show_rate(speed.decode.median),
        remark=remark,
        is_found=is_found,
    )


def _gain_text(speed: Speed, own: Speed, *, is_repeated: bool) -> str:
    percent = round(100 * (own.turn_s / speed.turn_s - 1))
    if gains(speed, own):
        gained = _percent(percent)
        return gained if is_repeated else tr("{0}, measured once", gained)
    return _percent(percent) if gains(own, speed) else _unclear_text(speed, own, percent)


def _unclear_text(speed: Speed, own: Speed, percent: int) -> str:
    """Return why a turn isn't clearly faster or slower: answers and prompts differ, or the runs do."""
    answers, prompts = (
        round(100 * (new.median / old.median - 1))
        for new, old in ((speed.decode, own.decode), (speed.prompt, own.prompt))
    )
    least = 100 * LEAST_GAIN
    if min(answers, prompts) < -least and max(answers, prompts) > least:
        return tr("answers {0}, prompts {1}", _percent(answers), _percent(prompts))
    if abs(percent) <= least:
        return tr("about the same")
    scatter = 100 * (speed.turn_spread_s + own.turn_spread_s) / own.turn_s
    return tr("{0}, but runs differ by {1}%", _percent(percent), show_decimal(scatter, 0))


def _percent(percent: int) -> str:
    return f"{'−' if percent < 0 else '+'}{show_decimal(abs(percent), 0)}%"
