"""A difference between two texts as the user reads it, in which every character can be seen."""

import difflib
import unicodedata

_CONTEXT_LINES = 3
"""Of unchanged text around a change."""
_INVISIBLE = ("Cc", "Cf", "Zl", "Zp")
"""Categories of Unicode that don't show, or that change the order in which others do."""


def difference(before: str, after: str, name: str) -> str:
    """Return the difference in the unified form; `name` is that of the file. "" if there is none."""
    if "\n" not in (before + after).replace("\r\n", ""):  # lines that all end in the way of Windows
        before, after = before.replace("\r\n", "\n"), after.replace("\r\n", "\n")
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), name, name, n=_CONTEXT_LINES
    )
    return "".join(map(_visible, lines)).rstrip("\n")


def _visible(line: str) -> str:
    """Return a line of a difference with its invisible characters as codes, and with a note where no line ends."""
    end = "" if line.endswith("\n") else "\n\\ No newline at end of file\n"
    seen = (c if c in "\n\t" or unicodedata.category(c) not in _INVISIBLE else f"<U+{ord(c):04X}>" for c in line)
    return "".join(seen) + end
