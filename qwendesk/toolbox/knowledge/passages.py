"""Cuts texts into passages: a few lines that are found and shown together."""

from collections.abc import Iterator, Sequence

import msgspec

_CHARACTERS = 800
"""A passage ends with the line that reaches this length, about 200 tokens."""
_ENOUGH_CHARACTERS = 300
"""A passage of this length ends at the next blank line."""
_MOST_LINES = 20


class Passage(msgspec.Struct, frozen=True):
    first: int
    """Number of its first line, from 1."""
    last: int
    text: str
    at: int = 0
    """Number of its page, slide, sheet or chapter, from 1; 0 if the file has none."""
    name: str = ""
    """Of its sheet."""


def passages(lines: Sequence[str], at: int = 0, name: str = "") -> Iterator[Passage]:
    """Yield the passages of a text or of a part of a document, without those that are blank."""
    texts: list[str] = []
    first, length = 1, 0
    for number, line in enumerate(lines, 1):
        is_over = length >= _ENOUGH_CHARACTERS and not line.strip()
        if texts and (is_over or length + len(line) > _CHARACTERS or len(texts) == _MOST_LINES):
            yield from _passage(first, texts, at, name)
            first, texts, length = number, [], 0
        if len(line) > _CHARACTERS:
            for piece in _pieces(line):
                yield from _passage(number, [piece], at, name)
            first = number + 1
            continue
        texts.append(line)
        length += len(line) + 1
    yield from _passage(first, texts, at, name)


def _passage(first: int, texts: list[str], at: int, name: str) -> Iterator[Passage]:
    text = "\n".join(texts)
    if text.strip():
        yield Passage(first, first + len(texts) - 1, text, at, name)


def _pieces(line: str) -> Iterator[str]:
    """Cut a long line between words, or anywhere if it has no spaces."""
    start = 0
    while start < len(line):
        end = start + _CHARACTERS
        space = line.rfind(" ", start + _CHARACTERS // 2, end) if end < len(line) else -1
        end = space + 1 if space > 0 else end
        yield line[start:end]
        start = end
