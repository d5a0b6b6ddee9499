"""Words as the full-text index has them, and the expressions that find them.

Chinese, Japanese, Korean, Thai and their neighbours are written without spaces between words, so each of their
characters is a word of the index, and what was asked is a phrase of such words: any part of a sentence is found.
"""

import re
import unicodedata

_NO_SPACES = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u303f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
    r"\uf900-\ufaff\U00020000-\U0003ffff]"
)
_MOST_WORDS = 16
_SHORTEST_BEGINNING = 3
"""A word of at least this many characters also finds longer words that begin with it."""


def indexed(text: str) -> str:
    """Return a text as it is given to the index: characters of one width, those of languages without spaces apart."""
    return _NO_SPACES.sub(r" \g<0> ", unicodedata.normalize("NFKC", text))


def query_words(query: str) -> tuple[str, ...]:
    """Return the words of a query, without marks. In languages without spaces, a run of characters is one word."""
    plain = unicodedata.normalize("NFKC", query)
    return tuple(dict.fromkeys("".join(map(_or_space, plain)).split()))[:_MOST_WORDS]


def all_words(words: tuple[str, ...]) -> str:
    """Return the expression of FTS5 that finds what contains all `words`."""
    return " AND ".join(map(_phrase, words))


def any_word(words: tuple[str, ...]) -> str:
    """Return the expression of FTS5 that finds what contains one of `words`, or two characters of a long one."""
    return " OR ".join(_phrase(piece) for word in words for piece in _pieces(word))


def _or_space(character: str) -> str:
    is_part = character.isalnum() or character == "_" or unicodedata.category(character).startswith("M")
    return character if is_part else " "


def _phrase(word: str) -> str:
    is_beginning = len(word) >= _SHORTEST_BEGINNING and not _NO_SPACES.match(word[-1])
    return f'"{indexed(word)}"{"*" if is_beginning else ""}'


def _pieces(word: str) -> list[str]:
    """Return a word, or if it has no spaces, each two neighbouring characters of it."""
    if len(word) <= 2 or not all(map(_NO_SPACES.match, word)):
        return [word]
    return [word[at : at + 2] for at in range(len(word) - 1)]
