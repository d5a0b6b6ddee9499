"""When something is looked up on the internet once a week: the schedule that all such look-ups share."""

import datetime
from collections.abc import Awaitable, Callable

_WEEK, _DAY = datetime.timedelta(days=7), datetime.timedelta(days=1)
# Nothing is looked up in the first minute, so that the app starts undisturbed.
_AFTER_START_S = 60.0
# How often it is decided whether a look-up is due. A PC that sleeps stops longer waits.
_BETWEEN_S = 3600.0


def is_due(now: datetime.datetime, done: datetime.datetime | None, *refused: datetime.datetime | None) -> bool:
    """Return whether the last success (`done`) is a week ago, and each failure or cancellation (`refused`) a day."""
    return _is_past(now, done, _WEEK) and all(_is_past(now, time, _DAY) for time in refused)


async def repeat_hourly(decide: Callable[[], None], wait: Callable[[float], Awaitable[None]]) -> None:
    """Call `decide` a minute from now and then every hour, until cancelled."""
    await wait(_AFTER_START_S)
    while True:
        decide()
        await wait(_BETWEEN_S)


def _is_past(now: datetime.datetime, time: datetime.datetime | None, after: datetime.timedelta) -> bool:
    """Return whether `time` is longer ago. A time in the future was saved while the clock was wrong."""
    return time is None or not datetime.timedelta(0) <= now - time < after
