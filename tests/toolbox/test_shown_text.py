"""Nothing of what the user is asked about can hide."""

import pytest

from qwendesk.toolbox.shown_text import on_one_line, with_codes

HIDDEN = (
    *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070), *range(0xFE00, 0xFE10),
    *range(0xE0000, 0xE0200), 0xAD, 0x34F, 0x61C, 0x115F, 0x17B4, 0x180E, 0x2800, 0x3164, 0xFEFF, 0xFFA0, 0x16FE4,
    0x1D159, 0x1D173, 0xA0, 0x2028, 0x85, 0x1B, 0x9B, 0x0D, 0xD800, 0xE000,
)  # fmt: skip
"""Characters that show nothing, that look like a blank, that turn others round, or that control a terminal."""


@pytest.mark.parametrize("number", HIDDEN)
def test_what_shows_nothing_is_a_code(number: int) -> None:
    assert with_codes(f"a{chr(number)}b") == f"a<U+{number:04X}>b"


def test_texts_of_all_languages_stay_as_they_are() -> None:
    text = "Grüße, Æther, naïve; Привет, γειά, שלום, مرحبا, नमस्ते, 你好\u3000世界, こんにちは, 한국어, 🙂\n\tdef f():\n"
    assert with_codes(text) == text


def test_names_have_no_lines() -> None:
    assert on_one_line("a\nb\tc\r") == "a<U+000A>b<U+0009>c<U+000D>"
