"""The consents that last, on the settings page: which tools may run without asking, and where."""

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from qwendesk.core.translation import tr
from qwendesk.toolbox.gate import Grant
from qwendesk.toolbox.service import ToolService
from qwendesk.widgets.bind import bind
from qwendesk.widgets.buttons import TextButton, describe
from qwendesk.widgets.rows.titled_card import TitledCard
from qwendesk.widgets.tasks import window_tasks
from qwendesk.widgets.text_labels import WrappingLabel

_NAME = "settings.consents"
_WORDS = "tools allowed always consent permission take back revoke folder chat edit files mcp"


class ConsentsSection(TitledCard):
    def __init__(self, service: ToolService, chat_title: Callable[[str], str]) -> None:
        """`chat_title` returns the title of a chat by its id; "" if it has none."""
        super().__init__(_NAME, tr("What tools may do without asking"), _WORDS)
        self._service, self._chat_title, self._tasks = service, chat_title, window_tasks()
        self._lines: list[QWidget] = []
        self._nothing = QLabel()
        self._nothing.setObjectName(f"{_NAME}.nothing")
        self._nothing.setText(tr("Nothing so far. Every call that changes something asks you."))
        self._nothing.setWordWrap(True)
        self._nothing.setProperty("kind", "small")
        self._nothing.setContentsMargins(16, 8, 16, 8)
        box = QWidget()
        self._list = QVBoxLayout(box)
        self._list.setContentsMargins(0, 0, 0, 0)
        self._list.setSpacing(0)
        self.add(self._nothing)
        self.add(box)
        bind(self, service.grants, self._show)

    def _show(self, grants: tuple[Grant, ...]) -> None:
        for line in self._lines:
            line.hide()
            line.deleteLater()
        self._lines = [self._line(f"{_NAME}.{place}", grant) for place, grant in enumerate(grants, 1)]
        for line in self._lines:
            self._list.addWidget(line)
        self._nothing.setVisible(not grants)

    def _line(self, name: str, grant: Grant) -> QWidget:
        line = QWidget()
        line.setObjectName(name)
        text = WrappingLabel(self._text(grant))
        text.setObjectName(f"{name}.text")
        text.setTextFormat(Qt.TextFormat.PlainText)  # the title of a chat may be anything
        text.setToolTip(grant.folder)
        button = TextButton(tr("Take back"))
        describe(button, f"{name}.remove", tr("Take back"), tr("Ask again before the next call"))
        button.clicked.connect(lambda: self._tasks.start(self._service.take_back(grant)))
        row = QHBoxLayout(line)
        row.setContentsMargins(16, 6, 12, 6)
        row.setSpacing(12)
        row.addWidget(text, 1)
        row.addWidget(button)
        return line

    def _text(self, grant: Grant) -> str:
        look = self._service.looks.get(grant.name)
        tool = look.title if look is not None else grant.name or tr("A tool")
        if grant.chat_id:
            title = self._chat_title(grant.chat_id) or tr("New chat")
            return tr("{0}, in the chat “{1}” until QwenDesk closes", tool, title)
        return tr("{0}, always in the folder {1}", tool, Path(grant.folder).name or grant.folder)
