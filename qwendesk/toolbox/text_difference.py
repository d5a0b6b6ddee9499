"""A difference between two texts as the user reads it, in which every character can be seen."""

import difflib
import re
import unicodedata
from collections.abc import Iterator, Sequence

_CONTEXT_LINES = 3
"""Of unchanged text around a change."""
_INVISIBLE = ("Cc", "Cf", "Zl", "Zp")
"""Categories of Unicode that don't show, or that change the order in which others do."""
_PLACES = re.compile(r"@@ -(\d+)(,\d+)? \+(\d+)(,\d+)? @@\n")


def difference(before: str, after: str, name: str) -> str:
    """Return the difference in the unified form; `name` is that of the file. "" if there is none."""
    if "\n" not in (before + after).replace("\r\n", ""):  # lines that all end in the way of Windows
        before, after = before.replace("\r\n", "\n"), after.replace("\r\n", "\n")
    lines = _unified(before.splitlines(keepends=True), after.splitlines(keepends=True), name)
    return "".join(map(_visible, lines)).rstrip("\n")


def _unified(before: Sequence[str], after: Sequence[str], name: str) -> Iterator[str]:
    """Yield the lines of a difference. Only what lies between the first and the last change is compared.

    In a long file whose lines repeat, comparing all of it takes minutes, or shows all of it as changed.
    """
    n_both = min(len(before), len(after))
    n_same = next((n for n in range(n_both) if before[n] != after[n]), n_both)
    first = max(0, n_same - _CONTEXT_LINES)
    n_most = n_both - n_same
    n_same_at_end = next((n for n in range(n_most) if before[-1 - n] != after[-1 - n]), n_most)
    n_left_out = max(0, n_same_at_end - _CONTEXT_LINES)
    old, new = before[first : len(before) - n_left_out], after[first : len(after) - n_left_out]
    for line in difflib.unified_diff(old, new, name, name, n=_CONTEXT_LINES):
        yield _PLACES.sub(lambda at: _moved(at, first), line) if line.startswith("@@") else line


def _moved(at: re.Match[str], n_lines: int) -> str:
    """Return the head of a part of a difference, so many lines further down."""
    return f"@@ -{int(at[1]) + n_lines}{at[2] or ''} +{int(at[3]) + n_lines}{at[4] or ''} @@\n"


def _visible(line: str) -> str:
    """Return a line of a difference with its invisible characters as codes, and with a note where no line ends."""
    end = "" if line.endswith("\n") else "\n\\ No newline at end of file\n"
    seen = (c if c in "\n\t" or unicodedata.category(c) not in _INVISIBLE else f"<U+{ord(c):04X}>" for c in line)
    return "".join(seen) + end
