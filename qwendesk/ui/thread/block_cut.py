"""Where a block that grows too long is cut, so that drawing more of it never draws all of it again. No Qt."""

import re

from qwendesk.ui.thread.highlight import highlight, language_name

LONG_BLOCK = 4_000
"""Characters from which a paragraph, a quote or code is cut where it looks well."""
LONGEST_BLOCK = 8_000
"""Characters from which any block is cut, looks or not."""
LONG_TABLE = 40
"""Rows of a table in one piece."""
_FENCE = re.compile(r" {0,3}+(`{3,}+|~{3,}+)([^\n]*+)\n")
_DELIMITERS = re.compile(r"[-:| \t]+")
_PLAIN = re.compile(r"[^\W\d_]|[\"'(\d]")
_LIST = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])(?:\s|$)")


def first_piece(source: str, *, is_open: bool) -> tuple[str, str] | None:
    """A finished piece of one long block and what is left of it, both whole Markdown; None when it can stay one.

    Code is cut between statements, a table between rows (its head goes with every piece), a quote at an empty line,
    a paragraph at a line's or a sentence's end. In an open block the last lines may still change and are kept.
    """
    fence = _FENCE.match(source)
    if fence is not None and not (fence[1][0] == "`" and "`" in fence[2]):
        return _cut_code(source, fence)
    start = _table_head(source)
    if start:
        return _cut_table(source, start, is_open=is_open)
    if len(source) < LONG_BLOCK:
        return None
    cut = 0
    if source.lstrip().startswith(">"):
        cut = max(source.rfind("\n>\n", 0, LONG_BLOCK) + 1, source.rfind("\n> \n", 0, LONG_BLOCK) + 1)
    elif _PLAIN.match(source.lstrip()[:1]) and not _LIST.match(source):
        cut = _in_paragraph(source)
    if not cut and len(source) >= LONGEST_BLOCK:
        cut = source.rfind("\n", LONG_BLOCK, LONGEST_BLOCK) + 1 or LONGEST_BLOCK // 2
    return (source[:cut], source[cut:]) if cut and source[cut:].strip() else None


def _cut_code(source: str, fence: re.Match[str]) -> tuple[str, str] | None:
    code = source[fence.end() :]
    if len(code) < LONG_BLOCK + 400:
        return None
    window = code[:LONG_BLOCK]
    cut = highlight(window, language_name(fence[2])).settled_length
    if cut < LONG_BLOCK // 4:
        cut = window.rfind("\n", 1, LONG_BLOCK - 400) + 1 or LONG_BLOCK // 2
    return fence[0] + code[:cut], fence[0] + code[cut:]


def _table_head(source: str) -> int:
    """Where the rows of a table begin; 0 for what is no table."""
    first = source.find("\n")
    second = source.find("\n", first + 1)
    if first < 0 or second < 0 or "|" not in source[:first]:
        return 0
    line = source[first + 1 : second]
    return second + 1 if "-" in line and _DELIMITERS.fullmatch(line) else 0


def _cut_table(source: str, start: int, *, is_open: bool) -> tuple[str, str] | None:
    rows = source[start:].split("\n")
    kept = 2 if is_open else 1
    if len(rows) < LONG_TABLE + kept:
        return None
    head, first, rest = source[:start], rows[:LONG_TABLE], "\n".join(rows[LONG_TABLE:])
    if not all(row.strip() for row in first) or not rest.strip():
        return None
    return head + "\n".join(first) + "\n", head + rest


def _in_paragraph(source: str) -> int:
    """After a line or a sentence outside of any mark that still waits for its end; 0 for nowhere."""
    window = source[: LONG_BLOCK - 200]
    for mark in ("\n", ". ", "? ", "! ", "。", " "):
        cut = len(window)
        for _ in range(12):
            cut = window.rfind(mark, LONG_BLOCK // 4, cut)
            if cut < 0:
                break
            before = window[: cut + len(mark)]
            if all(before.count(each) % 2 == 0 for each in ("`", "**", "~~", "$")) and before.count("[") == (
                before.count("]")
            ):
                return cut + len(mark)
    return 0
