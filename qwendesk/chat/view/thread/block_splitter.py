"""Splits blocks that grow too long, so that more text never redraws all of a long block. No Qt."""

import re
from collections.abc import Sequence

from markdown_it.token import Token

LONG_BLOCK = 4_000
"""A paragraph, quote or code with more characters is split at a suitable place."""
MAX_BLOCK_LENGTH = 8_000
"""Any block with more characters is split, even if there is no suitable place."""
LONG_LINES = 60
"""Any block with more lines is split, except code."""
LONG_CODE = 1_000
"""Code with more lines is split, even in the middle of a statement: such lines are so short that this is rare."""
LONG_TABLE = 40
"""Number of rows in one piece of a table."""
_KEPT_BELOW = 400
"""Number of characters of code kept after a split."""
_QUOTES = ('"""', "'''", "`")
"""Marks that open and close multi-line strings."""
_MAX_ATTEMPTS = 100
TABLE_CELLS = 48
"""Number of cells in one piece of a table."""
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
        return fence[0] + code[:cut], fence[0] + code[cut:]
    if len(code) < LONG_BLOCK + _KEPT_BELOW:
        return None
    window = code[:LONG_BLOCK]
    cut = _between_statements(window)
    if cut < LONG_BLOCK // 4:
        cut = window.rfind("\n", 1, LONG_BLOCK - _KEPT_BELOW) + 1 or LONG_BLOCK // 2
    return fence[0] + code[:cut], fence[0] + code[cut:]


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
            length = sum(2 if each >= "\u2e80" else 1 for each in token.content[:_MAX_CELL_LENGTH])
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


LONG_LIST = 1_500
"""The complete items of an open list with more characters are finished."""
LIST_LINES = 40
"""Number of lines in one piece of a list. A longer item isn't split."""


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
