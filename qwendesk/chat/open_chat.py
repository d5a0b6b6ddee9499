"""OpenChat: the tree and the settings of one chat while it is open."""

import asyncio
from collections.abc import Callable
from typing import Literal, Protocol

import msgspec

from qwendesk.chat.request import question_message, without_last_answer
from qwendesk.chat.tool_rounds import ChatTools
from qwendesk.chat.tree_edits import new_id, restored, subtree
from qwendesk.core.chats import ChatSettings
from qwendesk.core.conversation import ChatNode, ChatTree, Conversation, Turn, conversation_of
from qwendesk.core.errors import BadRequest
from qwendesk.core.translation import tr
from qwendesk.engine.protocol import LoadReport

# The two messages of a turn.
Part = Literal["question", "answer"]


class ChatSaver(Protocol):
    """Saves the changes of chats. All methods are called on the event loop's thread.

    Methods without `async` return at once and never fail: disk errors are reported to the subscribers. The writes of
    one chat reach the disk in the order of the calls.
    """

    def save(self, chat_id: str, node: ChatNode) -> None:
        """Add or replace a complete message: a question, or an answer that has ended. A new message is shown."""

    def save_partial(self, chat_id: str, node_id: str, current: Callable[[], ChatNode]) -> None:
        """Save an answer repeatedly while it is generated; its question must have been saved before.

        Call this for every piece of text. `current` returns the answer so far; it is called every half second at most,
        and never after `save` of the same node.
        """

    def show(self, chat_id: str, parent_id: str, node_id: str) -> None:
        """Save which version is shown below `parent_id` ("" for the first message)."""

    def delete(self, chat_id: str, node_id: str) -> None:
        """Delete a message with everything below it."""

    def save_settings(self, chat_id: str, settings: ChatSettings) -> None:
        """Save the settings of a chat. For a chat without a message, they are saved with its first message."""

    def exclude(self, chat_id: str) -> None:
        """Write nothing of this chat from now on (incognito)."""

    def is_excluded(self, chat_id: str) -> bool:
        """Return whether nothing of this chat is written."""

    async def wait_for_writes(self) -> None:
        """Return when all writes requested so far have ended or failed."""


class NoChatSaver:
    """Saves nothing: for the command line, and for tests without a disk."""

    def save(self, chat_id: str, node: ChatNode) -> None:
        pass

    def save_partial(self, chat_id: str, node_id: str, current: Callable[[], ChatNode]) -> None:
        pass

    def show(self, chat_id: str, parent_id: str, node_id: str) -> None:
        pass

    def delete(self, chat_id: str, node_id: str) -> None:
        pass

    def save_settings(self, chat_id: str, settings: ChatSettings) -> None:
        pass

    def exclude(self, chat_id: str) -> None:
        pass

    def is_excluded(self, chat_id: str) -> bool:
        """Return False: an unsaved chat isn't incognito, so smaller copies of its images may be cached on disk."""
        return False

    async def wait_for_writes(self) -> None:
        pass


