"""Shows a tool call that asks for consent in its row, and passes the user's decision on."""

from collections.abc import Callable
from typing import cast

from PySide6.QtCore import QObject
from shiboken6 import isValid

from qwendesk.chat.service import ChatService
from qwendesk.chat.view.thread.call_row import CallRow
from qwendesk.chat.view.thread.thread_view import ThreadView
from qwendesk.core.observed import Observed
from qwendesk.core.tool_context import ConsentRequest, Decision
from qwendesk.widgets.bind import bind


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
