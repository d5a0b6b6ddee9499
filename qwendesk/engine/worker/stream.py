"""Tokens become text as they come: whole characters, thought and answer apart, stop texts cut out. Pure."""

import codecs
from collections.abc import Sequence
from typing import Literal

TokenKind = Literal["reasoning", "answer", "marker"]


class Utf8Joiner:
    """Joins the bytes of tokens to text. A character may be spread over tokens; its first bytes are held back."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, data: bytes) -> str:
        """The characters completed by `data`. Bytes that are no UTF-8 become U+FFFD."""
        return self._decoder.decode(data)

    def flush(self) -> str:
        """What an unfinished character leaves: U+FFFD, or nothing. The joiner is as new afterwards."""
        rest = self._decoder.decode(b"", final=True)
        self._decoder.reset()
        return rest


class StopMatcher:
    """Finds the first stop text to be completed, however the text is cut into pieces."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stop for stop in stops if stop)
        self._held = ""
        self._stopped = False

    def feed(self, text: str) -> tuple[str, bool]:
        """The text that is surely no part of a stop text, and whether one was completed.

        The stop text itself and all that follows it are dropped. Of two completed at the same place the longer one
        counts.
        """
        if self._stopped:
            return "", True
        text = self._held + text
        first = self._first_completed(text)
        if first is not None:
            self._held, self._stopped = "", True
            return text[:first], True
        n_held = self._n_held(text)
        safe = len(text) - n_held
        self._held = text[safe:]
        return text[:safe], False

    def flush(self) -> str:
        """The end of the text that was held back because a stop text might have begun there."""
        held, self._held = self._held, ""
        return held

    def _first_completed(self, text: str) -> int | None:
        """Where the stop text that is completed first begins."""
        found = [(start + len(stop), start) for stop in self._stops if (start := text.find(stop)) >= 0]
        return min(found)[1] if found else None

    def _n_held(self, text: str) -> int:
        """Length of the longest end of `text` that begins a stop text."""
        longest = max((len(stop) for stop in self._stops), default=0)
        for length in range(min(longest - 1, len(text)), 0, -1):
            if any(stop.startswith(text[-length:]) for stop in self._stops):
                return length
        return 0


class ThoughtSplitter:
    """Says by its id which part of the output a token belongs to, so that text can never be taken for a marker.

    `open_id` and `close_id` are the tokens `<think>` and `</think>`, None where the model has none; `in_thought` says
    that the prompt ends inside a thought.
    """

    def __init__(self, open_id: int | None, close_id: int | None, *, in_thought: bool) -> None:
        self._open_id = None if close_id is None else open_id  # a thought that cannot end must not begin
        self._close_id = close_id
        self._in_thought = in_thought
        self._at_start = True

    @property
    def in_thought(self) -> bool:
        return self._in_thought

    def feed(self, token_id: int) -> TokenKind:
        """The part `token_id` belongs to; a marker belongs to none and is never shown.

        `<think>` is a marker only where a thought can begin: before any text of the answer or of the thought.
        `</think>` is always one, a second time in the answer too.
        """
        if token_id == self._close_id:
            self._at_start = self._at_start or self._in_thought
            self._in_thought = False
            return "marker"
        if token_id == self._open_id and self._at_start:
            self._in_thought = True
            return "marker"
        self._at_start = False
        return "reasoning" if self._in_thought else "answer"


class BlankTrimmer:
    """Drops the newlines a part of the output begins with, and holds back the white space it may end with."""

    def __init__(self) -> None:
        self._begun = False
        self._held = ""

    def feed(self, text: str) -> str:
        """The text that can be shown now. What is still held back when a thought ends is meant to be dropped."""
        if not self._begun:
            text = text.lstrip("\r\n")
            self._begun = bool(text)
        text = self._held + text
        shown = text.rstrip()
        self._held = text[len(shown) :]
        return shown

    def flush(self) -> str:
        """The white space held back at the end, for a part whose end matters."""
        held, self._held = self._held, ""
        return held
