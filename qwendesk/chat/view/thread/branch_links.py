"""The links between a chat and its branches: above a branch, and below the messages where branches were made."""

from collections.abc import Mapping

from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QVBoxLayout, QWidget

from qwendesk.chat.chat_list import ChatListService, ChatListState
from qwendesk.chat.chat_state import ChatState
from qwendesk.chat.service import ChatService
from qwendesk.chat.view.thread.turn_intents import BranchLink, TurnIntents
from qwendesk.core.chats import ChatSummary
from qwendesk.core.translation import tr
from qwendesk.widgets.bind import bind, bind_field
from qwendesk.widgets.buttons import TextButton, describe
from qwendesk.widgets.kit import STRETCH, column, row, rule
from qwendesk.widgets.tasks import window_tasks

# Characters of a chat's title that are shown in a link.
_LONGEST_TITLE = 60


class BranchLinks(QWidget):
    """Hidden while no branch was made at this message."""

    def __init__(self, node_id: str, intents: TurnIntents) -> None:
        super().__init__()
        self._node_id, self._intents = node_id, intents
        self._shown: tuple[BranchLink, ...] = ()
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(2)
        self.hide()
        intents.branches_changed.connect(self.update_links)

    def update_links(self) -> None:
        """Show one link for each branch."""
        links = self._intents.branches.get(self._node_id, ())
        if links == self._shown:
            return
        self._shown = links
        while (item := self._column.takeAt(0)) is not None:
            button = item.widget()
            if button is not None:
                button.hide()
                button.deleteLater()
        for link in links:
            self._column.addWidget(self._button(link), 0, Qt.AlignmentFlag.AlignLeft)
        self.setVisible(bool(links))

    def _button(self, link: BranchLink) -> TextButton:
        button = TextButton("", kind="link", icon_name="branch", role="text_link", size=14)
        text = tr("Branch: “{0}”", shortened_title(link.title))
        button.setText(text.replace("&", "&&"))
        describe(button, f"thread.branchlink.{link.chat_id}", text, tr("Open the branch that was made here"))
        button.clicked.connect(lambda: self._intents.branch_opened.emit(link.chat_id))
        return button


def shortened_title(title: str) -> str:
    """Return a chat's title as it is shown in a link."""
    title = title or tr("Untitled")
    return title if len(title) <= _LONGEST_TITLE else title[:_LONGEST_TITLE] + "…"


class BranchNote(QWidget):
    """Hidden while the open chat isn't a branch, or the chat it was branched from is deleted."""

    def __init__(self, chat: ChatService, chat_list: ChatListService) -> None:
        super().__init__()
        self._chat, self._chat_list, self._tasks = chat, chat_list, window_tasks()
        self._original_id = ""
        self._link = TextButton("", kind="link", icon_name="branch", role="text_link", size=14)
        self._link.clicked.connect(self._open_original)
        self.setLayout(column(row(self._link, STRETCH, margins=(20, 6, 20, 6)), rule(), spacing=0))
        bind(self, chat.state, self._show)
        bind(self, chat_list.state, self._show)

    def _show(self, _state: ChatState | ChatListState) -> None:
        self._original_id = self._chat.settings.branched_from
        original = self._chat_list.state.value.summaries.get(self._original_id)
        self.setVisible(original is not None)
        if original is not None:
            text = tr("Branched from “{0}”", shortened_title(original.title))
            self._link.setText(text.replace("&", "&&"))
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