class OpenChat:
    """One open chat. Every change is passed to the saver at once."""

    def __init__(
        self,
        saver: ChatSaver,
        turn_ids: dict[str, int],
        tree: ChatTree | None = None,
        settings: ChatSettings | None = None,
        chat_id: str = "",
    ) -> None:
        """`turn_ids` has the turn numbers of all chats of this run, by the question's id; new ones are added to it."""
        self.id = chat_id or new_id()
        self.tree = tree or ChatTree()
        self.settings = settings or ChatSettings()
        self._saver = saver
        self._turn_ids = turn_ids
        self._saved: set[str] = set()
        """Ids of the messages that were passed to the saver."""
        self._derived: tuple[ChatTree, str, Conversation] | None = None
        self._before_delete: tuple[ChatTree, str] | None = None
        """The tree before the last deletion, and the id of the deleted message."""

    @property
    def conversation(self) -> Conversation:
        """The shown path of the tree. Computed only after a change."""
        tree, prompt = self.tree, self.settings.system_prompt
        if self._derived is None or self._derived[0] is not tree or self._derived[1] != prompt:
            self._derived = (tree, prompt, conversation_of(tree, prompt, self.turn_id))
        return self._derived[2]

    @property
    def can_undo_delete(self) -> bool:
        return self._before_delete is not None

    def turn_id(self, question_id: str) -> int:
        """Return the number of the turn that begins with this message."""
        return self._turn_ids.setdefault(question_id, len(self._turn_ids) + 1)

    def find(self, turn_id: int) -> tuple[int, Turn]:
        """Return a shown turn and its index. Raises BadRequest if it isn't shown."""
        for index, turn in enumerate(self.conversation.turns):
            if turn.id == turn_id:
                return index, turn
        raise BadRequest(tr("Message not found"), tr("This message is no longer shown."))

    def node_of(self, turn: Turn, part: Part) -> ChatNode:
        """Return the question or the answer of a turn. Raises BadRequest if it doesn't exist."""
        node = self.tree.nodes.get(turn.question_id if part == "question" else turn.answer_id)
        if node is None:
            raise BadRequest(tr("Message not found"), tr("This message no longer exists."))
        return node

    def note_answer(self, report: LoadReport | None, tools: ChatTools | None) -> None:
        """Note which model is about to answer, and whether it is told what others wrote about their tools."""
        if report is not None:
            self.settings = msgspec.structs.replace(self.settings, model=report.options.model)
        if tools is not None and tools.reads_descriptions(self.settings):
            self.settings = msgspec.structs.replace(self.settings, has_read_descriptions=True)

    def put(self, node: ChatNode, *, save: bool = True) -> None:
        """Add a message, or replace the one with its id, and show it."""
        self.tree = self.tree.with_node(node)
        if save:
            self._saved.add(node.id)
            self._saver.save(self.id, node)
            self._saver.show(self.id, node.parent_id, node.id)
            self._saver.save_settings(self.id, self.settings)

    def ensure_saved(self, node_id: str) -> None:
        """Save a message unless it was saved before. Messages below it can only be written after it."""
        if node_id not in self._saved:
            self.put(self.tree.nodes[node_id])

    def show(self, node_id: str) -> None:
        """Show this version instead of its siblings."""
        self.tree = self.tree.showing(node_id)
        self._saver.show(self.id, self.tree.nodes[node_id].parent_id, node_id)

    def delete(self, node_id: str) -> int:
        """Delete a message and everything below it. Return the number of deleted messages."""
        n_deleted = len(subtree(self.tree, node_id))
        self._before_delete = (self.tree, node_id)
        self.tree = self.tree.without(node_id)
        self._saver.delete(self.id, node_id)
        return n_deleted

    def undo_delete(self) -> int:
        """Restore the messages that were deleted last, and return how many turns before them stayed as they were.

        Raises BadRequest if there is nothing to restore.
        """
        turns = self.conversation.turns
        if self._before_delete is None:
            raise BadRequest(tr("Nothing to undo"), tr("There's nothing to undo."))
        before, node_id = self._before_delete
        self._before_delete = None
        self.tree = restored(before, self.tree, node_id)
        nodes = subtree(before, node_id)
        for node in nodes:
            self._saver.save(self.id, node)
        for parent_id in (before.nodes[node_id].parent_id, *(node.id for node in nodes)):
            if parent_id in self.tree.shown:
                self._saver.show(self.id, parent_id, self.tree.shown[parent_id])
        pairs = zip(turns, self.conversation.turns, strict=False)
        return next((index for index, (old, new) in enumerate(pairs) if old != new), len(turns))

    async def prepare_answer(self, question: ChatNode, node: ChatNode) -> Conversation:
        """Hash the question's images that aren't hashed yet, save it, and return the conversation to answer."""
        message = question.message
        if message.images:
            from qwendesk.chat.image_parts import current_part  # noqa: PLC0415 - as in request.messages_to_send

            images = await asyncio.to_thread(lambda: [current_part(part) for part in message.images])
            if images != list(message.images):
                message = question_message(message.text, images, message.documents)
                question = msgspec.structs.replace(question, message=message)
        self.put(question)
        self.put(node, save=False)
        return without_last_answer(self.conversation)

    def change(self, settings: ChatSettings) -> None:
        self.settings = settings
        self._saver.save_settings(self.id, settings)

    def save_all(self) -> None:
        """Save a chat that was created with all its messages."""
        for node in self.tree.nodes.values():
            self._saver.save(self.id, node)
        self._saver.save_settings(self.id, self.settings)
