"""The card of one server that the user added, and the card that adds one."""

from typing import TYPE_CHECKING, Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QLabel, QLineEdit, QStackedWidget, QVBoxLayout, QWidget

from qwendesk.core.errors import BadRequest
from qwendesk.core.served_model import ServedModel, served_name
from qwendesk.core.translation import mark, tr
from qwendesk.remote.addresses import address_warning, read_address
from qwendesk.remote.server_texts import about_text, model_details, status_text, status_tone
from qwendesk.remote.servers import RemoteServer
from qwendesk.remote.service import ListedServer, RemoteState, Search
from qwendesk.widgets.buttons import IconButton, TextButton, describe, restyle
from qwendesk.widgets.layouts import FlowLayout
from qwendesk.widgets.rows.titled_card import TitledCard
from qwendesk.widgets.text_layout import ElidedLabel

if TYPE_CHECKING:
    from qwendesk.remote.inspection import ModelOnServer


# Rows that are built at most. Of more, the model picker finds the one that is typed.
_MOST_MODELS = 50


class ServerCard(QFrame):
    load_asked = Signal(str)
    """The model, as `LoadOptions.model` has it."""
    refresh_asked = Signal()
    named = Signal(str)
    """Name that the user gives the server now; "" for its own name."""
    removal_asked = Signal()

    def __init__(self, number: int) -> None:
        super().__init__()
        self.setProperty("kind", "modelcard")
        self._name = f"engines.server.{number}"
        self.setObjectName(self._name)
        self._models: tuple[ModelOnServer, ...] | None = None
        self._rows: dict[str, tuple[QLabel, TextButton]] = {}
        self._in_use = ""
        self._title = NameField(self._name)
        self._title.named.connect(self.named)
        self._about = ElidedLabel(f"{self._name}.about", kind="small")
        self._status = QLabel()
        self._status.setObjectName(f"{self._name}.status")
        self._problem = QLabel()
        self._problem.setObjectName(f"{self._name}.problem")
        self._problem.setProperty("kind", "error")
        self._problem.setTextFormat(Qt.TextFormat.PlainText)
        self._problem.setWordWrap(True)
        self._list = QVBoxLayout()
        self._list.setContentsMargins(0, 0, 0, 0)
        self._list.setSpacing(2)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 10, 12, 10)
        column.setSpacing(6)
        column.addLayout(self._make_head())
        column.addWidget(self._problem)
        column.addLayout(self._list)

    def show_server(self, listed: ListedServer) -> None:
        """Show a server as it is now."""
        self._server = listed.server
        self._title.show_name(listed.server.title, listed.server.name)
        self._about.setText(about_text(listed.server))
        self._status.setText(status_text(listed))
        restyle(self._status, "chip", status_tone(listed))
        self._problem.setText(listed.problem)
        self._problem.setVisible(bool(listed.problem))
        self._refresh.setEnabled(not listed.is_asking)
        name = listed.server.title
        describe(self._refresh, f"{self._name}.refresh", tr("Ask {0} again", name), tr("Ask it for its models again"))
        describe(self._rename, f"{self._name}.rename", tr("Rename {0}", name), tr("Give it a name of your own"))
        tip = tr("Remove it from this list, and its key from the keyring. Its models stay there.")
        describe(self._remove, f"{self._name}.remove", tr("Remove {0}", name), tip)
        self.setAccessibleName(tr("{0}, {1}", name, self._status.text()))
        if listed.models != self._models:
            self._models = listed.models
            self._show_models()

    def show_in_use(self, model: str) -> None:
        """Mark the model that the window uses, by its text in `LoadOptions.model`."""
        self._in_use = model
        for text, (chip, load) in self._rows.items():
            chip.setVisible(text == model)
            load.setVisible(text != model)

    def _make_head(self) -> QHBoxLayout:
        texts = QVBoxLayout()
        texts.setSpacing(2)
        texts.addWidget(self._title)
        texts.addWidget(self._about)
        self._rename = IconButton("edit", size=16, side=28)
        self._rename.clicked.connect(self._title.begin)
        self._refresh = IconButton("again", size=16, side=28)
        self._refresh.clicked.connect(self.refresh_asked)
        self._remove = IconButton("delete", size=16, side=28)
        self._remove.clicked.connect(self.removal_asked)
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addLayout(texts, 1)
        row.addWidget(self._status, 0, Qt.AlignmentFlag.AlignVCenter)
        row.addWidget(self._rename)
        row.addWidget(self._refresh)
        row.addWidget(self._remove)
        return row

    def _show_models(self) -> None:
        while (item := self._list.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.hide()
                widget.deleteLater()
        self._rows = {}
        for number, model in enumerate((self._models or ())[:_MOST_MODELS], 1):
            self._list.addWidget(self._model_row(f"{self._name}.model.{number}", model))
        self.show_in_use(self._in_use)

    def _model_row(self, name: str, model: "ModelOnServer") -> QWidget:
        text = ServedModel(self._server.address, model.name).text
        title, about = ElidedLabel(f"{name}.name"), ElidedLabel(f"{name}.details", kind="small")
        title.setText(served_name(model.name))
        title.setToolTip(model.name)
        about.setText(model_details(model))
        about.setVisible(bool(about.text()))
        chip = QLabel(tr("In use"))
        chip.setProperty("chip", "info")
        load = TextButton(tr("Use"))
        tip = tr("Answer your chats with this model. It runs on the server, not on this PC.")
        describe(load, f"{name}.load", tr("Use {0}", model.name), tip)
        load.clicked.connect(lambda: self.load_asked.emit(text))
        self._rows[text] = chip, load
        words = QVBoxLayout()
        words.setSpacing(0)
        words.addWidget(title)
        words.addWidget(about)
        row = QWidget()
        line = QHBoxLayout(row)
        line.setContentsMargins(0, 4, 0, 4)
        line.setSpacing(8)
        line.addLayout(words, 1)
        line.addWidget(chip, 0, Qt.AlignmentFlag.AlignVCenter)
        line.addWidget(load)
        return row


_LONGEST = 60


class NameField(QStackedWidget):
    """Shows a title. While it is edited, Enter or leaving it takes the new name, and Esc the old one."""

    named = Signal(str)
    """The new name, which may be empty."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._title, self._field = ElidedLabel(f"{name}.title", kind="strong"), QLineEdit()
        self._field.setMaxLength(_LONGEST)
        describe(self._field, f"{name}.name", tr("Name"), tr("What you call this server. Empty: its own name."))
        self._field.editingFinished.connect(self._end)
        self._name = ""
        self.addWidget(self._title)
        self.addWidget(self._field)

    def show_name(self, title: str, name: str) -> None:
        """Show the title; `name` is what the user has called it before, or ""."""
        self._title.setText(title)
        self._name = name

    def begin(self) -> None:
        """Let the user edit the name."""
        self._field.setText(self._name)
        self._field.setPlaceholderText(self._title.text())
        self.setCurrentWidget(self._field)
        self._field.setFocus()
        self._field.selectAll()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Take the old name on Esc, which the field passes on."""
        if event.key() == Qt.Key.Key_Escape and self.currentWidget() is self._field:
            self._field.setText(self._name)
            self._end()
        else:
            super().keyPressEvent(event)

    def _end(self) -> None:
        if self.currentWidget() is not self._field:
            return
        name = self._field.text().strip()
        self.setCurrentWidget(self._title)
        if name != self._name:
            self.named.emit(name)


_SEARCHING: Final = {
    "pc": mark("Looking for servers on this PC…"),
    "network": mark("Looking for servers in your network…"),
}
_FOUND_NOTHING: Final = {
    "pc": mark("No server found on this PC. Start one, or enter its address."),
    "network": mark(
        "No server found in your network. It must listen there, not only on its own PC: llama-server with --host "
        "0.0.0.0, Ollama with OLLAMA_HOST=0.0.0.0, LM Studio with Serve on Local Network."
    ),
}


class AddServerCard(TitledCard):
    """Emits what the user entered or chose. It shows nothing of the key after that."""

    add_asked = Signal(str, str)
    """The address and the key, which may be empty."""
    search_asked = Signal(str)
    """Place to look: "pc" or "network"."""
    stop_asked = Signal()

    def __init__(self) -> None:
        super().__init__("engines.add", tr("Add a server"))
        self._found: tuple[RemoteServer, ...] = ()
        self._searching: Search = ""
        self._is_adding = False
        self._address = QLineEdit()
        self._address.setPlaceholderText("192.168.1.5:8080")
        describe(self._address, "engines.address", tr("Address"), tr("The address of the server, with its port"))
        self._key = QLineEdit()
        self._key.setEchoMode(QLineEdit.EchoMode.Password)
        self._key.setPlaceholderText(tr("Only if it wants one"))
        describe(self._key, "engines.key", tr("Key"), tr("Saved in your system's keyring"))
        self._add = TextButton(tr("Add"), kind="primary")
        describe(self._add, "engines.add.button", tr("Add"), tr("Ask the server for its models"))
        self._warning, self._problem = _note("engines.warning", "small"), _note("engines.problem", "error")
        restyle(self._warning, "tone", "warn")
        self._result = _note("engines.found", "small")
        self._found_rows = QVBoxLayout()
        self._found_rows.setContentsMargins(0, 0, 0, 0)
        self._found_rows.setSpacing(4)
        self.add(self._make_box())
        self._address.textChanged.connect(self._on_typed)
        for field in (self._address, self._key):
            field.returnPressed.connect(self._on_add)
        self._add.clicked.connect(self._on_add)
        self.setFocusProxy(self._address)
        self._on_typed("")

    def show_state(self, state: RemoteState) -> None:
        """Show what was found, and what became of the last address."""
        self._add.setText(tr("Asking…") if state.is_adding else tr("Add"))
        self._is_adding = state.is_adding
        self._enable_add()
        self._problem.setText(state.problem)
        self._problem.setVisible(bool(state.problem))
        self._searching = state.searching
        self._network.setText(tr("Stop") if state.searching == "network" else tr("Search my network"))
        self._pc.setEnabled(not state.searching)
        result = ""
        if state.searching:
            result = tr(_SEARCHING[state.searching])
        elif state.has_searched and not state.found:
            has_all = state.has_searched == "pc" and state.servers
            result = tr("No other server found.") if has_all else tr(_FOUND_NOTHING[state.has_searched])
        elif state.found:
            result = tr("Found:")
        self._result.setText(result)
        self._result.setVisible(bool(result))
        if state.found != self._found:
            self._found = state.found
            self._show_found()

    def _enable_add(self) -> None:
        self._add.setEnabled(not self._is_adding and bool(self._address.text().strip()))

    def clear(self) -> None:
        """Empty the fields after a server was added."""
        self._address.clear()
        self._key.clear()

    def _make_box(self) -> QWidget:
        box = QWidget()
        fields = QGridLayout()
        fields.setHorizontalSpacing(8)
        fields.setVerticalSpacing(4)
        for place, (text, field) in enumerate(((tr("Address"), self._address), (tr("Key"), self._key))):
            label = QLabel(text)
            label.setProperty("kind", "small")
            fields.addWidget(label, 0, place)
            fields.addWidget(field, 1, place)
        fields.addWidget(self._add, 1, 2)
        fields.setColumnStretch(0, 3)
        fields.setColumnStretch(1, 2)
        self._pc = TextButton(tr("Find on this PC"), icon_name="search")
        describe(self._pc, "engines.find.pc", tr("Find on this PC"), tr("Try the ports that servers usually have"))
        self._pc.clicked.connect(lambda: self.search_asked.emit("pc"))
        self._network = TextButton(tr("Search my network"), kind="quiet")
        tip = tr("Try these ports on the other PCs of your local network. It takes some seconds.")
        describe(self._network, "engines.find.network", tr("Search my network"), tip)
        self._network.clicked.connect(self._on_network)
        searches = FlowLayout()
        searches.addWidget(self._pc)
        searches.addWidget(self._network)
        column = QVBoxLayout(box)
        column.setContentsMargins(16, 8, 16, 8)
        column.setSpacing(8)
        column.addLayout(fields)
        column.addWidget(self._warning)
        column.addWidget(self._problem)
        column.addLayout(searches)
        column.addWidget(self._result)
        column.addLayout(self._found_rows)
        return box

    def _show_found(self) -> None:
        while (item := self._found_rows.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.hide()
                widget.deleteLater()
        for number, server in enumerate(self._found, 1):
            add = TextButton(tr("Add {0}", about_text(server)))
            tip = tr("Add it to your servers. If it wants a key, enter that first.")
            describe(add, f"engines.found.{number}", add.text(), tip)
            add.clicked.connect(lambda _on=False, address=server.address: self._add_found(address))
            holder = FlowLayout()
            holder.addWidget(add)
            row = QWidget()
            row.setLayout(holder)
            self._found_rows.addWidget(row)

    def _add_found(self, address: str) -> None:
        self._address.setText(address)
        self.add_asked.emit(address, self._key.text())

    def _on_add(self) -> None:
        if self._add.isEnabled():
            self.add_asked.emit(self._address.text(), self._key.text())

    def _on_network(self) -> None:
        if self._searching == "network":
            self.stop_asked.emit()
        else:
            self.search_asked.emit("network")

    def _on_typed(self, text: str) -> None:
        self._enable_add()
        try:
            warning = address_warning(read_address(text)) if text.strip() else ""
        except BadRequest:
            warning = ""  # it may be unfinished; Add says what is wrong
        self._warning.setText(warning)
        self._warning.setVisible(bool(warning))


def _note(name: str, kind: str) -> QLabel:
    label = QLabel()
    label.setObjectName(name)
    label.setProperty("kind", kind)
    label.setWordWrap(True)
    label.hide()
    return label
