"""The links below a message to the branches that were made there."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QVBoxLayout, QWidget

from qwendesk.chat.view.thread.turn_intents import BranchLink, TurnIntents
from qwendesk.core.translation import tr
from qwendesk.widgets.buttons import TextButton, describe

_LONGEST_TITLE = 60
"""Characters of a chat's title that are shown in a link."""


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
        button.setText(" " + text.replace("&", "&&"))
        describe(button, f"thread.branchlink.{link.chat_id}", text, tr("Open the branch that was made here"))
        button.clicked.connect(lambda: self._intents.branch_opened.emit(link.chat_id))
        return button


def shortened_title(title: str) -> str:
    """Return a chat's title as it is shown in a link."""
    title = title or tr("Untitled")
    return title if len(title) <= _LONGEST_TITLE else title[:_LONGEST_TITLE] + "…"
