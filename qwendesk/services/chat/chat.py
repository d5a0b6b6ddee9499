"""The chat that is open: its tree of messages, its settings, and how they get onto the disk."""

from typing import Literal

from qwendesk.core.chat_tree import ChatNode, ChatTree
from qwendesk.core.chats import ChatSettings
from qwendesk.core.conversation import Conversation, Turn, conversation_of
from qwendesk.core.errors import BadRequest
from qwendesk.services.chat.branching import below, new_id, restored
from qwendesk.services.chat.keeping import ChatKeeper

Part = Literal["question", "answer"]
"""The two messages of a turn."""


class OpenChat:
    """One chat while it is open. Changes go to the keeper at once."""

    def __init__(
        self,
        keeper: ChatKeeper,
        numbers: dict[str, int],
        tree: ChatTree | None = None,
        settings: ChatSettings | None = None,
        chat_id: str = "",
    ) -> None:
        """`numbers` are the ids of turns of all chats of this run, by node."""
        self.id = chat_id or new_id()
        self.tree = tree or ChatTree()
        self.settings = settings or ChatSettings()
        self._keeper = keeper
        self._numbers = numbers
        self._saved: set[str] = set()
        self._derived: tuple[ChatTree, str, Conversation] | None = None
        self._before: tuple[ChatTree, str] | None = None
        """The tree before the last deletion, and the id of what was deleted."""

    @property
    def conversation(self) -> Conversation:
        """What is shown of the tree; made again only when something changed."""
        tree, prompt = self.tree, self.settings.system_prompt
        if self._derived is None or self._derived[0] is not tree or self._derived[1] != prompt:
            self._derived = (tree, prompt, conversation_of(tree, prompt, self.turn_id))
        return self._derived[2]

    @property
    def can_undo(self) -> bool:
        return self._before is not None

    def turn_id(self, node_id: str) -> int:
        """The number of the turn that begins with this message."""
        return self._numbers.setdefault(node_id, len(self._numbers) + 1)

    def find(self, turn_id: int) -> tuple[int, Turn]:
        """The turn and how many are before it. Raises BadRequest when it is not shown (any more)."""
        for index, turn in enumerate(self.conversation.turns):
            if turn.id == turn_id:
                return index, turn
        raise BadRequest("Not there any more", "This message is not shown any more.")

    def node_of(self, turn: Turn, part: Part) -> ChatNode:
        """Raises BadRequest when the turn has no such message."""
        node = self.tree.nodes.get(turn.question_id if part == "question" else turn.answer_id)
        if node is None:
            raise BadRequest("Nothing there", "There is no such message.")
        return node

    def put(self, node: ChatNode, *, save: bool = True) -> None:
        """Adds a message, or changes the one with its id, and shows it."""
        self.tree = self.tree.with_node(node)
        if save:
            self._saved.add(node.id)
            self._keeper.save(self.id, node)
            self._keeper.show(self.id, node.parent_id, node.id)
            self._keeper.save_settings(self.id, self.settings)

    def make_sure_of(self, node_id: str) -> None:
        """Saves a message, unless that was done: what follows it needs it on the disk."""
        if node_id not in self._saved:
            self.put(self.tree.nodes[node_id])

    def show(self, node_id: str) -> None:
        """Shows this version at its fork."""
        self.tree = self.tree.showing(node_id)
        self._keeper.show(self.id, self.tree.nodes[node_id].parent_id, node_id)

    def delete(self, node_id: str) -> int:
        """Takes a message and all below it away; how many that were."""
        n_gone = len(below(self.tree, node_id))
        self._before = (self.tree, node_id)
        self.tree = self.tree.without(node_id)
        self._keeper.delete(self.id, node_id)
        return n_gone

    def undo_delete(self) -> None:
        """Brings back what was deleted last. Raises BadRequest when there is nothing to bring back."""
        if self._before is None:
            raise BadRequest("Nothing to undo", "There is nothing to bring back.")
        before, node_id = self._before
        self._before = None
        self.tree = restored(before, self.tree, node_id)
        back = below(before, node_id)
        for node in back:
            self._keeper.save(self.id, node)
        for parent_id in (before.nodes[node_id].parent_id, *(node.id for node in back)):
            if parent_id in self.tree.shown:
                self._keeper.show(self.id, parent_id, self.tree.shown[parent_id])

    def change(self, settings: ChatSettings) -> None:
        self.settings = settings
        self._keeper.save_settings(self.id, settings)

    def save_all(self) -> None:
        """For a chat that was made at once, from another."""
        for node in self.tree.nodes.values():
            self._keeper.save(self.id, node)
        self._keeper.save_settings(self.id, self.settings)


def settings_for_new(settings: ChatSettings) -> ChatSettings:
    """What a new chat takes over from the one before: how it answers, not what it is about.

    That is thinking, its budget, the preset and what was set by hand; not the system prompt, the schema, the grammar,
    the model (which is the one that is loaded) and what is left out of the context.
    """
    overrides = {key: text for key, text in settings.overrides.items() if key != "grammar"}
    return ChatSettings(
        preset=settings.preset,
        preset_name=settings.preset_name,
        preset_values=settings.preset_values,
        thinking=settings.thinking,
        overrides=overrides,
    )
