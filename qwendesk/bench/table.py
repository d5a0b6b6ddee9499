"""The table of a run: a line for each test with its place in the run, in llama-bench's words."""

import statistics
from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec

from qwendesk.core.benchmarks import spread_of
from qwendesk.core.number_format import show_decimal
from qwendesk.core.translation import tr
from qwendesk.hub.catalog_schema import SpeedReport

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
    values: Annotated[tuple[float, ...], msgspec.Meta(min_length=1)]
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


_KINDS = ("pp", "tg", "text", "edit")
# Depths that differ by less than this factor, or by less than _CLOSE tokens, are compared.
_ALIKE = 1.5
_CLOSE = 1024
_LEAST_GAIN = 0.01


class TableLine(msgspec.Struct, frozen=True):
    """The texts of one line; "" for what was not measured or reported."""

    test: str
    with_drafts: str = ""
    plain: str = ""
    reported: str = ""
    gain: str = ""
    is_gain: bool = True
    """False if drafts made it slower."""


def table_lines(rows: Sequence[BenchRow], published: Sequence[SpeedReport] = ()) -> tuple[TableLine, ...]:
    """Return the lines in the order of the tests, each by depth, with the published speed of about the same depth."""
    keys = dict.fromkeys((row.test, row.depth) for row in rows)
    return tuple(_line(rows, test, depth, published) for test, depth in sorted(keys, key=_order))


def value_text(row: BenchRow) -> str:
    """Return the median and the spread: "2,410 ± 18", or "0.14 s ± 0.01"."""
    if row.unit == "s":
        return tr("{0} s ± {1}", show_decimal(row.median, 2), show_decimal(row.spread, 2))
    decimals = 0 if row.median >= 100 else 1
    return f"{show_decimal(row.median, decimals)} ± {show_decimal(row.spread, 1)}"


def reported_at(published: Sequence[SpeedReport], depth: int) -> SpeedReport | None:
    """Return the report of about this depth that is closest to it; None if there is none."""
    near = [
        report
        for report in published
        if abs(report.depth - depth) <= _CLOSE
        or (min(report.depth, depth) and max(report.depth, depth) <= _ALIKE * min(report.depth, depth))
    ]
    return min(near, key=lambda report: abs(report.depth - depth), default=None)


def reported_speed(report: SpeedReport) -> float:
    """Return the middle of a reported range, in tokens per second."""
    return sum(report.range) / 2


def _reported_text(report: SpeedReport) -> str:
    speed = show_decimal(reported_speed(report), 0)
    return tr("{0} (pasted)", speed) if report.is_pasted else speed


def _line(rows: Sequence[BenchRow], test: str, depth: int, published: Sequence[SpeedReport]) -> TableLine:
    plain = find_row(rows, test, depth, with_drafts=False)
    drafted = find_row(rows, test, depth, with_drafts=True)
    report = reported_at(published, depth) if test.startswith("tg") and "+" not in test else None
    gain = drafted.median / plain.median - 1 if plain is not None and drafted is not None and plain.median else None
    shown = drafted or plain
    assert shown is not None, "a key of the table is that of a row"
    with_drafts = value_text(drafted) if drafted is not None else ""
    if drafted is not None and drafted.acceptance is not None:
        with_drafts += f" ({show_decimal(100 * drafted.acceptance, 0)} %)"
    return TableLine(
        shown.name,
        with_drafts,
        value_text(plain) if plain is not None else "",
        _reported_text(report) if report is not None else "",
        f"{100 * gain:+.0f} %" if gain is not None else "",
        is_gain=gain is None or gain > _LEAST_GAIN,
    )


def _order(key: tuple[str, int]) -> tuple[int, str, int]:
    test, depth = key
    kind = next((index for index, start in enumerate(_KINDS) if test.startswith(start)), len(_KINDS))
    return kind, test if kind < len(_KINDS) else "", depth
