"""Splits an answer in which the server left the reasoning between <think> and </think>."""

from typing import Final, Literal

Piece = tuple[Literal["reasoning", "answer"], str]

_OPEN: Final = "<think>"
_CLOSE: Final = "</think>"
_MOST_BLANKS: Final = 1000
"""Characters that may stand before <think>. Text that is held back is looked through with each piece."""


class ThinkSplitter:
    """Takes the text piece by piece. Only a tag at the very beginning opens reasoning, and the first one closes it.

    A chat template may already have opened the reasoning, in which case the text has only the closing tag:
    `starts_open` says so. If that was not known, `has_stray_close` becomes true.
    """

    def __init__(self, *, starts_open: bool = False) -> None:
        self._state: Literal["start", "reasoning", "answer", "unsplit"] = "reasoning" if starts_open else "start"
        self._held = ""
        self._last = ""
        self._is_first = False
        """Whether the next text begins a section, whose leading line breaks belong to the tag."""
        self.has_stray_close = False

    def feed(self, text: str) -> list[Piece]:
        """Return the pieces that are certain now."""
        self._held += text
        pieces: list[Piece] = []
        if self._state == "start":
            stripped = self._held.lstrip()
            if stripped.startswith(_OPEN):
                self._begin("reasoning", stripped.removeprefix(_OPEN))
            elif _OPEN.startswith(stripped) and len(self._held) <= _MOST_BLANKS:
                return []
            else:
                self._state = "unsplit"
        if self._state == "reasoning":
            before, tag, after = self._held.partition(_CLOSE)
            n_certain = len(before) if tag else len(before) - _length_of_begun_tag(before)
            self._emit(pieces, "reasoning", before[:n_certain])
            if not tag:
                return pieces
            self._begin("answer", after)
        if self._state == "unsplit":
            self._last = (self._last + self._held)[-(len(_CLOSE) + len(self._held)) :]
            self.has_stray_close = self.has_stray_close or _CLOSE in self._last
            self._last = self._last[-len(_CLOSE) :]
        self._emit(pieces, "answer", self._held)
        return pieces

    def end(self) -> list[Piece]:
        """Return what was held back, at the end of the answer."""
        held, self._held = self._held, ""
        kind: Literal["reasoning", "answer"] = "reasoning" if self._state == "reasoning" else "answer"
        return [(kind, held)] if held else []

    def _begin(self, state: Literal["reasoning", "answer"], rest: str) -> None:
        self._state, self._held, self._is_first = state, rest, True

    def _emit(self, pieces: list[Piece], kind: Literal["reasoning", "answer"], text: str) -> None:
        self._held = self._held[len(text) :]
        if self._is_first:
            text = text.lstrip("\n")
        if text:
            self._is_first = False
            pieces.append((kind, text))


def _length_of_begun_tag(text: str) -> int:
    """Return how many characters at the end may be the beginning of the closing tag."""
    return next((n for n in range(len(_CLOSE) - 1, 0, -1) if text.endswith(_CLOSE[:n])), 0)
