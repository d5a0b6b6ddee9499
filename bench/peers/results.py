"""The results of the rows, and the table of them."""

import statistics
from collections.abc import Sequence

import msgspec

from bench.peers.rows import PeerName, Row, Target

HEADER = (
    "| what | ours | beside | quartile | median | target | | tokens processed (ours, peer) |\n"
    "|---|---|---|---|---|---|---|---|"
)


class Pair(msgspec.Struct, frozen=True):
    """One turn of each side: its value, and how many prompt tokens ours and the first peer processed for it."""

    ours: float
    peers: dict[PeerName, float]
    ours_processed: int = 0
    peer_processed: int = 0


class Result(msgspec.Struct, frozen=True):
    """A row's rounds; none, with the reason, if it was not measured."""

    row: Row
    rounds: tuple[tuple[Pair, ...], ...] = ()
    skipped: str = ""

    @property
    def ratios(self) -> list[float]:
        """Ours divided by the best peer's, by rounds."""
        return [ratio_of(pairs, self.row.target) for pairs in self.rounds]

    @property
    def is_met(self) -> bool:
        target = self.row.target
        return bool(self.rounds) and target.is_met(worse_quartile(self.ratios, target))

    def __str__(self) -> str:
        row, target = self.row, self.row.target
        what = f"{row.what}, {row.unit}"
        if not self.rounds:
            return f"| {what} | - | - | - | - | {target} | skipped: {self.skipped} | |"
        pairs = [pair for pairs in self.rounds for pair in pairs]
        ours = _number(statistics.median(pair.ours for pair in pairs))
        others = [f"{name} {_number(statistics.median(pair.peers[name] for pair in pairs))}" for name in row.peers]
        verdict = "met" if self.is_met else "limit" if row.is_limit else "MISSED"
        last = pairs[-1]
        return (
            f"| {what} | {ours} | {', '.join(others)} | {worse_quartile(self.ratios, target):.3f} | "
            f"{statistics.median(self.ratios):.3f} | {target} | {verdict} | "
            f"{last.ours_processed}, {last.peer_processed} |"
        )


def ratio_of(pairs: Sequence[Pair], target: Target) -> float:
    """Return the median of ours divided by that of the best peer: the fastest, or the one that waits least."""
    peers = [statistics.median(pair.peers[name] for pair in pairs) for name in pairs[0].peers]
    ours = statistics.median(pair.ours for pair in pairs)
    return ours / (max(peers) if target.is_least else min(peers))


def worse_quartile(ratios: Sequence[float], target: Target) -> float:
    """Return the quartile on the side where the target is missed: three of four rounds are better."""
    if len(ratios) == 1:
        return ratios[0]
    quartiles = statistics.quantiles(ratios, n=4, method="inclusive")
    return quartiles[0] if target.is_least else quartiles[-1]


def table(results: Sequence[Result]) -> str:
    """Return the results as a Markdown table."""
    return "\n".join([HEADER, *map(str, results)])


def _number(value: float) -> str:
    return f"{value:.1f}" if value >= 10 else f"{value:.3f}"
