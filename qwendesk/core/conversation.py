"""A chat as a tree of messages, and the conversation: its shown turns, each a question and its answer.

Editing and regenerating add branches to the tree and never remove any.
"""

from collections.abc import Callable, Iterator, Mapping

import msgspec

from qwendesk.core.messages import Message, ToolStep, text_message
from qwendesk.core.stats import AnswerStats, StopReason


class ChatNode(msgspec.Struct, frozen=True, kw_only=True):
    """One message at its place in a chat: a question, or an answer with its statistics."""

    id: str
    """32 hex digits of a random UUID: unique in every database, preserved by export and import."""
    parent_id: str = ""
    """The previous message; "" for the first of a chat."""
    message: Message
    created_s: float = 0.0
    """Seconds since 1970, UTC."""
    stop_reason: StopReason | None = None
    """Answers only: None while it streams, and after an error or a crash of the app."""
    stats: AnswerStats = AnswerStats()
    thought_s: float = 0.0
    error: str = ""
    """Answers only: the error message to show if it failed."""
    model: str = ""
    """Answers only: the display name of the model."""
    options_json: str = ""
    """Answers only: the GenerationOptions used, as JSON."""

    @property
    def is_answer(self) -> bool:
        return self.message.role == "assistant"


class ChatTree(msgspec.Struct, frozen=True):
    """All messages of a chat, and which version is shown at each fork."""

    nodes: Mapping[str, ChatNode] = msgspec.field(default_factory=dict)
    """By id, in order of creation."""
    shown: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Id of the version to show by parent id; the newest if there is none."""

    def children(self, node_id: str) -> tuple[ChatNode, ...]:
        """Return the versions of the message after `node_id` ("" for the first message), oldest first."""
        return tuple(node for node in self.nodes.values() if node.parent_id == node_id)

    def path(self) -> tuple[ChatNode, ...]:
        """Return the shown messages, from the first to the last."""
        return tuple(self._below(""))

    def versions(self, node_id: str) -> tuple[str, ...]:
        """Return the ids of all versions of this message, including itself, oldest first."""
        return tuple(node.id for node in self.children(self.nodes[node_id].parent_id))

    def with_node(self, node: ChatNode) -> "ChatTree":
        """Return the tree with `node` added or replaced, and shown."""
        return msgspec.structs.replace(
            self, nodes={**self.nodes, node.id: node}, shown={**self.shown, node.parent_id: node.id}
        )

    def showing(self, node_id: str) -> "ChatTree":
        """Return the tree with this version shown."""
        return msgspec.structs.replace(self, shown={**self.shown, self.nodes[node_id].parent_id: node_id})

    def without(self, node_id: str) -> "ChatTree":
        """Return the tree without this message and all messages below it."""
        gone = {node_id}
        for node in self.nodes.values():
            if node.parent_id in gone:
                gone.add(node.id)
        return ChatTree(
            {key: node for key, node in self.nodes.items() if key not in gone},
            {parent: child for parent, child in self.shown.items() if parent not in gone and child not in gone},
        )

    def _below(self, node_id: str) -> Iterator[ChatNode]:
        newest = {node.parent_id: node.id for node in self.nodes.values()}
        while True:
            node_id = self.shown.get(node_id) or newest.get(node_id, "")
            if not node_id:
                return
            yield self.nodes[node_id]


class Answer(msgspec.Struct, frozen=True):
    """The answer to one question, complete or as far as it has arrived."""

    reasoning: str = ""
    text: str = ""
    steps: tuple[ToolStep, ...] = ()
    """Steps before the reasoning and the text, in which tools were called."""
    stop_reason: StopReason | None = None
    """Reason of the end; None while it streams, and after an error."""
    stats: AnswerStats = AnswerStats()
    thought_s: float = 0.0
    """Seconds from the first reasoning text to the first answer text."""
    error: str = ""
    """The error message to show if it failed; "" otherwise."""
    by_hand: bool = False
    """Written or edited by the user."""
    model: str = ""
    """The display name of the model; "" if unknown."""

    @property
    def is_empty(self) -> bool:
        """Return True if nothing has arrived."""
        return not self.text and not self.reasoning and not self.steps

    @property
    def was_cut_off(self) -> bool:
        """Return True if the app ended before this answer did. Meaningless while the answer streams."""
        return self.stop_reason is None and not self.error

    @property
    def ended_without_text(self) -> bool:
        """Return True if the model itself ended the answer before writing any of it."""
        return not self.text and self.stop_reason == "eos" and not self.by_hand

    @property
    def can_continue(self) -> bool:
        """Return True if the answer is incomplete or was edited, so that the model can continue it."""
        return self.by_hand or self.stop_reason not in ("eos", "stop_string")


class Turn(msgspec.Struct, frozen=True):
    id: int
    """Unique within a chat service. Each version of a question is a separate turn."""
    question: Message
    answer: Answer = Answer()
    question_id: str = ""
    answer_id: str = ""
    """Ids of the question's and the answer's nodes in the chat tree; "" if there is none."""
    question_version: tuple[int, int] = (1, 1)
    answer_version: tuple[int, int] = (1, 1)
    """The number of the shown version, from 1, and how many there are."""


class Conversation(msgspec.Struct, frozen=True):
    turns: tuple[Turn, ...] = ()
    system_prompt: str = ""

    def messages(self) -> tuple[Message, ...]:
        """Return the messages of a request: the system prompt, then the question and answer of each turn.

        An empty answer of the last turn is left out, because it is to be generated. An earlier turn that failed
        without any text is left out entirely: its cause, such as an unreadable image, would make every later request
        fail too.
        """
        messages = [text_message("system", self.system_prompt)] if self.system_prompt.strip() else []
        for index, turn in enumerate(self.turns):
            is_last = index == len(self.turns) - 1
            if turn.answer.is_empty and turn.answer.error and not is_last:
                continue
            if turn.question.parts:
                messages.append(turn.question)
            for step in turn.answer.steps:
                messages += step.messages
            if turn.answer.text or turn.answer.reasoning or not (is_last or turn.answer.steps):
                messages.append(text_message("assistant", turn.answer.text, reasoning=turn.answer.reasoning))
        return tuple(messages)

    def with_turn(self, turn: Turn) -> "Conversation":
        """Return the conversation with `turn` added, or replacing the turn with its id."""
        if any(each.id == turn.id for each in self.turns):
            turns = tuple(turn if each.id == turn.id else each for each in self.turns)
        else:
            turns = (*self.turns, turn)
        return msgspec.structs.replace(self, turns=turns)


def answer_of(node: ChatNode) -> Answer:
    """Return the answer of a node."""
    return Answer(
        reasoning=node.message.reasoning,
        text=node.message.text,
        steps=node.message.steps,
        stop_reason=node.stop_reason,
        stats=node.stats,
        thought_s=node.thought_s,
        error=node.error,
        by_hand=node.stop_reason is not None and not node.options_json,
        model=node.model,
    )


def conversation_of(tree: ChatTree, system_prompt: str, turn_id: Callable[[str], int]) -> Conversation:
    """Return the shown path of `tree` as turns; `turn_id` returns the id of the turn for a node id.

    An answer without a question, as in imported chats, gets an empty one, which is never sent.
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
