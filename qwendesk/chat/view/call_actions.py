"""Performs what the user asks for in the row of a tool call: stop, retry, undo, redo, and showing its folder."""

from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from PySide6.QtCore import QObject, Qt, QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication
from shiboken6 import isValid

from qwendesk.chat.service import ChatService
from qwendesk.chat.view.thread.call_intents import CallIntents
from qwendesk.chat.view.thread.call_row import CallRow
from qwendesk.core.tool_context import ToolLook
from qwendesk.toolbox.edit_history import EditHistory
from qwendesk.widgets.tasks import window_tasks


class CallActions(QObject):
    """Without `edits`, changes of files are not offered to be undone."""

    def __init__(self, intents: CallIntents, chat: ChatService, may_answer: Callable[[], bool]) -> None:
        """`may_answer` returns whether an answer can be generated now, and else says why not."""
        super().__init__(intents)
        self._intents, self._chat, self._may_answer = intents, chat, may_answer
        self._edits: EditHistory | None = None
        self._tasks = window_tasks()
        queued = Qt.ConnectionType.QueuedConnection  # the action may remove the row whose button was clicked
        intents.stop.connect(chat.stop_call)
        intents.retry.connect(self._retry, queued)
        intents.undo.connect(self._undo)
        intents.redo.connect(self._redo)
        intents.folder_opened.connect(lambda path: QDesktopServices.openUrl(QUrl.fromLocalFile(path)))
        intents.difference.connect(self._show_difference)
        intents.edit_shown.connect(self._show_status)
        app = QGuiApplication.instance()
        if isinstance(app, QGuiApplication):
            app.applicationStateChanged.connect(self._on_application_state)

    def show_tools(self, looks: Mapping[str, ToolLook]) -> None:
        """Show the calls of these tools so, by the names by which the model calls them."""
        self._intents.looks = looks

    def set_edits(self, edits: EditHistory) -> None:
        self._edits = edits

    def _retry(self, turn_id: int, number: int) -> None:
        if self._may_answer():
            self._tasks.start(self._chat.call_again(turn_id, number))

    def _undo(self, call_id: str) -> None:
        if self._edits is not None:
            self._tasks.start(self._after(self._edits.undo(call_id)))

    def _redo(self, call_id: str) -> None:
        if self._edits is not None:
            self._tasks.start(self._after(self._edits.redo(call_id)))

    async def _after(self, work: Coroutine[Any, Any, None]) -> None:
        """Change a file. Then all rows ask how theirs are, also if it failed: somebody else has changed it."""
        try:
            await work
        finally:
            self._intents.edits_changed.emit()

    def _show_status(self, row: CallRow) -> None:
        async def show(edits: EditHistory, call_id: str) -> None:
            status = await edits.status(call_id)
            if isValid(row) and row.record is not None and row.record.id == call_id:
                row.show_edit(status)

        if self._edits is not None and row.record is not None:
            self._tasks.start(show(self._edits, row.record.id), row)

    def _show_difference(self, row: CallRow) -> None:
        async def show(edits: EditHistory, call_id: str) -> None:
            text = await edits.difference(call_id)
            if isValid(row):
                row.show_difference(text)

        if self._edits is not None and row.record is not None:
            self._tasks.start(show(self._edits, row.record.id), row)

    def _on_application_state(self, state: Qt.ApplicationState) -> None:
        """The user comes back, perhaps from a program in which they changed the file."""
        if state is Qt.ApplicationState.ApplicationActive:
            self._intents.edits_changed.emit()
