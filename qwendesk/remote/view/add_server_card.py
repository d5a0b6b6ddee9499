"""The card that adds a server: by its address, or by choosing one that was found."""

from typing import Final

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QGridLayout, QLabel, QLineEdit, QVBoxLayout, QWidget

from qwendesk.core.errors import BadRequest
from qwendesk.core.translation import mark, tr
from qwendesk.remote.addresses import address_warning, read_address
from qwendesk.remote.server_texts import about_text
from qwendesk.remote.servers import RemoteServer
from qwendesk.remote.service import RemoteState, Search
from qwendesk.widgets.buttons import TextButton, describe, restyle
from qwendesk.widgets.layouts import FlowLayout
from qwendesk.widgets.rows.titled_card import TitledCard

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
