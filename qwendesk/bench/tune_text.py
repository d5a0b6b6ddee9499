"""What auto-tune tried and found, in words. No Qt."""

import msgspec

from qwendesk.bench.auto_tune import TuneState
from qwendesk.bench.tune_rules import Speed, TriedOptions, change_texts, gains, measured
from qwendesk.core.number_format import show_decimal
from qwendesk.core.translation import tr, tr_n
from qwendesk.core.units import show_duration, show_rate


class TuneLine(msgspec.Struct, frozen=True, kw_only=True):
    """One set of options that was tried."""

    name: str
    prompt: str = ""
    """Speed of prompts, in tokens per second."""
    answer: str = ""
    """Speed of answers, in tokens per second."""
    gain_percent: float | None = None
    """Gain of a typical turn over the user's own settings; None without a speed."""
    remark: str = ""
    """The gain, or why there is no speed."""
    is_found: bool = False


def tune_lines(state: TuneState) -> tuple[TuneLine, ...]:
    """Return a line for each set of options, in the order in which they were tried; the user's own is the first."""
    own, found = state.own, state.found
    joined = {str(trial.changes): trial for trial in measured(state.trials)}
    lines: dict[str, TuneLine] = {}
    for trial in state.trials:
        key, is_found = str(trial.changes), found is not None and trial.changes == found.changes
        is_repeated = sum(each.changes == trial.changes for each in state.trials) > 1
        lines.setdefault(key, _line(joined.get(key, trial), own, is_repeated=is_repeated, is_found=is_found))
    return tuple(lines.values())


def result_sentence(state: TuneState) -> str:
    """Return what came of a run, in a sentence; "" while it runs, before the first one, and after a failure."""
    own, found = state.own, state.found
    if state.is_running or state.failure or state.options is None:
        return ""
    if own is None or own.speed is None:
        return tr("It ended before the speed of your settings was known.")
    if len(tune_lines(state)) == 1:
        return tr("Your settings: {0}. There was no time to try others.", _speed_text(own.speed))
    if found is None or found.speed is None:
        return tr("Your settings are the fastest of those tried: {0}.", _speed_text(own.speed))
    names = ", ".join(change_texts(found.changes))
    if state.was_stopped:
        return tr(
            "Stopped. The best so far: {1} ({2}). Your settings: {0}.",
            _speed_text(own.speed), _speed_text(found.speed), names,
        )  # fmt: skip
    return tr("Your settings: {0}. Found: {1} ({2}).", _speed_text(own.speed), _speed_text(found.speed), names)


def progress_text(state: TuneState) -> str:
    """Return how far a run is: what is measured now, how much was tried, and the time left."""
    if state.plan is None:
        return tr("Loading the model…")
    now = _name(state.current) if state.current is not None else tr("Getting ready")
    n_spilled = state.n_spilled
    parts = (
        now,
        tr_n("{0} tried", "{0} tried", len(tune_lines(state))),
        tr("{0} left", show_duration(state.left_s)),
        tr_n("{0} spilled", "{0} spilled", n_spilled) if n_spilled else tr("nothing spilled"),
    )
    return " · ".join(parts)


def _name(changes: dict[str, object]) -> str:
    return ", ".join(change_texts(changes)) or tr("Your settings")


def _line(trial: TriedOptions, own: TriedOptions | None, *, is_repeated: bool, is_found: bool) -> TuneLine:
    name, speed = _name(trial.changes), trial.speed
    if speed is None or own is None or own.speed is None:
        return TuneLine(name=name, remark=trial.why_not)
    percent = 100 * (own.speed.turn_s / speed.turn_s - 1)
    is_certain = is_repeated and gains(speed, own.speed)
    return TuneLine(
        name=name,
        prompt=show_rate(speed.prompt.median),
        answer=show_rate(speed.decode.median),
        gain_percent=percent,
        remark=_gain_text(percent, is_certain=is_certain) if trial.changes else "",
        is_found=is_found,
    )


def _gain_text(percent: float, *, is_certain: bool) -> str:
    rounded = round(percent)
    if not rounded:
        return tr("no difference")
    if rounded < 0:
        return f"−{show_decimal(-rounded, 0)}%"
    return f"+{show_decimal(rounded, 0)}%" if is_certain else tr("+{0}%, within the scatter", show_decimal(rounded, 0))


def _speed_text(speed: Speed) -> str:
    return tr("{0} tok/s, prompts {1} tok/s", show_rate(speed.decode.median), show_rate(speed.prompt.median))
