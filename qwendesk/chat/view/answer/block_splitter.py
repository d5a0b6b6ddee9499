"""Splits blocks that grow too long, and tables with very many columns, so that more text never redraws all of one. No
Qt.

A row of 300 cells would be too much to parse and lay out at once, so the text is split before it is parsed.
"""

import re
from collections.abc import Sequence

import msgspec
from markdown_it.token import Token

from qwendesk.chat.markdown_rules.nested_fences import MARKDOWN_FENCE, first_line_of_rest, safe_cut
from qwendesk.chat.markdown_rules.tags import BREAK

# A paragraph, quote or code with more characters is split at a suitable place.
LONG_BLOCK = 4_000
# Any block with more characters is split, even if there is no suitable place.
MAX_BLOCK_LENGTH = 8_000
# Any block with more lines is split, except code.
LONG_LINES = 60
# Code with more lines is split, even in the middle of a statement: such lines are so short that this is rare.
LONG_CODE = 1_000
# Number of rows in one piece of a table.
LONG_TABLE = 40
# Number of characters of code kept after a split.
_KEPT_BELOW = 400
# Marks that open and close multi-line strings.
_QUOTES = ('"""', "'''", "`")
_MAX_ATTEMPTS = 100
# Number of cells in one piece of a table.
TABLE_CELLS = 48
_MAX_CELL_LENGTH = 60
_FENCE = re.compile(r" {0,3}+(`{3,}+|~{3,}+)([^\n]*+)\n")
_DELIMITERS = re.compile(r"[-:| \t]+")
_PLAIN = re.compile(r"[^\W\d_]|[\"'(\d]")
_LIST_ITEM = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])(?:\s|$)")


def split_long_block(source: str, *, is_open: bool) -> tuple[str, str] | None:
    """Return a finished piece of a long block and the rest, both complete Markdown; None if it need not be split.

    Code is split between statements, a table between rows (each piece repeats its head), a quote at an empty line and a
    paragraph at the end of a line or sentence. The last lines of an open block may still change, so they stay in the
    rest.
    """
    fence = _FENCE.match(source)
    if fence is not None and not (fence[1][0] == "`" and "`" in fence[2]):
        return _cut_code(source, fence)
    start = _table_head(source)
    if start:
        piece = _cut_table(source, start, is_open=is_open)
        if piece is not None or len(source) < MAX_BLOCK_LENGTH:
            return piece
    end = _end_of_lines(source)
    if len(source) < LONG_BLOCK and end == len(source):
        return None
    cut = 0
    if source.lstrip().startswith(">"):
        window = source[: min(end, LONG_BLOCK)]
        cut = max(window.rfind("\n>\n"), window.rfind("\n> \n")) + 1
    elif _PLAIN.match(source.lstrip()[:1]) and not _LIST_ITEM.match(source):
        cut = _in_paragraph(source[: min(end, LONG_BLOCK - 200)])
    if not cut and end < min(LONG_BLOCK, len(source)):
        cut = end
    elif not cut and len(source) >= MAX_BLOCK_LENGTH:
        cut = source.rfind("\n", LONG_BLOCK, MAX_BLOCK_LENGTH) + 1 or MAX_BLOCK_LENGTH // 2
    return (source[:cut], source[cut:]) if cut and source[cut:].strip() else None


def _end_of_lines(source: str) -> int:
    """Return where the first LONG_LINES lines end. A paragraph may have twice as many, because its lines are cheap."""
    most = 2 * LONG_LINES if _PLAIN.match(source.lstrip()[:1]) and not _LIST_ITEM.match(source) else LONG_LINES
    if source.count("\n") <= most:
        return len(source)
    end = 0
    for _ in range(most):
        end = source.index("\n", end) + 1
    return end


def _cut_code(source: str, fence: re.Match[str]) -> tuple[str, str] | None:
    code = source[fence.end() :]
    if code.count("\n", 0, LONG_BLOCK) > LONG_CODE:
        cut = 0
        for _ in range(LONG_CODE):
            cut = code.index("\n", cut) + 1
        return _cut_at(fence, code, cut)
    if len(code) < LONG_BLOCK + _KEPT_BELOW:
        return None
    window = code[:LONG_BLOCK]
    cut = _between_statements(window)
    if cut < LONG_BLOCK // 4:
        cut = window.rfind("\n", 1, LONG_BLOCK - _KEPT_BELOW) + 1 or LONG_BLOCK // 2
    return _cut_at(fence, code, cut)


