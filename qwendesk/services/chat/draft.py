"""An answer while it is written: collects pieces cheaply, gives frozen values on demand."""

from qwendesk.core.conversation import Answer, Turn
from qwendesk.core.messages import Message
from qwendesk.core.stats import AnswerStats, StopReason
from qwendesk.engine.protocol import Delta

_NO_STATS = AnswerStats()


class Draft:
    """The turn that is being answered."""

    def __init__(self, turn_id: int, question: Message) -> None:
        self.turn_id = turn_id
        self.question = question
        self._reasoning: list[str] = []
        self._text: list[str] = []
        self._thought_began_at: float | None = None
        self._thought_ended_at = 0.0

    def add(self, delta: Delta, now: float) -> None:
        """Takes a piece that came at the time `now` (seconds of any steady clock)."""
        if delta.kind == "reasoning":
            self._reasoning.append(delta.text)
            if self._thought_began_at is None:
                self._thought_began_at = now
            self._thought_ended_at = now
            return
        if not self._text:
            self._thought_ended_at = now
        self._text.append(delta.text)

    def answer(
        self, *, stop_reason: StopReason | None = None, stats: AnswerStats = _NO_STATS, error: str = ""
    ) -> Answer:
        """What was written so far, with how it ended if it did."""
        return Answer(
            reasoning="".join(self._reasoning),
            text="".join(self._text),
            stop_reason=stop_reason,
            stats=stats,
            thought_s=0.0 if self._thought_began_at is None else self._thought_ended_at - self._thought_began_at,
            error=error,
        )

    def turn(self) -> Turn:
        return Turn(self.turn_id, self.question, self.answer())
