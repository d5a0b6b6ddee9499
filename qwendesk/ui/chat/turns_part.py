"""Joins the thread's messages to the chat: what people want with one, and what came of it."""

from typing import Literal, cast

from PySide6.QtCore import QObject, Qt

from qwendesk.services.chat.chat import Part
from qwendesk.ui.bridges.chat import ChatBridge
from qwendesk.ui.chat.undo_bar import UndoBar
from qwendesk.ui.thread.thread_view import ThreadView


class TurnsPart(QObject):
    """Lives as long as the chat page."""

    def __init__(self, thread: ThreadView, chat: ChatBridge, undo_bar: UndoBar, parent: QObject) -> None:
        super().__init__(parent)
        self._thread, self._chat, self._undo_bar = thread, chat, undo_bar
        intents = thread.intents
        intents.is_last = self._is_last
        intents.is_busy = lambda: chat.busy
        chat.turn_started.connect(intents.busy_changed)
        chat.turn_ended.connect(intents.busy_changed)
        # Queued: a message may be taken away by what it asked for, and a button must outlive its own click.
        queued = Qt.ConnectionType.QueuedConnection
        intents.question_edited.connect(chat.edit_question, queued)
        intents.answer_edited.connect(chat.edit_answer, queued)
        intents.regenerate.connect(chat.regenerate, queued)
        intents.resume.connect(chat.resume, queued)
        intents.branch.connect(chat.branch, queued)
        intents.delete.connect(self._on_delete, queued)
        intents.version.connect(self._on_version, queued)
        undo_bar.undo_asked.connect(chat.undo_delete)
        chat.turns_replaced.connect(self._on_turns_replaced)
        chat.deleted.connect(undo_bar.show_deleted)
        chat.turn_started.connect(undo_bar.hide)
        chat.replaced.connect(undo_bar.hide)

    def _is_last(self, turn_id: int) -> bool:
        turns = self._chat.conversation.turns
        return bool(turns) and turns[-1].id == turn_id

    def _on_delete(self, turn_id: int, part: str) -> None:
        self._chat.delete(turn_id, cast(Part, part))

    def _on_version(self, turn_id: int, part: str, step: int) -> None:
        self._chat.show_version(turn_id, cast(Part, part), cast(Literal[-1, 1], step))

    def _on_turns_replaced(self, kept: int) -> None:
        """The turn that is being answered comes by itself, when it starts."""
        turns = self._chat.conversation.turns
        self._thread.replace_from(kept, turns[kept : len(turns) - 1] if self._chat.busy else turns[kept:])
        self._undo_bar.hide()
