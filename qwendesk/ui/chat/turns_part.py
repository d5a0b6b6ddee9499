"""Joins the thread's messages to the chat: what people want with one, and what came of it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, cast

from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QAbstractButton, QApplication, QWidget

from qwendesk.services.chat.chat import Part
from qwendesk.ui.bridges.chat import ChatBridge
from qwendesk.ui.chat.undo_bar import UndoBar
from qwendesk.ui.thread.thread_view import ThreadView

_OTHER_WAY: Final[Mapping[str, str]] = MappingProxyType(
    {
        f"thread.{part}{one}": f"thread.{part}{other}"
        for part in ("", "question.")
        for one, other in (("earlier", "later"), ("later", "earlier"))
    }
)
"""At the first and the last version one of the arrows leads nowhere."""


class TurnsPart(QObject):
    """Lives as long as the chat page."""

    def __init__(
        self, thread: ThreadView, chat: ChatBridge, undo_bar: UndoBar, composer: QWidget, parent: QObject
    ) -> None:
        super().__init__(parent)
        self._composer = composer
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
        focus = QApplication.focusWidget()
        row = _row_with(self._thread, focus)
        self._thread.replace_from(kept, turns[kept : len(turns) - 1] if self._chat.busy else turns[kept:])
        self._undo_bar.hide()
        if focus is not None and row >= 2 * kept:
            self._give_focus(row, focus.objectName().rpartition(".")[0])

    def _give_focus(self, row: int, action: str) -> None:
        """To the same button of the message that came in the place of `row`; to the question when there is none."""
        if row < len(self._thread.rows):
            message, turn = self._thread.row_widget(row), self._thread.rows[row].turn.id
            for each in (action, _OTHER_WAY.get(action, action)):
                button = message.findChild(QAbstractButton, f"{each}.{turn}")
                if button is not None and button.isEnabled():
                    button.setFocus(Qt.FocusReason.TabFocusReason)
                    return
        self._composer.setFocus()


def _row_with(thread: ThreadView, focus: QWidget | None) -> int:
    """The row that has the focus; -1 for none."""
    for index in thread.live_rows():
        widget = thread.rows[index].widget
        if widget is not None and focus is not None and widget.isAncestorOf(focus):
            return index
    return -1
