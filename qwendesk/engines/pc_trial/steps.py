"""Runs the steps of a trial, each with its own limit and all within ten minutes. A failed step is a sentence."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from qwendesk.core.failures import EngineExit, LoadFailure
from qwendesk.core.translation import tr
from qwendesk.engine.protocol import RequestFailed

# How long a whole trial may take.
LIMIT_S = 600.0
_logger = logging.getLogger(__name__)
T = TypeVar("T")


class StepFailed(Exception):
    """A step can't be done; the message is a sentence that says why."""


def or_failed(result: T | LoadFailure | RequestFailed | EngineExit) -> T:
    """Return a result of the engine. Raises StepFailed with its sentence if it is a failure."""
    if isinstance(result, LoadFailure | RequestFailed | EngineExit):
        raise StepFailed(result.sentence)
    return result


class TrialSteps:
    """Runs one step after the other and says each in a line. `now` returns seconds of a monotonic clock."""

    def __init__(
        self, say: Callable[[str], None], limit_s: float = LIMIT_S, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._say = say
        self._now = now
        self._started_s = now()
        self._limit_s = limit_s

    @property
    def elapsed_s(self) -> float:
        return self._now() - self._started_s

    @property
    def left_s(self) -> float:
        return max(0.0, self._limit_s - self.elapsed_s)

    async def run(
        self, name: str, limit_s: float, work: Callable[[], Awaitable[T]], failed: Callable[[str], None]
    ) -> T | None:
        """Run one step and return its result. If it fails or takes too long, call `failed` and return None."""
        limit_s = min(limit_s, self.left_s)
        if limit_s <= 0:
            failed(tr("{0}: left out, because the time for the whole trial is over.", name))
            return None
        minutes, seconds = divmod(int(self.elapsed_s), 60)
        self._say(tr("{0}  {1} (at most {2} s)", f"{minutes}:{seconds:02}", name, f"{limit_s:.0f}"))
        try:
            async with asyncio.timeout(limit_s):
                return await work()
        except StepFailed as failure:
            failed(tr("{0}: {1}", name, failure))
        except TimeoutError:
            failed(tr("{0}: not finished after {1} s.", name, f"{limit_s:.0f}"))
        except Exception as error:
            # A trial must not end because one piece of a stranger's PC behaves like no other.
            _logger.exception("A step of the trial failed")
            failed(tr("{0}: {1}", name, f"{type(error).__name__}: {error}"))
        return None
