"""Word by word, what one text says otherwise than another. Pure functions."""

import difflib
import re

import msgspec

_WORDS = re.compile(r"\s*(?:\w+|[^\w\s])")
"""Words and single other characters, each with the white space before it; joined they are the text."""
_LINES = re.compile(r"[^\n]*\n|[^\n]+")
_MOST_PIECES = 4_000
"""Longer texts are compared line by line: the time grows with the square of the length."""


class TextRun(msgspec.Struct, frozen=True):
    """A part of a text that is the same as in the other text, or is not."""

    text: str
    differs: bool


class Differences(msgspec.Struct, frozen=True):
    """A text as runs, and how much of it is different."""

    runs: tuple[TextRun, ...] = ()
    """Joined, they are the text without white space at its ends."""
    n_added: int = 0
    """Words of the text that the other one doesn't have at this place."""
    n_missing: int = 0
    """Words of the other text that this one doesn't have at this place."""

    @property
    def are_none(self) -> bool:
        return not any(run.differs for run in self.runs) and not self.n_missing


def differences(base: str, text: str) -> Differences:
    """Return how `text` differs from `base`. The amount of white space between words doesn't count.

    Takes up to a second for texts of a few thousand words that have little in common.
    """
    base, text = base.strip(), text.strip()
    before, after = _WORDS.findall(base), _WORDS.findall(text)
    if max(len(before), len(after)) > _MOST_PIECES:
        before, after = _LINES.findall(base), _LINES.findall(text)
    runs: list[TextRun] = []
    added = missing = 0
    matcher = difflib.SequenceMatcher(None, _without_gaps(before), _without_gaps(after), autojunk=False)
    for kind, low, high, first, last in matcher.get_opcodes():
        piece = "".join(after[first:last])
        if kind != "equal":
            added += len(piece.split())
            missing += len("".join(before[low:high]).split())
        if piece:
            runs.append(TextRun(piece, differs=kind != "equal"))
    return Differences(tuple(runs), added, missing)


def _without_gaps(pieces: list[str]) -> list[str]:
    return [" ".join(piece.split()) for piece in pieces]
