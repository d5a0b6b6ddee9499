"""A conversation as one frozen value: turns of a question and its answer."""

import msgspec

from qwendesk.core.messages import Message, text_message
from qwendesk.core.stats import AnswerStats, StopReason


class Answer(msgspec.Struct, frozen=True):
    """What the model said to one question, finished or so far."""

    reasoning: str = ""
    text: str = ""
    stop_reason: StopReason | None = None
    """Why it ended; None while it streams, and for good when it ended by a failure."""
    stats: AnswerStats = AnswerStats()
    thought_s: float = 0.0
    """Seconds from the thought's first word to the answer's first word."""
    error: str = ""
    """A sentence for people when the answer ended by a failure; empty otherwise."""

    @property
    def is_empty(self) -> bool:
        """Not a word came, neither of thought nor of answer."""
        return not self.text and not self.reasoning


class Turn(msgspec.Struct, frozen=True):
    id: int
    """Unique among all turns of one chat service; grows."""
    question: Message
    answer: Answer = Answer()


class Conversation(msgspec.Struct, frozen=True):
    turns: tuple[Turn, ...] = ()
    system_prompt: str = ""

    def messages(self) -> tuple[Message, ...]:
        """What a request sends: the system prompt, then each turn's question and its answer as far as it got.

        The last turn's answer is left out when it is empty: that is the one to be written. An earlier turn that
        failed without a word is left out as a whole, or what made it fail (a picture that cannot be read, a text
        that is too long) would make every later question fail too.
        """
        messages = [text_message("system", self.system_prompt)] if self.system_prompt.strip() else []
        for index, turn in enumerate(self.turns):
            is_last = index == len(self.turns) - 1
            if turn.answer.is_empty and turn.answer.error and not is_last:
                continue
            messages.append(turn.question)
            if not (turn.answer.is_empty and is_last):
                messages.append(text_message("assistant", turn.answer.text, reasoning=turn.answer.reasoning))
        return tuple(messages)

    def with_turn(self, turn: Turn) -> "Conversation":
        """The same conversation with `turn` at its end, or in place of the turn with its id."""
        if any(each.id == turn.id for each in self.turns):
            turns = tuple(turn if each.id == turn.id else each for each in self.turns)
        else:
            turns = (*self.turns, turn)
        return msgspec.structs.replace(self, turns=turns)
