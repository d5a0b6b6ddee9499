"""The form for one server, and the dialog for the settings of servers as JSON."""

from collections.abc import Sequence

import msgspec
from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QButtonGroup,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QVBoxLayout,
    QWidget,
)

from qwendesk.core.errors import BadOption
from qwendesk.core.translation import join_list, tr
from qwendesk.mcp.pasted_servers import check_server, read_pasted_servers
from qwendesk.mcp.server_config import NewServer, ServerConfig, clean_name, new_id
from qwendesk.widgets.buttons import IconButton, TextButton, describe, restyle
from qwendesk.widgets.file_dialogs import ask_for_folder
from qwendesk.widgets.question_dialog import Dialog
from qwendesk.widgets.rows.text_row import LimitedTextEdit

_WIDTH, _ARGUMENTS_HEIGHT = 520, 84


class ServerDialog(Dialog):
    entered = Signal(object)
    """The NewServer. Of one that is changed, secrets that were not typed are left out."""

    def __init__(
        self, parent: QWidget, taken: Sequence[str], config: ServerConfig | None = None, saved: Sequence[str] = ()
    ) -> None:
        """`taken` are names of other servers; `saved` are the names of secrets that have a value already."""
        super().__init__(parent)
        self._taken = {name.casefold() for name in taken}
        self._old, self._config = config, config or ServerConfig(new_id(), "")
        self.setObjectName("mcp.form")
        self.setWindowTitle(tr("Add a server") if config is None else tr("Change {0}", config.name))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setFixedWidth(min(_WIDTH, parent.width() - 40))
        self._name = self._line(tr("Name"), "name", self._config.name, tr("What you want to call it"))
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(20, 18, 20, 16)
        self._column.setSpacing(8)
        self._column.addLayout(self._make_kinds())
        self._put(tr("Name"), self._name)
        self._program, self._remote = self._make_program(saved), self._make_remote(saved)
        self._column.addWidget(self._program)
        self._column.addWidget(self._remote)
        self._error = QLabel()
        self._error.setObjectName("mcp.form.error")
        self._error.setProperty("kind", "error")
        self._error.setTextFormat(Qt.TextFormat.PlainText)
        self._error.setWordWrap(True)
        self._error.hide()
        self._column.addWidget(self._error)
        self._column.addStretch(1)
        self._column.addLayout(self._make_buttons())
        (self._by_address if self._config.address else self._by_program).setChecked(True)
        self._show_kind()
        self._name.setFocus()

    def _make_kinds(self) -> QHBoxLayout:
        self._by_program = TextButton(tr("Program"), kind="pill")
        describe(self._by_program, "mcp.form.program", tr("Program"), tr("A program that QwenDesk starts (stdio)"))
        self._by_address = TextButton(tr("Address"), kind="pill")
        describe(
            self._by_address, "mcp.form.remote", tr("Address"), tr("A server that runs elsewhere (streamable HTTP)")
        )
        self._kinds = QButtonGroup(self)
        row = QHBoxLayout()
        row.setSpacing(8)
        for button in (self._by_program, self._by_address):
            button.setCheckable(True)
            self._kinds.addButton(button)
            row.addWidget(button)
        row.addStretch(1)
        self._kinds.buttonClicked.connect(self._show_kind)
        return row

    def _make_program(self, saved: Sequence[str]) -> QWidget:
        config = self._config
        self._command = self._line(tr("Program"), "command", config.command, tr("Such as npx or uvx, or a whole path"))
        self._arguments = QPlainTextEdit("\n".join(config.arguments))
        self._arguments.setFixedHeight(_ARGUMENTS_HEIGHT)
        self._arguments.setProperty("kind", "details")
        self._arguments.setTabChangesFocus(True)
        describe(self._arguments, "mcp.form.arguments", tr("Arguments, one a line"), tr("Without quotation marks"))
        self._folder = self._line(tr("Folder"), "folder", config.folder, tr("Where it runs. Usually empty."))
        choose = TextButton(tr("Choose…"))
        describe(choose, "mcp.form.choose", tr("Choose…"), tr("Choose the folder"))
        choose.clicked.connect(
            lambda: ask_for_folder(self, "mcp.form.dialog", tr("Choose a folder"), self._folder.setText)
        )
        folder = QWidget()
        row = QHBoxLayout(folder)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(6)
        row.addWidget(self._folder, 1)
        row.addWidget(choose)
        self._variables = SecretRows("mcp.form.variables", tr("Add a variable"), config.environment, saved)
        return _box(
            (tr("Program"), self._command),
            (tr("Arguments, one a line"), self._arguments),
            (tr("Folder"), folder),
            (tr("Environment variables, such as keys"), self._variables),
        )

    def _make_remote(self, saved: Sequence[str]) -> QWidget:
        self._address = self._line(
            tr("Address"), "address", self._config.address, tr("Such as https://example.org/mcp")
        )
        self._headers = SecretRows("mcp.form.headers", tr("Add a header"), self._config.headers, saved)
        return _box((tr("Address"), self._address), (tr("Headers, such as Authorization"), self._headers))

    def _make_buttons(self) -> QHBoxLayout:
        text = tr("Add and start") if self._old is None else tr("Save and start")
        save = TextButton(text, kind="primary")
        describe(save, "mcp.form.save", text, tr("Save it, and start it to see what it offers"))
        save.clicked.connect(self._enter)
        cancel = TextButton(tr("Cancel"))
        describe(cancel, "mcp.form.cancel", tr("Cancel"), tr("Change nothing"), "Esc")
        cancel.clicked.connect(self.reject)
        row = QHBoxLayout()
        row.addStretch(1)
        row.addWidget(save)
        row.addWidget(cancel)
        return row

    def _line(self, label: str, name: str, text: str, tip: str) -> QLineEdit:
        field = QLineEdit(text)
        field.setPlaceholderText(tip)
        describe(field, f"mcp.form.{name}", label, tip)
        field.returnPressed.connect(self._enter)
        return field

    def _put(self, label: str, field: QWidget) -> None:
        self._column.addWidget(_label(label))
        self._column.addWidget(field)

    def _show_kind(self) -> None:
        is_remote = self._by_address.isChecked()
        self._program.setVisible(not is_remote)
        self._remote.setVisible(is_remote)
        self.adjustSize()

    def _enter(self) -> None:
        try:
            server = check_server(self._read())
            if server.config.name.casefold() in self._taken:
                raise BadOption("", tr('There is a server "{0}" already. Choose another name.', server.config.name))
        except BadOption as error:
            self._error.setText(error.sentence)
            self._error.show()
            return
        self.accept()
        self.entered.emit(server)

    def _read(self) -> NewServer:
        name = clean_name(self._name.text())
        config = msgspec.structs.replace(
            self._config, name=name, command="", arguments=(), folder="", environment=(), address="", headers=()
        )
        if self._by_address.isChecked():
            rows = self._headers
            config = msgspec.structs.replace(config, address=self._address.text().strip(), headers=rows.names)
        else:
            rows = self._variables
            arguments = (line.strip() for line in self._arguments.toPlainText().splitlines())
            config = msgspec.structs.replace(
                config,
                command=self._command.text().strip(),
                arguments=tuple(filter(None, arguments)),
                folder=self._folder.text().strip(),
                environment=rows.names,
            )
        return NewServer(config, rows.values)


