"""The tokens per second to expect of a file on this PC: as users report, or else as the planner estimates."""

from typing import Literal

import msgspec

from qwendesk.core.plan import SpeedEstimate
from qwendesk.hub.catalog_schema import SpeedReport

_START_DEPTH = 8_192
"""Up to this many tokens a chat counts as new."""

SpeedSource = Literal["reported", "estimated"]


class SpeedRange(msgspec.Struct, frozen=True):
    """A range of tokens per second in a chat of `depth` tokens."""

    depth: int
    slow: float
    fast: float


class ExpectedSpeed(msgspec.Struct, frozen=True):
    """What to expect before the model has run on this PC."""

    speeds: tuple[SpeedRange, ...]
    """By length of the chat, the shortest first; at least one."""
    reports: tuple[SpeedReport, ...] = ()
    """The user reports that `speeds` are from; empty for an estimate."""

    @property
    def source(self) -> SpeedSource:
        return "reported" if self.reports else "estimated"

    @property
    def start(self) -> tuple[float, float]:
        """The range in the shortest chats that are known."""
        return self.speeds[0].slow, self.speeds[0].fast


def expect_speed(reports: tuple[SpeedReport, ...], estimate: SpeedEstimate | None) -> ExpectedSpeed | None:
    """Return what users report of PCs like this one, or else the estimate; None if neither is known.

    `reports` are those that hold for this PC and this file (see speed_reports.py).
    """
    if reports:
        return ExpectedSpeed(_by_depth(reports), reports)
    if estimate is None:
        return None
    return ExpectedSpeed((SpeedRange(0, *estimate.start), SpeedRange(estimate.long_tokens, *estimate.long)))


def _by_depth(reports: tuple[SpeedReport, ...]) -> tuple[SpeedRange, ...]:
    """Return one range for each length of chat. All reports of new chats are one range."""
    found: dict[int, tuple[float, float]] = {}
    for report in sorted(reports, key=lambda report: report.depth):
        depth = 0 if report.depth <= _START_DEPTH else report.depth
        slow, fast = found.get(depth, report.range)
        found[depth] = min(slow, report.range[0]), max(fast, report.range[1])
    return tuple(SpeedRange(depth, *pair) for depth, pair in found.items())
