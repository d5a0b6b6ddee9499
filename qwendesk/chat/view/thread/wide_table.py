"""Splits tables with very many columns into several tables. Pure text, no Qt.

A row of 300 cells would be too much to parse and lay out at once, so the text is split before it is parsed.
"""

import re
from collections.abc import Sequence

import msgspec

MAX_COLUMNS = 20
"""A table with more columns is split."""
PANEL_COLUMNS = 12
"""Number of columns in each part."""
PANEL_ROWS = 4
"""Number of rows in each part, few enough to be laid out in one step."""
_BAR = re.compile(r"(?<!\\)\|")
_DELIMITER = re.compile(r":?-+:?")
_START = re.compile(r" {0,3}(?=\S)")


class WideTable(msgspec.Struct, frozen=True):
    """A table at the start of a text, split into lines."""

    head: tuple[str, ...]
    alignments: tuple[str, ...]
    rows: tuple[str, ...]
    """Its complete rows."""
    rest: str
    """The text after the rows: an incomplete row, or the text after the table."""
    has_ended: bool
    """Whether the table has ended, so that `rest` isn't part of it."""
    lines: str
    """The source of the head."""


def wide_table(source: str) -> WideTable | None:
    """Return the table that `source` begins with if it has more than MAX_COLUMNS columns; None otherwise."""
    first = source.find("\n")
    second = source.find("\n", first + 1)
    if first < 0 or second < 0 or source.count("|", 0, first) < MAX_COLUMNS or not _START.match(source):
        return None
    head, alignments = _cells(source[:first]), source[first + 1 : second]
    marks = _cells(alignments) if len(head) > MAX_COLUMNS else ()
    if len(marks) != len(head) or not all(_DELIMITER.fullmatch(mark) for mark in marks):
        return None
    rows = []
    at = second + 1
    has_ended = False
    while (end := source.find("\n", at)) >= 0 and not has_ended:
        line = source[at:end]
        has_ended = "|" not in line
        if not has_ended:
            rows.append(line)
            at = end + 1
    return WideTable(head, marks, tuple(rows), source[at:], has_ended, source[: second + 1])


def panels(table: WideTable, rows: Sequence[str]) -> list[str]:
    """Return `rows` with their heads as the Markdown of tables with PANEL_COLUMNS columns each."""
    cells = [_cells(row)[: len(table.head)] for row in rows]
    found = []
    for start in range(0, len(table.head), PANEL_COLUMNS):
        part = slice(start, start + PANEL_COLUMNS)
        lines = [table.head[part], table.alignments[part], *(each[part] for each in cells)]
        found.append("".join(f"| {' | '.join(line)} |\n" for line in lines) + "\n")
    return found


def has_many_columns(line: str) -> bool:
    """Return True if a line is the head of a table that is split."""
    return line.count("|") > MAX_COLUMNS and len(_cells(line)) > MAX_COLUMNS


def _cells(line: str) -> tuple[str, ...]:
    text = line.strip()
    text = text[1:] if text.startswith("|") else text
    text = text[:-1] if text.endswith("|") and not text.endswith("\\|") else text
    return tuple(cell.strip() for cell in _BAR.split(text))
