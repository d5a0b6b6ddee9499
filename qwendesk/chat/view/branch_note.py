"""The links between a chat and its branches: above a branch, and below the messages where branches were made."""

from collections.abc import Mapping

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QHBoxLayout, QWidget

from qwendesk.chat.chat_list import ChatListService
from qwendesk.chat.chat_list_state import ChatListState
from qwendesk.chat.chat_state import ChatState
from qwendesk.chat.service import ChatService
from qwendesk.chat.view.thread.branch_links import shortened_title
from qwendesk.chat.view.thread.turn_intents import BranchLink, TurnIntents
from qwendesk.core.chats import ChatSummary
from qwendesk.core.translation import tr
from qwendesk.widgets.bind import bind, bind_field
from qwendesk.widgets.buttons import TextButton, describe
from qwendesk.widgets.tasks import window_tasks


class BranchNote(QWidget):
    """Hidden while the open chat isn't a branch, or the chat it was branched from is deleted."""

    def __init__(self, chat: ChatService, chat_list: ChatListService) -> None:
        super().__init__()
        self._chat, self._chat_list, self._tasks = chat, chat_list, window_tasks()
        self._original_id = ""
        self._link = TextButton("", kind="link", icon_name="branch", role="text_link", size=14)
        self._link.clicked.connect(self._open_original)
        row = QHBoxLayout(self)
        row.setContentsMargins(20, 8, 20, 0)
        row.addStretch(1)
        row.addWidget(self._link)
        row.addStretch(1)
        bind(self, chat.state, self._show)
        bind(self, chat_list.state, self._show)

    def _show(self, _state: ChatState | ChatListState) -> None:
        self._original_id = self._chat.settings.branched_from
        original = self._chat_list.state.value.summaries.get(self._original_id)
        self.setVisible(original is not None)
        if original is not None:
            text = tr("Branched from “{0}”", shortened_title(original.title))
            self._link.setText(" " + text.replace("&", "&&"))
            describe(self._link, "chat.branchednote", text, tr("Open the original chat"))

    def _open_original(self) -> None:
        self._tasks.start(self._chat_list.open(self._original_id))


class BranchFinder(QObject):
    """Finds the branches of the open chat in the list of chats, for the links in the thread."""

    def __init__(self, intents: TurnIntents, chat: ChatService, chat_list: ChatListService) -> None:
        super().__init__(intents)
        self._intents, self._chat, self._chat_list, self._tasks = intents, chat, chat_list, window_tasks()
        intents.branch_opened.connect(self._open)
        bind_field(self, chat.state, lambda state: state.chat_id, lambda _chat_id: self._find())
        bind_field(self, chat_list.state, lambda state: state.summaries, lambda _summaries: self._find())

    def _find(self) -> None:
        summaries = self._chat_list.state.value.summaries
        self._intents.show_branches(branches_of(self._chat.chat_id, summaries))

    def _open(self, chat_id: str) -> None:
        self._tasks.start(self._chat_list.open(chat_id))


def branches_of(chat_id: str, summaries: Mapping[str, ChatSummary]) -> dict[str, tuple[BranchLink, ...]]:
    """Return the branches of a chat by the id of the message they were made at, oldest first."""
    found: dict[str, tuple[BranchLink, ...]] = {}
    for each in sorted(summaries.values(), key=lambda summary: summary.changed_s):
        if each.settings.branched_from == chat_id and each.settings.branched_at:
            at = each.settings.branched_at
            found[at] = (*found.get(at, ()), BranchLink(each.id, each.title))
    return found
