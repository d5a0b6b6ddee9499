"""A chat as a tree of messages: editing and regenerating add branches and never remove any."""

from collections.abc import Iterator, Mapping

import msgspec

from qwendesk.core.messages import Message
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
