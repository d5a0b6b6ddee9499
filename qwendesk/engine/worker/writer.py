"""Tokens to text: the thought and the answer apart, whole characters only, stop texts held back, sent as they come."""

from collections.abc import Callable
from typing import Literal

from qwendesk.core.options import GenerationOptions
from qwendesk.engine.protocol import Delta, Event
from qwendesk.engine.worker.loader import Session
from qwendesk.engine.worker.stream import BlankTrimmer, StopMatcher, ThoughtSplitter, Utf8Joiner

_MOST_BLANKS = 2
"""Blank tokens between a thought and the answer that a grammar lets pass."""


class Writer:
    """Takes the tokens of one answer in order and sends Delta events."""

    def __init__(
        self, session: Session, options: GenerationOptions, request_id: int, send: Callable[[Event], None], *,
        in_thought: bool,
    ) -> None:  # fmt: skip
        self._model, self._id, self._send = session.model, request_id, send
        self._splitter = ThoughtSplitter(session.special("<think>"), session.special("</think>"), in_thought=in_thought)
        self._joiner = Utf8Joiner()
        self._trimmer = BlankTrimmer()
        self._stops = StopMatcher(options.stop)
        self._blanks = 0
        self.reasoning_tokens = 0
        self.answer_tokens = 0

    @property
    def in_thought(self) -> bool:
        return self._splitter.in_thought

    def is_leading_blank(self, token: int) -> bool:
        """Whether `token` is only white space before the answer's first word."""
        piece = self._model.piece(token)
        blank = self._blanks == self.answer_tokens < _MOST_BLANKS and bool(piece) and not piece.strip()
        self._blanks += blank
        return blank

    def write(self, token: int) -> bool:
        """Take one token; True when it completes a stop text."""
        kind = self._splitter.feed(token)
        if kind == "marker":
            self._turn_over()
            return False
        if kind == "reasoning":
            self.reasoning_tokens += 1
        else:
            self.answer_tokens += 1
        return self._say(kind, self._joiner.feed(self._model.piece(token)))

    def write_forced(self, token: int) -> None:
        """Take a token of the closing text: shown with the thought, but nobody's output, so not counted."""
        kind = self._splitter.feed(token)
        if kind == "marker":
            self._turn_over()
        else:
            self._say(kind, self._joiner.feed(self._model.piece(token)))

    def finish(self) -> None:
        """Send what was held back."""
        kind: Literal["reasoning", "answer"] = "reasoning" if self.in_thought else "answer"
        self._say(kind, self._joiner.flush())
        if kind == "answer":
            self._emit(kind, self._stops.flush())

    def _turn_over(self) -> None:
        """The other part begins: its own first blanks are dropped, half characters end here."""
        self._joiner.flush()
        self._trimmer = BlankTrimmer()

    def _say(self, kind: Literal["reasoning", "answer"], text: str) -> bool:
        text = self._trimmer.feed(text)
        if kind == "reasoning":
            self._emit(kind, text)
            return False
        text, stopped = self._stops.feed(text + self._trimmer.flush())
        self._emit(kind, text)
        return stopped

    def _emit(self, kind: Literal["reasoning", "answer"], text: str) -> None:
        if text:
            n_tokens = self.reasoning_tokens if kind == "reasoning" else self.answer_tokens
            self._send(Delta(id=self._id, kind=kind, text=text, tokens=n_tokens))
