"""Speeds and lengths in words: what a number of tokens means to somebody who reads along.

A token is about three quarters of a word, and a page has 300 words, which is 400 tokens: rules of thumb for English
prose. Most adults read about four words per second.
"""

from qwendesk.core.number_format import show_decimal
from qwendesk.core.translation import installed_language, tr, tr_n
from qwendesk.core.units import show_rate

TOKENS_PER_PAGE = 400
_WORDS_PER_TOKEN, _READ_WORDS_PER_S = 0.75, 4.0
READING_TOK_S = _READ_WORDS_PER_S / _WORDS_PER_TOKEN
"""How fast most adults read, in tokens per second."""
# Languages that are written without blanks: nobody counts their words.
_WITHOUT_WORDS = ("zh", "ja", "th", "lo", "km", "my")
# Speeds in tokens per second at which the next word begins.
_OK, _FAST, _VERY_FAST = 10, 25, 60
SLOW_LEVEL, FAST_LEVEL = 1, 3
"""The `speed_level` that is called slow, and that from which a speed is called fast."""


def speed_level(tok_s: float) -> int:
    """Return 1 (slow) to 4 (very fast) for a speed in tokens per second; 0 if it is unknown."""
    shown = round(tok_s, 0 if tok_s >= _OK else 1)  # as `show_rate` shows it, beside the word
    return 1 + sum(shown >= limit for limit in (_OK, _FAST, _VERY_FAST)) if tok_s else 0


def speed_word(tok_s: float) -> str:
    """Return "Slow", "OK", "Fast" or "Very fast" for a speed in tokens per second."""
    return (tr("Not known"), tr("Slow"), tr("OK"), tr("Fast"), tr("Very fast"))[speed_level(tok_s)]


def rate_text(tok_s: float) -> str:
    """Return a speed as "34 words a second (45 tok/s)", or "45 tok/s" in a language that has no words to count."""
    if installed_language().startswith(_WITHOUT_WORDS):
        return tr("{0} tok/s", show_rate(tok_s))
    words = tok_s * _WORDS_PER_TOKEN
    return tr("{0} words a second ({1} tok/s)", show_decimal(words, 0 if words >= 3 else 1), show_rate(tok_s))


def reading_text(tok_s: float) -> str:
    """Return how a speed in tokens per second compares to reading: "8 times as fast as you read"."""
    times = tok_s * _WORDS_PER_TOKEN / _READ_WORDS_PER_S
    if times < 0.8:
        return tr("slower than you read")
    if times < 1.5:
        return tr("about as fast as you read")
    return tr("{0} times as fast as you read", show_decimal(times, 0))


def pages_text(n_tokens: int) -> str:
    """Return how many pages a number of tokens is, in two digits: "160 pages" for 64K."""
    pages = max(round(n_tokens / TOKENS_PER_PAGE), 1)
    digits = 10 ** max(len(str(pages)) - 2, 0)
    rounded = round(pages / digits) * digits
    return tr_n("{0} page", "{0} pages", rounded)
