"""What auto-tune tried and found, in words. No Qt."""

import math
from collections.abc import Sequence

import msgspec

from qwendesk.bench.auto_tune import TuneState
from qwendesk.bench.tune_rules import (
    LEAST_GAIN,
    Speed,
    TriedOptions,
    change_texts,
    gains,
    measured,
    percent_faster,
    scatter_percent,
)
from qwendesk.core.benchmarks import SpeedSamples
from qwendesk.core.everyday_units import rate_text
from qwendesk.core.number_format import show_decimal
from qwendesk.core.translation import join_list, join_sentences, tr, tr_n
from qwendesk.core.units import show_rate


class TuneLine(msgspec.Struct, frozen=True, kw_only=True):
    """One set of options that was tried."""

    name: str
    code: str = ""
    """The changed load options, as in "n_threads=1"."""
    prompt: str = ""
    """Speed of prompts in tokens per second, and its difference from the user's own settings: "103 (+20%)"."""
    answer: str = ""
    """The same of answers."""
    remark: str = ""
    """Whether a typical turn is faster, or why there is no speed."""
    is_found: bool = False


def tune_lines(state: TuneState) -> tuple[TuneLine, ...]:
    """Return a line for each set of options, in the order in which they were tried; the user's own is the first."""
    joined = {str(trial.changes): trial for trial in measured(state.trials)}
    tried = {str(trial.changes): joined.get(str(trial.changes), trial) for trial in state.trials}
    return tuple(_line(trial, state, tuple(tried)) for trial in tried.values())


class MainGain(msgspec.Struct, frozen=True):
    """What the options to use make faster: answers, or else prompts. In tokens per second."""

    new: SpeedSamples
    old: SpeedSamples
    is_prompt: bool

    @property
    def percent(self) -> int:
        return percent_faster(self.new, self.old)

    @property
    def before(self) -> str:
        return _rate(self.old.median, is_prompt=self.is_prompt)

    @property
    def after(self) -> str:
        return _rate(self.new.median, is_prompt=self.is_prompt)


def main_gain(state: TuneState) -> MainGain | None:
    """Return what is gained with what is used, or else with the first offer; None if there is none."""
    shown, own = state.used or next(iter(state.offers), None), state.own
    if shown is None or shown.speed is None or own is None or own.speed is None:
        return None
    new, old = shown.speed, own.speed
    if percent_faster(new.decode, old.decode) >= 100 * LEAST_GAIN:
        return MainGain(new.decode, old.decode, is_prompt=False)
    return MainGain(new.prompt, old.prompt, is_prompt=True)


def result_sentence(state: TuneState, *, is_in_use: bool = False) -> str:
    """Return what came of a run, in a sentence; "" while it runs, before the first one, and after a failure.

    `is_in_use` is true if the chosen model has the options that the user chose to use.
    """
    own = state.own
    if state.is_running or state.failure or state.options is None:
        return ""
    if own is None or own.speed is None:
        return tr("It ended before the speed of your settings was known.")
    n_tried, yours = len(tune_lines(state)), rate_text(own.speed.decode.median)
    if n_tried == 1:
        if state.was_stopped:
            return tr("Stopped before other settings were tried. Yours: {0}.", yours)
        return tr("There was no time to try other settings. Yours: {0}.", yours)
    gain = main_gain(state)
    if gain is not None and is_in_use:
        return join_sentences(_in_use_sentence(gain), _loss_sentence(state))
    stopped = _stopped_sentence(n_tried, state.n_planned) if state.was_stopped else ""
    if gain is not None:
        best = tr("This is the best so far.") if state.was_stopped and state.found is not None else ""
        return join_sentences(stopped, best, _gain_sentence(gain), _loss_sentence(state))
    is_fastest = not any(_looks_faster(trial.speed, own.speed) for trial in measured(state.trials))
    if state.was_stopped and is_fastest:
        return join_sentences(stopped, tr("Yours is the fastest so far: {0}.", yours))
    if state.was_stopped:
        return join_sentences(stopped, tr("None is clearly faster than yours so far: {0}.", yours))
    if is_fastest:
        return tr("Your settings are already the fastest: {0}.", yours)
    return tr("No other setting is clearly faster than yours: {0}.", yours)


