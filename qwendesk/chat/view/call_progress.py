"""Shows in its row how far the running tool call is."""

from collections.abc import Callable

from PySide6.QtCore import QObject

from qwendesk.chat.service import ChatService
from qwendesk.chat.view.thread.thread_view import ThreadView
from qwendesk.core.observed import Observed
from qwendesk.core.tool_context import CallProgress
from qwendesk.widgets.bind import bind


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
