"""AddressCard: the server's switch, its addresses and its key."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QIntValidator
from PySide6.QtWidgets import QFrame, QLineEdit, QSizePolicy, QWidget

from qwendesk.core.translation import tr
from qwendesk.server.access import masked_key
from qwendesk.server.service import ServerState
from qwendesk.server.switch import SwitchState
from qwendesk.widgets.buttons import TextButton, copy_text, describe, restyle
from qwendesk.widgets.controls import Switch
from qwendesk.widgets.kit import PADDING, STRETCH, button, column, label, paragraph, row, rule
from qwendesk.widgets.layouts import FlowLayout, widget_with
from qwendesk.widgets.text_layout import ElidedLabel
from qwendesk.widgets.theme_keeper import app_theme, current_theme

_TITLE_WIDTH = 76


class AddressLine(QWidget):
    """A line above a rule, with a button that copies its value. It is hidden while its value is empty."""

    def __init__(self, name: str, title: str) -> None:
        super().__init__()
        self._name, self._title, self.value = name, title, ""
        self.setObjectName(f"{name}.line")
        self._heading = label(title, "dim")
        self._shown = ElidedLabel(name, kind="address")
        self._shown.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._row = row(self._heading, spacing=6)
        self._row.addWidget(self._shown, 1)
        self.setLayout(column(self._row, rule(), spacing=4))
        self._copy = self.add_button("copy", tr("Copy"), tr("Copy: {0}", title))
        self._copy.clicked.connect(self._on_copy)
        app_theme().follow(self, self._fit)
        self._fit()

    def add_button(self, name: str, text: str, tip: str) -> TextButton:
        """Add a button at the end."""
        made = button(text, f"{self._name}.{name}", kind="link", tip=tip)
        self._row.addWidget(made)
        return made

    def show_value(self, value: str, shown: str = "") -> None:
        """Show a value, or `shown` in its place."""
        self.value = value
        self._shown.setText(shown or value)
        self._shown.setToolTip(shown or value)
        self._shown.setAccessibleName(f"{self._title}: {shown or value}")
        self._copy.setEnabled(bool(value))
        self.setVisible(bool(shown or value))

    def _fit(self) -> None:
        self._heading.setMinimumWidth(current_theme().px(_TITLE_WIDTH))

    def _on_copy(self) -> None:
        copy_text(self._copy, self.value)


_MOST_ADDRESSES = 4
# Logical pixels of the field for the port, with the usual text size.
_PORT_WIDTH = 76
LOWEST_PORT, HIGHEST_PORT = 1024, 65_534


class AddressCard(QFrame):
    switched = Signal(bool)
    port_entered = Signal(int)
    free_port_asked = Signal()
    network_asked = Signal(bool)
    """True if other PCs are to be let in, before the user has been asked about it."""
    origins_asked = Signal()
    """The user wants to choose which web pages may use the server."""
    new_key_asked = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("kind", "modelcard")
        self.setObjectName("serve.card")
        self._key, self._shows_key, self._port, self._lets_in = "", False, 0, False
        self._openai, self._anthropic = (
            AddressLine("serve.openai", tr("OpenAI")),
            AddressLine("serve.anthropic", tr("Anthropic")),
        )
        self._network = [AddressLine(f"serve.network.{n}", tr("Other PCs")) for n in range(1, _MOST_ADDRESSES + 1)]
        self._fingerprint = AddressLine("serve.fingerprint", tr("SHA-256"))
        self._certificate = AddressLine("serve.certificate", tr("Certificate"))
        self._key_line = AddressLine("serve.key", tr("Key"))
        self._show = self._key_line.add_button("show", tr("Show"), tr("Show the key"))
        self._show.clicked.connect(self._on_show)
        tip = tr("Make a new key, so that the old one is no longer valid")
        self._new = self._key_line.add_button("new", tr("New…"), tip)
        self._new.clicked.connect(self.new_key_asked)
        self._switch = Switch()
        about = tr("Let programs on this PC use the loaded model. They need the key.")
        describe(self._switch, "serve.on", tr("Serve other programs"), about)
        self._switch.clicked.connect(self.switched)
        self._title = label(kind="heading", name="serve.title")
        self._chip = label(name="serve.reach")
        self._chip.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._about, self._problem = (
            paragraph(kind="dim", name="serve.about"),
            paragraph(kind="error", name="serve.problem"),
        )
        self._other_port = button(
            tr("Use a free port"), "serve.freeport", kind="primary", tip=tr("Find a port that no program uses")
        )
        self._other_port.clicked.connect(self.free_port_asked)
        lines = (self._openai, self._anthropic, self._key_line, *self._network, self._fingerprint, self._certificate)
        made = column(
            row(self._switch, self._title, STRETCH, self._chip),
            self._about,
            self._problem,
            row(self._other_port, STRETCH),
            4,
            *lines,
            4,
            self._make_foot(),
            STRETCH,
            margins=(PADDING, 16, PADDING, 16),
        )
        self.setLayout(made)

    def show_state(
        self, state: ServerState, switch: SwitchState, *, is_wanted: bool, port: int, lets_in: bool, model: str
    ) -> None:
        """Show the server as it is now, and the settings that it follows. `model` is the loaded one; "" for none."""
        self._port, self._lets_in = port, lets_in
        self._switch.setChecked(is_wanted)
        self._title.setText(_title(state, switch))
        self._chip.setVisible(state.is_on)
        self._chip.setText(tr("Your network too") if state.network_addresses else tr("This PC only"))
        restyle(self._chip, "chip", "warn" if state.network_addresses else "good")
        self._about.setText("" if switch.is_busy else _about(state, model))
        self._about.setHidden(bool(switch.problem))
        self._problem.setText(switch.problem)
        self._problem.setVisible(bool(switch.problem))
        self._other_port.setVisible(switch.is_port_taken)
        if not self._port_field.hasFocus():
            self._port_field.setText(str(port))
        text = tr("Keep other PCs out") if lets_in else tr("Other PCs and phones…")
        self._network_button.setText(text)
        tip = tr("Only programs on this PC can use the server then") if lets_in else tr("Asks you first")
        describe(self._network_button, "serve.network", text, tip)
        self._show_addresses(state)

    def _show_addresses(self, state: ServerState) -> None:
        key = state.keys[0].key if state.keys else ""
        if key != self._key:
            self._key, self._shows_key = key, False
        address = state.address or usual_address(self._port)
        self._openai.show_value(f"{address}/v1")
        self._anthropic.show_value(address)
        addresses = state.network_addresses[:_MOST_ADDRESSES]
        for line, each in zip(self._network, (*addresses, *[""] * _MOST_ADDRESSES), strict=False):
            line.show_value(each)
        self._fingerprint.show_value(state.fingerprint if addresses else "")
        self._certificate.show_value(state.certificate_file if addresses else "")
        self._show_key()

    def _show_key(self) -> None:
        hidden = masked_key(self._key) if self._key else tr("Shown when it's on")
        self._key_line.show_value(self._key, self._key if self._shows_key else hidden)
        text = tr("Hide") if self._shows_key else tr("Show")
        self._show.setText(text)
        self._show.setAccessibleName(text)
        for each in (self._show, self._new):
            each.setEnabled(bool(self._key))

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

    def _make_foot(self) -> QWidget:
        self._network_button = TextButton()
        self._network_button.clicked.connect(lambda: self.network_asked.emit(not self._lets_in))
        tip = tr("Choose in the settings which web pages may use the server")
        origins = button(tr("Web pages…"), "serve.origins", tip=tip)
        origins.clicked.connect(self.origins_asked)
        self._port_field = QLineEdit()
        self._fit_port()
        app_theme().changed.connect(self._fit_port)
        self._port_field.setValidator(QIntValidator(0, 99_999, self))
        tip = tr("From {0} to {1}. Enter takes it, and starts the server again.", LOWEST_PORT, HIGHEST_PORT)
        describe(self._port_field, "serve.port", tr("Port"), tip)
        self._port_field.editingFinished.connect(self._on_port)
        port = label(tr("Port"), "dim")
        port.setBuddy(self._port_field)
        foot = FlowLayout()
        for widget in (self._network_button, origins, widget_with(row(port, self._port_field))):
            foot.addWidget(widget)
        return widget_with(foot)


def usual_address(port: int) -> str:
    """Return the address at which programs on this PC will reach the server while it is off."""
    return f"http://127.0.0.1:{port}"


def _title(state: ServerState, switch: SwitchState) -> str:
    if switch.is_busy:
        return tr("Starting…")
    if switch.problem:
        return tr("Couldn't start")
    return tr("On") if state.is_on else tr("Off")


def _about(state: ServerState, model: str) -> str:
    if not state.is_on:
        if not model:
            return tr("Turn it on, and programs on this PC can use your last model.")
        return tr("Turn it on, and programs on this PC can use {0}.", model)
    if state.network_addresses:
        return tr(
            "Programs on this PC use the first two addresses. Other PCs use those below, and have to trust the "
            "certificate: copy its file there, and compare the fingerprint."
        )
    if not model:
        return tr("No model is loaded: the first request loads your last one.")
    return tr("Programs on this PC can use {0}.", model)