def _box(*fields: tuple[str, QWidget]) -> QWidget:
    box = QWidget()
    column = QVBoxLayout(box)
    column.setContentsMargins(0, 0, 0, 0)
    column.setSpacing(8)
    for label, field in fields:
        column.addWidget(_label(label))
        column.addWidget(field)
    return box


def _label(text: str) -> QLabel:
    label = QLabel(text)
    label.setProperty("kind", "small")
    return label


class SecretRows(QWidget):
    """The rows, with a button that adds one."""

    def __init__(self, name: str, add_text: str, names: Sequence[str], saved: Sequence[str]) -> None:
        """`names` have a row from the beginning; those in `saved` have a value, which stays if nothing is typed."""
        super().__init__()
        self._name, self._saved = name, set(saved)
        self._rows: list[tuple[QWidget, QLineEdit, QLineEdit]] = []
        self._n_made = 0
        self._list = QVBoxLayout()
        self._list.setSpacing(6)
        add = TextButton(add_text, kind="quiet", icon_name="new")
        describe(add, f"{name}.add", add_text, add_text)
        add.clicked.connect(lambda: self._add("").setFocus())
        bottom = QHBoxLayout()
        bottom.addWidget(add)
        bottom.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addLayout(self._list)
        column.addLayout(bottom)
        for each in names:
            self._add(each)

    @property
    def names(self) -> tuple[str, ...]:
        """The names that were entered, each once."""
        return tuple(dict.fromkeys(filter(None, (name.text().strip() for _, name, _ in self._rows))))

    @property
    def values(self) -> dict[str, str]:
        """The values that were typed, by name."""
        typed = ((name.text().strip(), value.text().strip()) for _, name, value in self._rows)
        return {name: value for name, value in typed if name and value}

    def _add(self, name: str) -> QLineEdit:
        self._n_made += 1
        number = self._n_made
        key, value = QLineEdit(name), QLineEdit()
        key.setPlaceholderText(tr("Name"))
        describe(key, f"{self._name}.{number}.name", tr("Name"), tr("As the server's instructions call it"))
        value.setEchoMode(QLineEdit.EchoMode.Password)
        value.setPlaceholderText(tr("Saved. Type to replace it.") if name in self._saved else tr("Value"))
        describe(value, f"{self._name}.{number}.value", tr("Value"), tr("Saved in your system's keyring"))
        remove = IconButton("close", size=16, side=28)
        describe(remove, f"{self._name}.{number}.remove", tr("Remove"), tr("Remove"))
        row = QWidget()
        line = QHBoxLayout(row)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(6)
        line.addWidget(key, 2)
        line.addWidget(value, 3)
        line.addWidget(remove)
        entry = (row, key, value)
        self._rows.append(entry)
        remove.clicked.connect(lambda: self._remove(entry))
        self._list.addWidget(row)
        return key

    def _remove(self, entry: tuple[QWidget, QLineEdit, QLineEdit]) -> None:
        self._rows.remove(entry)
        self._list.removeWidget(entry[0])
        entry[0].hide()
        entry[0].deleteLater()


