"""Turn a stream of tokens into text: join bytes to characters, separate its parts, find stop texts."""

import codecs
from collections.abc import Sequence
from typing import Literal

TokenKind = Literal["reasoning", "answer", "call", "marker", "call begins", "call ends"]
"""The part of the output that a token belongs to. The last three are markers, which are never shown."""


class Utf8Joiner:
    """Joins the bytes of tokens to text. The bytes of a character that is split over tokens are held back."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, data: bytes) -> str:
        """Return the characters that `data` completes. Bytes that are not valid UTF-8 become U+FFFD."""
        return self._decoder.decode(data)

    def flush(self) -> str:
        """Return U+FFFD for an incomplete character, else "", and start again."""
        rest = self._decoder.decode(b"", final=True)
        self._decoder.reset()
        return rest


class StopMatcher:
    """Finds the stop text that is completed first, even if it is split over several pieces."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = tuple(stop for stop in stops if stop)
        self._held = ""
        self._stopped = False
        self.rest = ""
        """The stop text that was completed, and what came after it in the same piece."""

    def feed(self, text: str) -> tuple[str, bool]:
        """Return the text that cannot be part of a stop text, and whether a stop text was completed.

        The stop text and everything after it are dropped. If two end at the same position, the longer one counts.
        """
        if self._stopped:
            return "", True
        text = self._held + text
        first = self._first_completed(text)
        if first is not None:
            self._held, self._stopped, self.rest = "", True, text[first:]
            return text[:first], True
        n_held = self._n_held(text)
        safe = len(text) - n_held
        self._held = text[safe:]
        return text[:safe], False

    def flush(self) -> str:
        """Return the text that was held back because a stop text might have begun there."""
        held, self._held = self._held, ""
        return held

    def _first_completed(self, text: str) -> int | None:
        """Return the index at which the stop text that is completed first begins; None if there is none."""
        found = [(start + len(stop), start) for stop in self._stops if (start := text.find(stop)) >= 0]
        return min(found)[1] if found else None

    def _n_held(self, text: str) -> int:
        """Return the length of the longest end of `text` that is the beginning of a stop text."""
        longest = max((len(stop) for stop in self._stops), default=0)
        for length in range(min(longest - 1, len(text)), 0, -1):
            if any(stop.startswith(text[-length:]) for stop in self._stops):
                return length
        return 0


class OutputSplitter:
    """Decides by its id to which part of the output a token belongs, so that text is never mistaken for a marker.

    `open_id` and `close_id` are the tokens `<think>` and `</think>`, or None if the model does not have them; `calls`
    are `<tool_call>` and `</tool_call>`, or None if no tool may be called. `in_reasoning` says whether the prompt ends
    inside an open `<think>`.
    """

    def __init__(
        self, open_id: int | None, close_id: int | None, *, in_reasoning: bool, calls: tuple[int, int] | None = None
    ) -> None:
        self._open_id = None if close_id is None else open_id  # reasoning that cannot end must not begin
        self._close_id = close_id
        self._call_open_id: int | None = calls[0] if calls else None
        self._call_close_id: int | None = calls[1] if calls else None
        self._in_reasoning = in_reasoning
        self._in_call = False
        self._at_start = True

    @property
    def in_reasoning(self) -> bool:
        return self._in_reasoning

    @property
    def in_call(self) -> bool:
        return self._in_call

    def begin_call(self) -> None:
        """A call begins that no token `<tool_call>` announced."""
        self._in_reasoning, self._in_call = False, True

    def end_call(self) -> None:
        self._in_call = False

    def feed(self, token_id: int) -> TokenKind:
        """Return the part of the output that `token_id` belongs to.

        `<think>` is a marker only before any text of the reasoning or the answer. `</think>` is always a marker, even
        a second one in the answer or in a call. `<tool_call>` ends the reasoning, and a call that did not end.
        """
        if token_id == self._call_open_id:
            self._at_start = False
            self.begin_call()
            return "call begins"
        if token_id == self._call_close_id:
            was_call, self._in_call = self._in_call, False
            return "call ends" if was_call else "marker"
        if self._in_call:
            return "marker" if token_id == self._close_id else "call"
        if token_id == self._close_id:
            self._at_start = self._at_start or self._in_reasoning
            self._in_reasoning = False
            return "marker"
        if token_id == self._open_id and self._at_start:
            self._in_reasoning = True
            return "marker"
        self._at_start = False
        return "reasoning" if self._in_reasoning else "answer"


class BlankTrimmer:
    """Drops newlines at the beginning of a part of the output, and holds back white space that may be its end."""

    def __init__(self, dropped: str = "\r\n") -> None:
        """`dropped` are the characters that are dropped at the beginning."""
        self._dropped = dropped
        self._begun = False
        self._held = ""

    def feed(self, text: str) -> str:
        """Return the text that can be shown now. White space still held back when the reasoning ends is dropped."""
        if not self._begun:
            text = text.lstrip(self._dropped)
            self._begun = bool(text)
        text = self._held + text
        shown = text.rstrip()
        self._held = text[len(shown) :]
        return shown

    def flush(self) -> str:
        """Return the white space that is held back, for a part that keeps it."""
        held, self._held = self._held, ""
        return held
