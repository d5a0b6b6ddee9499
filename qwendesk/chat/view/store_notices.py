"""Notices about the chats file: problems, a recovery, and the backup to use instead."""

from PySide6.QtCore import QObject, Signal

from qwendesk.chat.chat_list import ChatListEvent, ChatListService, StoreProblem, StoreWorksAgain
from qwendesk.chat.view.sidebar.sidebar import Sidebar
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.translation import tr
from qwendesk.widgets.bind import follow
from qwendesk.widgets.notice import Notice, NoticeAction
from qwendesk.widgets.tasks import window_tasks


class StoreNotices(QObject):
    """Turns the chat list's events about its file into notices, errors and messages in the sidebar."""

    notice_asked = Signal(object)
    """A Notice for the window."""
    failed = Signal(str, str)
    """Title and sentence."""

    def __init__(self, chat_list: ChatListService, sidebar: Sidebar) -> None:
        super().__init__(sidebar)
        self._chat_list, self._sidebar, self._tasks = chat_list, sidebar, window_tasks()
        follow(self, chat_list.subscribe, self._on_list_event)

    def _on_list_event(self, event: ChatListEvent) -> None:
        match event:
            case StoreProblem(title=title, sentence=sentence, backup=""):
                self.failed.emit(title, sentence)
            case StoreProblem(title=title, sentence=sentence, backup=backup):
                self._offer_backup(title, sentence, backup)
            case StoreWorksAgain():
                self._sidebar.show_message(tr("Chats are being saved again."))

    def _offer_backup(self, title: str, sentence: str, backup: str) -> None:
        def use_backup() -> None:
            self._tasks.start(self._use_backup(backup))

        tooltip = tr("Takes effect after a restart. The recovered chats are kept in a separate folder.")
        use = NoticeAction("use", tr("Use the whole backup instead"), tooltip, use_backup)
        notice = Notice("recovered", title, sentence, (use,))
        notice.setAccessibleName(f"{title}. {sentence}")
        self.notice_asked.emit(notice)

    async def _use_backup(self, backup: str) -> None:
        try:
            await self._chat_list.use_backup(backup)
        except QwenDeskError as error:
            self.failed.emit(error.title, error.sentence)
            return
        sentence = tr("Restart QwenDesk to see the chats of the backup.")
        self.notice_asked.emit(Notice("backup", tr("Backup selected"), sentence))