def _stopped_sentence(n_tried: int, n_planned: int) -> str:
    if n_tried < n_planned:
        return tr("Stopped after {0} of {1} settings.", n_tried, n_planned)
    return tr("Stopped after {0} settings, before the last check.", n_tried)


def _looks_faster(speed: Speed | None, own: Speed) -> bool:
    """Return whether answers or a typical turn were faster, by more than `LEAST_GAIN`, be it by luck."""
    if speed is None:
        return False
    is_turn_faster = speed.turn_s < (1 - LEAST_GAIN) * own.turn_s
    return is_turn_faster or speed.decode.median > (1 + LEAST_GAIN) * own.decode.median


def changes_sentence(state: TuneState) -> str:
    """Return what changes with the options to use; "" if there are none, and while it runs."""
    if state.used is not None:
        changed = tr("What changed: {0}.", _name(state.used.changes))
        return join_sentences(changed, tr("Saved as the profile “Auto-tuned”."))
    if not result_sentence(state) or not state.offers:
        return ""
    return tr("What changes: {0}. The model is loaded again for it.", _name(state.offers[0].changes))


def other_sentence(state: TuneState) -> str:
    """Return what the second offer gains and costs; "" if there is none, and after the user's choice."""
    own, offers = state.own, state.offers
    if not result_sentence(state) or state.used is not None or own is None or own.speed is None or len(offers) < 2:
        return ""
    new, old = offers[1].speed, own.speed
    if new is None:
        return ""
    answers, prompts = percent_faster(new.decode, old.decode), percent_faster(new.prompt, old.prompt)
    return tr(
        "For faster answers: {0}. Against yours: answers {1}, prompts {2}.",
        _name(offers[1].changes), _percent(answers), _percent(prompts),
    )  # fmt: skip


def progress_text(state: TuneState) -> str:
    """Return what is measured now, and how long it may take."""
    if state.plan is None:
        return tr("Loading the model…")
    now = _name(state.current) if state.current is not None else tr("Getting ready")
    if any(trial.changes == state.current and trial.speed is not None for trial in state.trials):
        now = tr("{0}, once more", now)
    if state.left_s < 60:
        left = tr("{0} s at most", show_decimal(state.left_s, 0))
    else:
        left = tr_n("{0} minute at most", "{0} minutes at most", math.ceil(state.left_s / 60))
    n_spilled = state.n_spilled
    return " · ".join((now, left, *([tr_n("{0} spilled", "{0} spilled", n_spilled)] if n_spilled else [])))


def _rate(tok_s: float, *, is_prompt: bool) -> str:
    return tr("{0} tok/s", show_rate(tok_s)) if is_prompt else rate_text(tok_s)


def _gain_sentence(gain: MainGain) -> str:
    """Return by how much answers, or else prompts, are faster."""
    percent = show_decimal(gain.percent, 0)
    if gain.is_prompt:
        return tr("Prompts can be read {0}% faster: {1} instead of {2}.", percent, gain.after, gain.before)
    return tr("Answers can be {0}% faster: {1} instead of {2}.", percent, gain.after, gain.before)


def _in_use_sentence(gain: MainGain) -> str:
    percent = show_decimal(gain.percent, 0)
    if gain.is_prompt:
        return tr("In use now: prompts are read {0}% faster, {1} instead of {2}.", percent, gain.after, gain.before)
    return tr("In use now: answers are {0}% faster, {1} instead of {2}.", percent, gain.after, gain.before)


