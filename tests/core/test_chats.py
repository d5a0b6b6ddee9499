"""A chat's title from its first question."""

import pytest

from qwendesk.core.chats import MOST_TITLE_CHARACTERS, title_of, title_of_question
from qwendesk.core.messages import ClipFrame, DocumentPart, ImagePart, Message, TextPart


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


def test_a_question_without_words_is_called_like_its_document_or_clip() -> None:
    frames = tuple(ImagePart("a.png", "a", frame=ClipFrame("walk.mp4", "sha", time_s, 3.0)) for time_s in (0.0, 1.0))
    assert title_of_question(Message("user", frames)) == "walk.mp4"
    assert title_of_question(Message("user", (*frames, DocumentPart("notes.txt", "words")))) == "notes.txt"
    assert title_of_question(Message("user", (*frames, TextPart("What happens?")))) == "What happens?"
    assert title_of_question(Message("user", (ImagePart("a.png", "a"),))) == ""
