"""Shows a tool call that asks for consent in its row, and passes the user's decision on."""

from collections.abc import Callable
from typing import cast

from PySide6.QtCore import QObject

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
        decide: Callable[[Decision], None],
    ) -> None:
        super().__init__(thread)
        self._thread, self._chat, self._decide = thread, chat, decide
        self._row: CallRow | None = None
        bind(self, waiting, self._show)

    def _show(self, request: ConsentRequest | None) -> None:
        if self._row is not None:
            self._row.show_request(None)
            self._row = None
        turns = self._chat.conversation.turns
        if request is None or request.chat_id != self._chat.chat_id or not turns:
            return
        answer = self._thread.answer(turns[-1].id)
        self._row = answer.row_of(request.call) if answer is not None else None
        if self._row is not None:
            self._row.show_request(request)
            self._row.decided.connect(lambda decision: self._decide(cast(Decision, decision)))
