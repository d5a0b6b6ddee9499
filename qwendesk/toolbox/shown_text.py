"""Texts of others, and differences between two, as the user reads them: every character of them can be seen."""

import difflib
import re
import unicodedata
from collections.abc import Iterator, Sequence

# Categories of Unicode that don't show, that change the order in which others do, or that look as any font likes.
_INVISIBLE = ("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp")
# Ranges of letters and marks that show nothing (Default_Ignorable_Code_Point of Unicode, and the empty Braille cell).
#
# A text can be hidden in a row of them.
_IGNORABLE = (
    (0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x2800, 0x2800), (0x3164, 0x3164),
    (0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0x16FE4, 0x16FE4), (0x1D159, 0x1D159), (0xE0100, 0xE01EF),
)  # fmt: skip

# As wide as a letter; Japanese and Chinese texts have it where others have a blank.
_WIDE_BLANK = "\u3000"


def with_codes(text: str) -> str:
    """Return `text` with invisible characters as codes such as <U+200B>. Line breaks and tabs stay."""
    return "".join(f"<U+{ord(c):04X}>" if _is_invisible(c) else c for c in text)


def on_one_line(text: str) -> str:
    """Return `text` with line breaks and tabs as codes too, so that a name can't look like more lines."""
    return with_codes(text).replace("\n", "<U+000A>").replace("\t", "<U+0009>")


def from_codes(text: str) -> str:
    """Return the text that `on_one_line` shows so. One that has such a code in letters can't be told from it."""
    return _CODE.sub(lambda found: chr(int(found[1], 16)), text)


_CODE = re.compile(r"<U\+((?:10|[0-9A-F])?[0-9A-F]{4})>")


def _is_invisible(character: str) -> bool:
    if character.isascii():
        return not character.isprintable() and character not in "\n\t"
    return (
        (character.isspace() and character != _WIDE_BLANK)
        or unicodedata.category(character) in _INVISIBLE
        or any(first <= ord(character) <= last for first, last in _IGNORABLE)
    )


# Of unchanged text around a change.
_CONTEXT_LINES = 3
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
    return with_codes(line) + end
