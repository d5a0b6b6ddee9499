"""A measured line of the bench table, with its place in a run."""

import statistics
from collections.abc import Sequence
from typing import Literal

import msgspec

from qwendesk.core.benchmarks import spread_of

Drafts = Literal["off", "mtp", "lookup"]


class BenchRow(msgspec.Struct, frozen=True, kw_only=True):
    """What one test gave: a speed in tokens per second, or a time in seconds."""

    test: str
    """Its name in llama-bench's words, such as "tg128", without the depth."""
    depth: int = 0
    """Tokens in memory before it."""
    n_prompt: int = 0
    n_gen: int = 0
    drafts: Drafts = "off"
    unit: Literal["tok/s", "s"] = "tok/s"
    values: tuple[float, ...]
    """One for each repetition."""
    drafted: int = 0
    accepted: int = 0

    @property
    def name(self) -> str:
        return f"{self.test} @ d{self.depth}" if self.depth else self.test

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def mean(self) -> float:
        return statistics.fmean(self.values)

    @property
    def spread(self) -> float:
        """The standard deviation of the repetitions; 0.0 for a single one."""
        return spread_of(self.values)

    @property
    def acceptance(self) -> float | None:
        """The share of drafted tokens that were accepted; None if nothing was drafted."""
        return self.accepted / self.drafted if self.drafted else None


def find_row(rows: Sequence[BenchRow], test: str, depth: int, *, with_drafts: bool) -> BenchRow | None:
    """Return the last measured row of a test, with or without drafts."""
    found = [row for row in rows if (row.test, row.depth, row.drafts != "off") == (test, depth, with_drafts)]
    return found[-1] if found else None
