"""Speeds and lengths in words, with the figures that they stand for."""

import pytest

from qwendesk.core.everyday_units import pages_text, reading_text, speed_level, speed_word


@pytest.mark.parametrize(
    ("tok_s", "level", "word"),
    [
        (0.0, 0, "Not known"),
        (9.4, 1, "Slow"),
        (9.6, 1, "Slow"),
        (9.97, 2, "OK"),
        (24.0, 2, "OK"),
        (25.0, 3, "Fast"),
        (60.0, 4, "Very fast"),
    ],
)
def test_speed_has_a_word(tok_s: float, level: int, word: str) -> None:
    assert (speed_level(tok_s), speed_word(tok_s)) == (level, word)


@pytest.mark.parametrize(
    ("tok_s", "text"),
    [
        (4.0, "slower than you read"),
        (5.4, "about as fast as you read"),
        (45.0, "8 times as fast as you read"),
    ],
)
def test_speed_is_compared_to_reading(tok_s: float, text: str) -> None:
    assert reading_text(tok_s) == text


@pytest.mark.parametrize(
    ("n_tokens", "text"),
    [(100, "1 page"), (4096, "10 pages"), (16_384, "41 pages"), (65_536, "160 pages"), (262_144, "660 pages")],
)
def test_length_is_told_in_pages_of_two_digits(n_tokens: int, text: str) -> None:
    assert pages_text(n_tokens) == text
