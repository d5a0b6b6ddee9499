"""Tool calls in their rows: how far they are, the user's consent, and stop, retry, undo and redo."""

from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, cast

from PySide6.QtCore import QObject, Qt, QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication
from shiboken6 import isValid

from qwendesk.chat.service import ChatService
from qwendesk.chat.view.thread.thread_view import ThreadView
from qwendesk.chat.view.thread.turn_intents import CallIntents
from qwendesk.core.observed import Observed
from qwendesk.core.tool_context import CallProgress, ConsentRequest, Decision, ToolLook
from qwendesk.toolbox.edit_history import EditHistory
from qwendesk.widgets.bind import bind
from qwendesk.widgets.tasks import window_tasks

if TYPE_CHECKING:
    from qwendesk.chat.view.thread.tools.call_row import CallRow


class CallActions(QObject):
    """Without `edits`, changes of files are not offered to be undone."""

    def __init__(self, intents: CallIntents, chat: ChatService) -> None:
        super().__init__(intents)
        self._intents, self._chat = intents, chat
        self._edits: EditHistory | None = None
        self._tasks = window_tasks()
        intents.stop.connect(chat.stop_call)
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

    def _show_status(self, row: "CallRow") -> None:
        async def show(edits: EditHistory, call_id: str) -> None:
            status = await edits.status(call_id)
            if isValid(row) and row.record is not None and row.record.id == call_id:
                row.show_edit(status)

        if self._edits is not None and row.record is not None:
            self._tasks.start(show(self._edits, row.record.id), row)

    def _show_difference(self, row: "CallRow") -> None:
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


class ProgressView(QObject):
    """Follows what the running call says. Its row forgets that when the call is done."""

    def __init__(
        self,
        thread: ThreadView,
        chat: ChatService,
        progress: Observed[CallProgress | None],
        show_pending: Callable[[], None],
    ) -> None:
        """`show_pending` shows what has arrived of the answer, so that the call has a row."""
        super().__init__(thread)
        self._thread, self._chat, self._show_pending = thread, chat, show_pending
        bind(self, progress, self._show)

    def _show(self, progress: CallProgress | None) -> None:
        turns = self._chat.conversation.turns
        if progress is None or progress.chat_id != self._chat.chat_id or not turns:
            return
        self._show_pending()
        answer = self._thread.answer(turns[-1].id)
        row = answer.row_of(progress.call) if answer is not None else None
        if row is not None:
            row.show_progress(progress.text)


class ConsentView(QObject):
    """Follows the call that waits for the user."""

    def __init__(
        self,
        thread: ThreadView,
        chat: ChatService,
        waiting: Observed[ConsentRequest | None],
        decide: Callable[[ConsentRequest, Decision], None],
        show_pending: Callable[[], None],
    ) -> None:
        """`show_pending` shows what has arrived of the answer, so that the call has a row."""
        super().__init__(thread)
        self._show_pending = show_pending
        self._thread, self._chat, self._decide = thread, chat, decide
        self._row: CallRow | None = None
        bind(self, waiting, self._show)

    def _show(self, request: ConsentRequest | None) -> None:
        row, self._row = self._row, None
        if row is not None and isValid(row):  # another chat that was opened meanwhile has deleted it
            row.show_request(None)
        turns = self._chat.conversation.turns
        if request is None or request.chat_id != self._chat.chat_id or not turns:
            return
        self._show_pending()
        answer = self._thread.answer(turns[-1].id)
        self._row = answer.row_of(request.call) if answer is not None else None
        if self._row is not None:
            self._row.show_request(request)
            self._row.decided.connect(lambda decision: self._decide(request, cast(Decision, decision)))