def _loss_sentence(state: TuneState) -> str:
    """Return what is slower with what is used or offered first; "" if nothing is."""
    shown, own = state.used or next(iter(state.offers), None), state.own
    if shown is None or shown.speed is None or own is None or own.speed is None:
        return ""
    new, old, least = shown.speed, own.speed, -100 * LEAST_GAIN
    answers, prompts = percent_faster(new.decode, old.decode), percent_faster(new.prompt, old.prompt)
    if prompts < least:
        return tr("But prompts are read {0}% slower.", show_decimal(-prompts, 0))
    if answers < least:
        return tr("But answers are {0}% slower.", show_decimal(-answers, 0))
    return ""


def _name(changes: dict[str, object]) -> str:
    return join_list(change_texts(changes)) or tr("Your settings")


def _line(trial: TriedOptions, state: TuneState, tried: Sequence[str]) -> TuneLine:
    name, speed, own, found = _name(trial.changes), trial.speed, state.own, state.found
    code = " ".join(f"{key}={value}" for key, value in trial.changes.items())
    if speed is None or own is None or own.speed is None:
        return TuneLine(name=name, code=code, remark=trial.why_not)
    return TuneLine(
        name=name,
        code=code,
        prompt=_cell(speed.prompt, own.speed.prompt, has_percent=bool(trial.changes)),
        answer=_cell(speed.decode, own.speed.decode, has_percent=bool(trial.changes)),
        remark=_remark(trial, speed, own.speed, state, tried) if trial.changes else "",
        is_found=found is not None and trial.changes == found.changes,
    )


def _cell(speed: SpeedSamples, own: SpeedSamples, *, has_percent: bool) -> str:
    rate = show_rate(speed.median)
    return f"{rate} ({_percent(percent_faster(speed, own))})" if has_percent else rate


def _remark(trial: TriedOptions, speed: Speed, own: Speed, state: TuneState, tried: Sequence[str]) -> str:
    """Return whether a typical turn is faster than with what was found, or else with the user's settings."""
    found, trade = state.found, state.trade
    is_once = sum(each.changes == trial.changes for each in state.trials) == 1
    if found is not None and trial.changes == found.changes:
        return tr("chosen, measured once") if is_once else tr("chosen")
    if trade is not None and trial.changes == trade.changes:
        return tr("faster answers, measured once") if is_once else tr("faster answers")
    if found is not None and found.speed is not None and not gains(found.speed, speed):
        return _close_text(speed, found.speed, str(tried.index(str(found.changes)) + 1))
    if gains(speed, own):
        return tr("faster, measured once") if is_once else tr("faster")
    return _mixed_text(speed, own) or (tr("slower") if gains(own, speed) else _unclear_text(speed, own))


def _close_text(speed: Speed, found: Speed, number: str) -> str:
    """Return how something compares with what was found, which isn't clearly faster than it."""
    if abs(found.turn_s / speed.turn_s - 1) <= LEAST_GAIN:
        return tr("about the same as {0}", number)
    scatter = show_decimal(scatter_percent(speed, found), 0)
    return tr("no clear difference from {0}: runs differ by {1}%", number, scatter)


def _mixed_text(speed: Speed, own: Speed) -> str:
    """Return which of answers and prompts is faster, if the other is slower; else ""."""
    answers, prompts = percent_faster(speed.decode, own.decode), percent_faster(speed.prompt, own.prompt)
    least = 100 * LEAST_GAIN
    if answers > least and prompts < -least:
        return tr("faster answers, slower prompts")
    if answers < -least and prompts > least:
        return tr("slower answers, faster prompts")
    return ""


def _unclear_text(speed: Speed, own: Speed) -> str:
    if abs(own.turn_s / speed.turn_s - 1) <= LEAST_GAIN:
        return tr("about the same")
    return tr("not clear: runs differ by {0}%", show_decimal(scatter_percent(speed, own), 0))


def _percent(percent: int) -> str:
    return f"{'−' if percent < 0 else '+'}{show_decimal(abs(percent), 0)}%"
