"""Opens the dialog with the tool calls of the open chat, or of another one in the list."""

from PySide6.QtCore import QObject

from qwendesk.chat.call_log import LoggedCall, logged_calls
from qwendesk.chat.chat_list import ChatListService
from qwendesk.chat.service import ChatService
from qwendesk.chat.view.call_log_dialog import CallLogDialog
from qwendesk.chat.view.chat_page import ChatPage
from qwendesk.widgets.tasks import window_tasks


class CallLogOpener(QObject):
    def __init__(self, page: ChatPage, chat: ChatService, chat_list: ChatListService) -> None:
        super().__init__(page)
        self._page, self._chat, self._chat_list, self._tasks = page, chat, chat_list, window_tasks()
        page.composer.tools.choice.calls_asked.connect(self.open)

    def open(self) -> None:
        """Show the calls of the open chat, also those of an answer that is being generated."""
        turns = self._chat.conversation.turns
        running = turns[-1].answer.steps if self._chat.busy and turns else ()
        self._show(self._chat.chat_id, logged_calls(self._chat.tree, running))

    def open_chat(self, chat_id: str) -> None:
        if chat_id == self._chat.chat_id:
            self.open()
        else:
            self._tasks.start(self._load(chat_id), self)

    async def _load(self, chat_id: str) -> None:
        self._show(chat_id, logged_calls(await self._chat_list.tree(chat_id)))

    def _show(self, chat_id: str, calls: tuple[LoggedCall, ...]) -> None:
        summary = self._chat_list.chats.summaries.get(chat_id)
        intents = self._page.thread_view.intents.calls
        CallLogDialog(summary.title if summary else "", calls, intents, self._page.window()).open()