def _cut_at(fence: re.Match[str], code: str, cut: int) -> tuple[str, str]:
    """Return code in two pieces. The second one of Markdown names the inner fence that is open where it begins."""
    if not MARKDOWN_FENCE.match(fence[0]):
        return fence[0] + code[:cut], fence[0] + code[cut:]
    first_line = fence[0].rstrip("\n")
    cut = safe_cut(first_line, code, cut) or cut
    return fence[0] + code[:cut], first_line_of_rest(first_line, code, cut) + "\n" + code[cut:]


def _between_statements(code: str) -> int:
    """Return the start of a line near the end of `code` that looks like a new statement, or 0.

    Indented lines and closing brackets belong to the lines above. A comment or string of several lines is never split,
    because its pieces would be highlighted wrongly.
    """
    end = len(code) - _KEPT_BELOW
    for _ in range(_MAX_ATTEMPTS):
        end = code.rfind("\n", 0, end)
        if end < 0:
            break
        before = code[: end + 1]
        is_inside = any(before.count(mark) % 2 for mark in _QUOTES) or before.count("/*") != before.count("*/")
        if not is_inside and not code[end + 1].isspace() and code[end + 1] not in ")]}":
            return end + 1
    return 0


def _table_head(source: str) -> int:
    """Return where the rows of a table begin; 0 if `source` is not a table."""
    first = source.find("\n")
    second = source.find("\n", first + 1)
    if first < 0 or second < 0 or "|" not in source[:first]:
        return 0
    line = source[first + 1 : second]
    return second + 1 if "-" in line and _DELIMITERS.fullmatch(line) else 0


def _cut_table(source: str, start: int, *, is_open: bool) -> tuple[str, str] | None:
    rows = source[start:].split("\n")
    kept = 2 if is_open else 1
    columns = max(1, source.count("|", 0, source.find("\n")) - 1)
    count = min(LONG_TABLE, max(1, TABLE_CELLS // columns), _rows_within(rows, LONG_BLOCK))
    if len(rows) < count + kept:
        return None
    head, first, rest = source[:start], rows[:count], "\n".join(rows[count:])
    if not all(row.strip() for row in first) or not rest.strip():
        return None
    return head + "\n".join(first) + "\n", head + rest


def _rows_within(rows: Sequence[str], size: int) -> int:
    """Return how many rows fit in `size` characters, at least 1."""
    for count, row in enumerate(rows):
        size -= len(row)
        if size < 0:
            return max(1, count)
    return len(rows)


def column_lengths(tokens: Sequence[Token]) -> tuple[int, ...]:
    """Return the number of characters in the widest cell of each column. A Chinese character counts as two."""
    lengths: list[int] = []
    column = 0
    for token in tokens:
        if token.type == "tr_open":
            column = 0
        elif token.type == "inline":
            lines = BREAK.split(token.content)
            length = max(sum(2 if each >= "\u2e80" else 1 for each in line[:_MAX_CELL_LENGTH]) for line in lines)
            if column == len(lengths):
                lengths.append(1)
            lengths[column] = max(lengths[column], min(_MAX_CELL_LENGTH, length))
            column += 1
    return tuple(lengths)


def _in_paragraph(window: str) -> int:
    """Return the end of a line or sentence outside of any unclosed mark; 0 if there is none."""
    for mark in ("\n", ". ", "? ", "! ", "。", " "):
        cut = len(window)
        for _ in range(12):
            cut = window.rfind(mark, len(window) // 4, cut)
            if cut < 0:
                break
            before = window[: cut + len(mark)]
            if all(before.count(each) % 2 == 0 for each in ("`", "**", "~~", "$")) and before.count("[") == (
                before.count("]")
            ):
                return cut + len(mark)
    return 0


# The complete items of an open list with more characters are finished.
LONG_LIST = 1_500
# Number of lines in one piece of a list. A longer item isn't split.
LIST_LINES = 40


def item_groups(tokens: Sequence[Token], *, keep_last: bool = False) -> list[tuple[int, int]]:
    """Return groups of list items as ranges of token indices, without the last item if `keep_last`."""
    items = [at for at, token in enumerate(tokens) if token.type == "list_item_open" and token.level == 1]
    ends = [*items[1:], len(tokens) - 1]
    if keep_last:
        items, ends = items[:-1], ends[:-1]
    groups: list[tuple[int, int]] = []
    room = 0
    for first, end in zip(items, ends, strict=True):
        span = tokens[first].map
        lines = max(1, span[1] - span[0]) if span is not None else 1
        if groups and lines <= room:
            groups[-1] = (groups[-1][0], end)
            room -= lines
        else:
            groups.append((first, end))
            room = LIST_LINES - lines
    return groups


# A table with more columns is split.
MAX_COLUMNS = 20
# Number of columns in each part.
PANEL_COLUMNS = 12
# Number of rows in each part, few enough to be laid out in one step.
PANEL_ROWS = 4
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
    """True if the table has ended, so that `rest` isn't part of it."""
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
