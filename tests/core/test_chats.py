"""A chat's title from its first question."""

import pytest

from qwendesk.core.chats import MOST_TITLE_CHARACTERS, title_of


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Why is the sky blue?", "Why is the sky blue?"),
        ("\n\n  ## A   heading\nmore", "A heading"),
        ("```\n---\nprint(1)", "print(1)"),
        ("> quoted\n", "quoted"),
        ("- **bold** thing", "bold** thing"),
        ("请翻译", "请翻译"),
        ("?!", ""),
        ("", ""),
    ],
)
def test_the_first_line_with_words_is_the_title(text: str, title: str) -> None:
    assert title_of(text) == title


def test_a_long_line_is_cut_at_a_word() -> None:
    assert title_of("word " * 40) == "word " * 15 + "word…"


def test_a_line_without_spaces_is_cut_anyway() -> None:
    assert title_of("x" * 500) == "x" * MOST_TITLE_CHARACTERS + "…"