_EXAMPLE = """{
  "mcpServers": {
    "files": {
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-filesystem", "…"]
    }
  }
}"""
_PASTE_WIDTH, _PASTE_HEIGHT = 560, 460


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
        self.resize(min(_PASTE_WIDTH, parent.width() - 40), min(_PASTE_HEIGHT, parent.height() - 40))
        about = QLabel(tr("Paste what a server's instructions give for Claude Desktop, Cursor, LM Studio or VS Code."))
        about.setProperty("kind", "dim")
        about.setWordWrap(True)
        self._field = LimitedTextEdit()
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
        self._field.paste_refused.connect(self._refuse)
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
        self._say(shown, kind)
        self._add.setEnabled(bool(self._servers))

    def _refuse(self, sentence: str) -> None:
        self._say(sentence, "error")

    def _say(self, text: str, kind: str) -> None:
        self._found.setText(text)
        self._found.setVisible(bool(text))
        restyle(self._found, "kind", kind)

    def _enter(self) -> None:
        self.accept()
        self.entered.emit(self._servers)


def _summary(server: NewServer) -> str:
    """Return what would run or be reached, and which secrets are still missing."""
    config = server.config
    kind = tr("{0} runs: {1}", config.name, config.command_line) if config.command else ""
    text = kind or tr("{0} connects to: {1}", config.name, config.address)
    missing = [name for name in (*config.environment, *config.headers) if not server.secrets.get(name)]
    return f"{text}\n{tr('Enter {0} afterwards with Change.', join_list(missing))}" if missing else text
