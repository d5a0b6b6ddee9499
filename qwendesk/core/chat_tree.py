"""A chat as a tree of messages: editing and answering again add branches and never destroy one."""

from collections.abc import Iterator, Mapping

import msgspec

from qwendesk.core.messages import Message
from qwendesk.core.stats import AnswerStats, StopReason


class ChatNode(msgspec.Struct, frozen=True, kw_only=True):
    """One message where it stands in its chat: a question, or an answer with what it took."""

    id: str
    """32 hex digits of a random UUID: unique in every database, kept by export and import."""
    parent_id: str = ""
    """The message before; "" for a chat's first."""
    message: Message
    created_s: float = 0.0
    """Seconds since 1970, UTC."""
    stop_reason: StopReason | None = None
    """Answers only: None while it streams, and for good when it ended by a failure or was cut off by a crash."""
    stats: AnswerStats = AnswerStats()
    thought_s: float = 0.0
    error: str = ""
    """Answers only: a sentence for people when it ended by a failure."""
    model: str = ""
    """Answers only: the model's name as people know it."""
    options_json: str = ""
    """Answers only: the GenerationOptions it was made with, as JSON."""

    @property
    def is_answer(self) -> bool:
        return self.message.role == "assistant"


class ChatTree(msgspec.Struct, frozen=True):
    """All messages of a chat, and which of several versions is shown at each fork."""

    nodes: Mapping[str, ChatNode] = msgspec.field(default_factory=dict)
    """By id, in the order they were made."""
    shown: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Parent id to the id of the version that is shown below it; where it says nothing, the newest is shown."""

    def children(self, node_id: str) -> tuple[ChatNode, ...]:
        """The versions of what follows `node_id` ("" for the chat's first message), oldest first."""
        return tuple(node for node in self.nodes.values() if node.parent_id == node_id)

    def path(self) -> tuple[ChatNode, ...]:
        """The messages that are shown, from the first to the last."""
        return tuple(self._below(""))

    def versions(self, node_id: str) -> tuple[str, ...]:
        """The ids of all versions of this message, itself included, oldest first."""
        return tuple(node.id for node in self.children(self.nodes[node_id].parent_id))

    def with_node(self, node: ChatNode) -> "ChatTree":
        """The same tree with `node` added, or in the place of the one with its id, and shown."""
        return msgspec.structs.replace(
            self, nodes={**self.nodes, node.id: node}, shown={**self.shown, node.parent_id: node.id}
        )

    def showing(self, node_id: str) -> "ChatTree":
        """The same tree with this version shown at its fork."""
        return msgspec.structs.replace(self, shown={**self.shown, self.nodes[node_id].parent_id: node_id})

    def without(self, node_id: str) -> "ChatTree":
        """The same tree without this message and everything that follows it."""
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
