"""The results of the rows, and the table of them."""

import statistics
from collections.abc import Sequence

import msgspec

from bench.peers.rows import Row

HEADER = (
    "| what | ours | llama-server | ratio | target | | tokens processed (ours, peer) |\n|---|---|---|---|---|---|---|"
)


class Pair(msgspec.Struct, frozen=True):
    """One round of a row: a value of each side, and how many prompt tokens each processed for it."""

    ours: float
    peer: float
    ours_processed: int = 0
    peer_processed: int = 0


class Result(msgspec.Struct, frozen=True):
    """A row's rounds; none, with the reason, if it was not measured."""

    row: Row
    pairs: tuple[Pair, ...] = ()
    skipped: str = ""

    @property
    def ratio(self) -> float | None:
        return median_ratio(self.pairs)

    def __str__(self) -> str:
        what, ratio = f"{self.row.what}, {self.row.unit}", self.ratio
        if ratio is None:
            return f"| {what} | - | - | - | {self.row.target} | skipped: {self.skipped} | |"
        ours, peer = (_number(statistics.median(values)) for values in zip(*map(_values, self.pairs), strict=True))
        verdict = "met" if self.row.target.is_met(ratio) else "MISSED"
        last = self.pairs[-1]
        return (
            f"| {what} | {ours} | {peer} | {ratio:.3f} | {self.row.target} | {verdict} | "
            f"{last.ours_processed}, {last.peer_processed} |"
        )


def median_ratio(pairs: Sequence[Pair]) -> float | None:
    """Return the median of ours divided by the peer's, or None if no round gave both."""
    ratios = [pair.ours / pair.peer for pair in pairs if pair.peer > 0]
    return statistics.median(ratios) if ratios else None


def table(results: Sequence[Result]) -> str:
    """Return the results as a Markdown table."""
    return "\n".join([HEADER, *map(str, results)])


def _values(pair: Pair) -> tuple[float, float]:
    return pair.ours, pair.peer


def _number(value: float) -> str:
    return f"{value:.1f}" if value >= 10 else f"{value:.3f}"
