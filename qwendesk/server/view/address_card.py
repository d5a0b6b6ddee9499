"""AddressCard: the server's switch, its addresses and its key."""

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication, QIntValidator
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QLineEdit, QSizePolicy, QVBoxLayout, QWidget

from qwendesk.core.translation import tr
from qwendesk.server.service import ServerState
from qwendesk.server.switch import SwitchState
from qwendesk.widgets.buttons import TextButton, describe, restyle
from qwendesk.widgets.controls import Switch
from qwendesk.widgets.kit import rule
from qwendesk.widgets.layouts import FlowLayout
from qwendesk.widgets.text_layout import ElidedLabel
from qwendesk.widgets.theme_keeper import app_theme, current_theme

_TITLE_WIDTH = 84


class AddressLine(QWidget):
    """A line above a rule. It is hidden while its value is empty."""

    def __init__(self, name: str, title: str) -> None:
        super().__init__()
        self._name, self.value = name, ""
        self.setObjectName(f"{name}.line")
        heading = QLabel(title)
        heading.setProperty("kind", "dim")
        heading.setMinimumWidth(_TITLE_WIDTH)
        self._shown = ElidedLabel(name, kind="address")
        self._shown.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._row = QHBoxLayout()
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(6)
        self._row.addWidget(heading)
        self._row.addWidget(self._shown, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        column.addLayout(self._row)
        column.addWidget(rule())
        self._title = title

    def add_button(self, name: str, text: str, tip: str) -> TextButton:
        """Add a button at the end."""
        button = TextButton(text, kind="link")
        describe(button, f"{self._name}.{name}", text, tip)
        self._row.addWidget(button)
        return button

    def show_value(self, value: str, shown: str = "") -> None:
        """Show a value, or `shown` in its place."""
        self.value = value
        self._shown.setText(shown or value)
        self._shown.setToolTip(shown or value)
        self._shown.setAccessibleName(f"{self._title}: {shown or value}")
        self.setVisible(bool(value))


_MOST_ADDRESSES = 4
_COPIED_MS = 2000
# Logical pixels of the field for the port, with the usual text size.
_PORT_WIDTH = 84
LOWEST_PORT, HIGHEST_PORT = 1024, 65_534


class AddressCard(QFrame):
    switched = Signal(bool)
    port_entered = Signal(int)
    free_port_asked = Signal()
    network_asked = Signal(bool)
    """True if other PCs are to be let in, before the user has been asked about it."""
    new_key_asked = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("kind", "modelcard")
        self.setObjectName("serve.card")
        self._key, self._shows_key, self._port, self._lets_in = "", False, 0, False
        self._openai = self._line("openai", tr("OpenAI"))
        self._anthropic = self._line("anthropic", tr("Anthropic"))
        self._network = [self._line(f"network.{n}", tr("Other PCs")) for n in range(1, _MOST_ADDRESSES + 1)]
        self._fingerprint = self._line("fingerprint", tr("SHA-256"))
        self._certificate = self._line("certificate", tr("Certificate"))
        self._key_line = self._line("key", tr("Key"))
        self._show = self._key_line.add_button("show", tr("Show"), tr("Show the key"))
        self._show.clicked.connect(self._on_show)
        new = self._key_line.add_button("new", tr("New…"), tr("Make a new key, so that the old one is no longer valid"))
        new.clicked.connect(self.new_key_asked)
        column = QVBoxLayout(self)
        column.setContentsMargins(18, 12, 18, 14)
        column.setSpacing(6)
        column.addLayout(self._make_head())
        self._about = self._label("about", "small")
        self._problem = self._label("problem", "error")
        self._other_port = TextButton(tr("Use a free port"))
        describe(self._other_port, "serve.freeport", tr("Use a free port"), tr("Find a port that no program uses"))
        self._other_port.clicked.connect(self.free_port_asked)
        column.addWidget(self._about)
        column.addWidget(self._problem)
        column.addWidget(self._other_port, 0, Qt.AlignmentFlag.AlignLeft)
        for line in self._lines:
            column.addWidget(line)
        column.addSpacing(6)
        column.addWidget(self._make_foot())
        column.addStretch(1)

    def show_state(self, state: ServerState, switch: SwitchState, *, is_wanted: bool, port: int, lets_in: bool) -> None:
        """Show the server as it is now, and the settings that it follows."""
        self._port, self._lets_in = port, lets_in
        self._switch.setChecked(is_wanted)
        self._title.setText(_title(state, switch))
        self._chip.setVisible(state.is_on)
        self._chip.setText(tr("Your network too") if state.network_addresses else tr("This PC only"))
        restyle(self._chip, "chip", "warn" if state.network_addresses else "good")
        self._about.setText(_about(state))
        self._problem.setText(switch.problem)
        self._problem.setVisible(bool(switch.problem))
        self._other_port.setVisible(switch.is_port_taken)
        if not self._port_field.hasFocus():
            self._port_field.setText(str(port))
        text = tr("Keep other PCs out") if lets_in else tr("Let other PCs in…")
        self._network_button.setText(text)
        tip = tr("Only programs on this PC can use the server then") if lets_in else tr("Asks you first")
        describe(self._network_button, "serve.network", text, tip)
        self._show_addresses(state)

    def _show_addresses(self, state: ServerState) -> None:
        key = state.keys[0].key if state.keys else ""
        if key != self._key:
            self._key, self._shows_key = key, False
        self._openai.show_value(f"{state.address}/v1" if state.is_on else "")
        self._anthropic.show_value(state.address)
        addresses = state.network_addresses[:_MOST_ADDRESSES]
        for line, address in zip(self._network, (*addresses, *[""] * _MOST_ADDRESSES), strict=False):
            line.show_value(address)
        self._fingerprint.show_value(state.fingerprint if addresses else "")
        self._certificate.show_value(state.certificate_file if addresses else "")
        self._show_key()

    def _show_key(self) -> None:
        masked = f"{self._key[:3]}••••••••{self._key[-4:]}"
        self._key_line.show_value(self._key, self._key if self._shows_key else masked)
        text = tr("Hide") if self._shows_key else tr("Show")
        self._show.setText(text)
        self._show.setAccessibleName(text)

    def _on_show(self) -> None:
        self._shows_key = not self._shows_key
        self._show_key()

    def _fit_port(self) -> None:
        self._port_field.setFixedWidth(current_theme().px(_PORT_WIDTH))

    def _on_port(self) -> None:
        text = self._port_field.text()
        port = int(text) if text.isdigit() else 0
        if LOWEST_PORT <= port <= HIGHEST_PORT:
            if port != self._port:
                self.port_entered.emit(port)
        else:
            self._port_field.setText(str(self._port))

    def _make_head(self) -> QHBoxLayout:
        self._switch = Switch()
        about = tr("Let programs on this PC use the loaded model. They need the key.")
        describe(self._switch, "serve.on", tr("Serve other programs"), about)
        self._switch.clicked.connect(self.switched)
        self._title = QLabel()
        self._title.setProperty("kind", "heading")
        self._title.setObjectName("serve.title")
        self._chip = QLabel()
        self._chip.setObjectName("serve.reach")
        self._chip.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        row = QHBoxLayout()
        row.setSpacing(10)
        row.addWidget(self._switch)
        row.addWidget(self._title, 1)
        row.addWidget(self._chip)
        return row

    def _make_foot(self) -> QWidget:
        foot = QWidget()
        row = FlowLayout(foot)
        label = QLabel(tr("Port"))
        label.setProperty("kind", "dim")
        self._port_field = QLineEdit()
        self._fit_port()
        app_theme().changed.connect(self._fit_port)
        self._port_field.setValidator(QIntValidator(0, 99_999, self))
        describe(
            self._port_field,
            "serve.port",
            tr("Port"),
            tr("From {0} to {1}. Enter takes it, and starts the server again.", LOWEST_PORT, HIGHEST_PORT),
        )
        self._port_field.editingFinished.connect(self._on_port)
        label.setBuddy(self._port_field)
        self._network_button = TextButton()
        self._network_button.clicked.connect(lambda: self.network_asked.emit(not self._lets_in))
        for widget in (label, self._port_field, self._network_button):
            row.addWidget(widget)
        return foot

    @property
    def _lines(self) -> tuple[AddressLine, ...]:
        first = (self._openai, self._anthropic, self._key_line)
        return (*first, *self._network, self._fingerprint, self._certificate)

    def _line(self, name: str, title: str) -> AddressLine:
        line = AddressLine(f"serve.{name}", title)
        copy = line.add_button("copy", tr("Copy"), tr("Copy: {0}", title))

        def on_copy() -> None:
            QGuiApplication.clipboard().setText(line.value)
            copy.setText(tr("Copied"))
            QTimer.singleShot(_COPIED_MS, copy, lambda: copy.setText(tr("Copy")))

        copy.clicked.connect(on_copy)
        return line

    def _label(self, name: str, kind: str) -> QLabel:
        label = QLabel()
        label.setObjectName(f"serve.{name}")
        label.setProperty("kind", kind)
        label.setTextFormat(Qt.TextFormat.PlainText)
        label.setWordWrap(True)
        return label


def _title(state: ServerState, switch: SwitchState) -> str:
    if switch.is_busy:
        return tr("Starting…")
    if switch.problem:
        return tr("Not running")
    return tr("On") if state.is_on else tr("Off")


def _about(state: ServerState) -> str:
    if not state.is_on:
        return tr(
            "Programs on this PC can use the loaded model, through the APIs of OpenAI and Anthropic. Each needs the "
            "key, and nobody else can reach the server. Your own questions don't wait behind theirs."
        )
    if state.network_addresses:
        return tr(
            "Programs on this PC use the first two addresses. Other PCs use those below, and have to trust the "
            "certificate: copy its file there, and compare the fingerprint."
        )
    return tr("A model is loaded when a program asks for it. It makes room for games as always.")
