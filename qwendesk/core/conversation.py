"""A conversation as one frozen value: the turns that are shown of a chat, each a question and its answer."""

from collections.abc import Callable

import msgspec

from qwendesk.core.chat_tree import ChatNode, ChatTree
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
    by_hand: bool = False
    """Written or changed by a person."""
    model: str = ""
    """The model's name as people know it; "" where it is not known."""

    @property
    def is_empty(self) -> bool:
        """Not a word came, neither of thought nor of answer."""
        return not self.text and not self.reasoning

    @property
    def was_cut_off(self) -> bool:
        """Of an answer that is not being made: the app ended before it did."""
        return self.stop_reason is None and not self.error

    @property
    def can_go_on(self) -> bool:
        """Whether there is anything to continue: it was stopped, cut, broke off, or was changed by hand."""
        return self.by_hand or self.stop_reason not in ("eos", "stop_string")


class Turn(msgspec.Struct, frozen=True):
    id: int
    """Unique among all turns of one chat service, and of one question: another version of it is another turn."""
    question: Message
    answer: Answer = Answer()
    question_id: str = ""
    answer_id: str = ""
    """Ids of their nodes in the chat's tree; "" for what is not there."""
    question_version: tuple[int, int] = (1, 1)
    answer_version: tuple[int, int] = (1, 1)
    """Which version is shown, of how many."""


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
            if turn.question.parts:
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


def answer_of(node: ChatNode) -> Answer:
    """An answer's node as people see it."""
    return Answer(
        reasoning=node.message.reasoning,
        text=node.message.text,
        stop_reason=node.stop_reason,
        stats=node.stats,
        thought_s=node.thought_s,
        error=node.error,
        by_hand=node.stop_reason is not None and not node.options_json,
        model=node.model,
    )


def conversation_of(tree: ChatTree, system_prompt: str, turn_id: Callable[[str], int]) -> Conversation:
    """The path that is shown of `tree`; `turn_id` gives the number that stands for a question's node.

    An answer without a question (in an imported chat) gets an empty one, which no request sends.
    """
    siblings: dict[str, list[str]] = {}
    for node in tree.nodes.values():
        siblings.setdefault(node.parent_id, []).append(node.id)

    def version(node: ChatNode) -> tuple[int, int]:
        among = siblings[node.parent_id]
        return among.index(node.id) + 1, len(among)

    turns: list[Turn] = []
    for node in tree.path():
        if node.is_answer:
            open_turn = turns[-1] if turns and not turns[-1].answer_id else None
            base = open_turn or Turn(turn_id(node.id), Message("user"))
            answered = msgspec.structs.replace(
                base, answer=answer_of(node), answer_id=node.id, answer_version=version(node)
            )
            turns[-1:] = [answered] if open_turn else [*turns[-1:], answered]
        elif node.message.role == "user":
            turns.append(Turn(turn_id(node.id), node.message, question_id=node.id, question_version=version(node)))
    return Conversation(tuple(turns), system_prompt)
