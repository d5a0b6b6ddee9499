"""Tokens to text: the thought and the answer apart, whole characters only, stop texts held back, sent as they come."""

from collections.abc import Callable, Sequence
from typing import Literal

from qwendesk.core.options import GenerationOptions
from qwendesk.engine.protocol import Begun, Delta, Event
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
        self._stop_texts = options.stop
        self._stops = StopMatcher(self._stop_texts)
        self._blanks = 0
        self._replaying = False
        self._skip = -1
        """Characters still to come that were sent before the cut; -1 while nothing is written again."""
        self._sent: dict[str, list[str]] = {"reasoning": [], "answer": []}
        self.tokens: list[int] = []
        """All of the answer's so far, markers and what was begun before included."""
        self.begun_reasoning_tokens = 0
        """Tokens of thought from before the cut."""
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

    @property
    def sent(self) -> Begun:
        """What was sent of this answer, without what was begun before."""
        return Begun("".join(self._sent["reasoning"]), "".join(self._sent["answer"]))

    def replay(self, tokens: Sequence[int], take: Callable[[int, bool], None]) -> None:
        """Take the tokens of an answer that goes on after a cut: nothing of them is sent or counted again.

        Half characters and white space that were held back at the cut come with what follows. `take` is called with
        each token and whether it is the answer's, leading blanks apart.
        """
        self._replaying = True
        for token in tokens:
            counted, blank = self.answer_tokens, not self.in_thought and self.is_leading_blank(token)
            if self.write(token):
                self._stops = StopMatcher(self._stop_texts)
            take(token, self.answer_tokens > counted and not blank)
        self._stops.flush()  # it was sent at the cut
        self._replaying = False
        self._begin_counting()

    def rewrite(self, token: int, unsent: str) -> None:
        """Take a token of a last word that is written again; the first `unsent` characters of all to come are known."""
        self._skip = len(unsent) if self._skip < 0 else self._skip
        self.write(token)
        self._begin_counting()

    def _begin_counting(self) -> None:
        self.begun_reasoning_tokens += self.reasoning_tokens
        self._blanks -= self.answer_tokens
        self.reasoning_tokens = self.answer_tokens = 0

    def write(self, token: int) -> bool:
        """Take one token; True when it completes a stop text."""
        self.tokens.append(token)
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
        self.tokens.append(token)
        kind = self._splitter.feed(token)
        if kind == "marker":
            self._turn_over()
        else:
            self._say(kind, self._joiner.feed(self._model.piece(token)))

    def finish(self, *, can_go_on: bool) -> None:
        """Send what was held back; of an answer that can go on, not what half a character leaves."""
        kind: Literal["reasoning", "answer"] = "reasoning" if self.in_thought else "answer"
        rest = self._joiner.flush()
        self._say(kind, "" if can_go_on else rest)
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
        if self._skip > 0:
            text, self._skip = text[self._skip :], max(0, self._skip - len(text))
        if text and not self._replaying:
            self._sent[kind].append(text)
            n_tokens = self.reasoning_tokens if kind == "reasoning" else self.answer_tokens
            self._send(Delta(id=self._id, kind=kind, text=text, tokens=n_tokens))
