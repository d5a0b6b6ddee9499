"""The dialog for the settings of servers as JSON, which says what would be added, or what is wrong."""

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPlainTextEdit, QVBoxLayout, QWidget

from qwendesk.core.errors import BadOption
from qwendesk.core.translation import tr
from qwendesk.mcp.pasted_servers import read_pasted_servers
from qwendesk.mcp.server_config import NewServer
from qwendesk.widgets.buttons import TextButton, describe, restyle
from qwendesk.widgets.question_dialog import Dialog

_EXAMPLE = """{
  "mcpServers": {
    "files": {
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-filesystem", "…"]
    }
  }
}"""
_WIDTH, _HEIGHT = 560, 460


class PasteDialog(Dialog):
    entered = Signal(object)
    """The servers, as a tuple of NewServer."""

    def __init__(self, parent: QWidget, taken: Sequence[str]) -> None:
        """`taken` are the names of the servers that there are."""
        super().__init__(parent)
        self._taken = taken
        self._servers: tuple[NewServer, ...] = ()
        self.setObjectName("mcp.paste")
        self.setWindowTitle(tr("Paste servers as JSON"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.resize(min(_WIDTH, parent.width() - 40), min(_HEIGHT, parent.height() - 40))
        about = QLabel(tr("Paste what a server's instructions give for Claude Desktop, Cursor, LM Studio or VS Code."))
        about.setProperty("kind", "dim")
        about.setWordWrap(True)
        self._field = QPlainTextEdit()
        self._field.setPlaceholderText(_EXAMPLE)
        self._field.setProperty("kind", "details")
        self._field.setTabChangesFocus(True)
        describe(self._field, "mcp.paste.field", tr("JSON of the servers"), tr("JSON of the servers"))
        self._found = QLabel()
        self._found.setObjectName("mcp.paste.found")
        self._found.setProperty("kind", "small")
        self._found.setTextFormat(Qt.TextFormat.PlainText)
        self._found.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._found.setWordWrap(True)
        self._add = TextButton(tr("Add and start"), kind="primary")
        describe(self._add, "mcp.paste.add", tr("Add and start"), tr("Run these programs and connect"))
        self._add.clicked.connect(self._enter)
        cancel = TextButton(tr("Cancel"))
        describe(cancel, "mcp.paste.cancel", tr("Cancel"), tr("Add nothing"), "Esc")
        cancel.clicked.connect(self.reject)
        buttons = QHBoxLayout()
        buttons.addStretch(1)
        buttons.addWidget(self._add)
        buttons.addWidget(cancel)
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 18, 20, 16)
        column.setSpacing(10)
        column.addWidget(about)
        column.addWidget(self._field, 1)
        column.addWidget(self._found)
        column.addLayout(buttons)
        self._field.textChanged.connect(self._read)
        self._read()

    def _read(self) -> None:
        text = self._field.toPlainText()
        try:
            self._servers = read_pasted_servers(text, self._taken)
            shown, kind = "\n".join(map(_summary, self._servers)), "small"
        except BadOption as error:
            self._servers = ()
            shown, kind = (error.sentence, "error") if text.strip() else ("", "small")
        self._found.setText(shown)
        self._found.setVisible(bool(shown))
        restyle(self._found, "kind", kind)
        self._add.setEnabled(bool(self._servers))

    def _enter(self) -> None:
        self.accept()
        self.entered.emit(self._servers)


def _summary(server: NewServer) -> str:
    """Return what would run or be reached, and which secrets are still missing."""
    config = server.config
    kind = tr("{0} runs: {1}", config.name, config.command_line) if config.command else ""
    text = kind or tr("{0} connects to: {1}", config.name, config.address)
    missing = [name for name in (*config.environment, *config.headers) if not server.secrets.get(name)]
    return f"{text}\n{tr('Enter {0} afterwards with Change.', ', '.join(missing))}" if missing else text
