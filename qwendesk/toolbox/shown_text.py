"""Text of others as the user sees it before they decide: every character of it can be seen."""

import unicodedata

_INVISIBLE = ("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp")
"""Categories of Unicode that don't show, that change the order in which others do, or that look as any font likes."""
_IGNORABLE = (
    (0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x2800, 0x2800), (0x3164, 0x3164),
    (0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0x16FE4, 0x16FE4), (0x1D159, 0x1D159), (0xE0100, 0xE01EF),
)  # fmt: skip
"""Ranges of letters and marks that show nothing (Default_Ignorable_Code_Point of Unicode, and the empty Braille cell).

A text can be hidden in a row of them.
"""

_WIDE_BLANK = "\u3000"
"""As wide as a letter; Japanese and Chinese texts have it where others have a blank."""


def with_codes(text: str) -> str:
    """Return `text` with invisible characters as codes such as <U+200B>. Line breaks and tabs stay."""
    return "".join(f"<U+{ord(c):04X}>" if _is_invisible(c) else c for c in text)


def on_one_line(text: str) -> str:
    """Return `text` with line breaks and tabs as codes too, so that a name can't look like more lines."""
    return with_codes(text).replace("\n", "<U+000A>").replace("\t", "<U+0009>")


def _is_invisible(character: str) -> bool:
    if character.isascii():
        return not character.isprintable() and character not in "\n\t"
    return (
        (character.isspace() and character != _WIDE_BLANK)
        or unicodedata.category(character) in _INVISIBLE
        or any(first <= ord(character) <= last for first, last in _IGNORABLE)
    )
