"""ServerLine: one server on the settings page, which unfolds to its tools."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from qwendesk.core.translation import join_list, join_sentences, tr, tr_n
from qwendesk.mcp.host_protocol import OfferedTool, ServerOffer
from qwendesk.mcp.server import McpServerState
from qwendesk.mcp.server_config import ServerConfig, clean_name
from qwendesk.widgets.buttons import IconButton, TextButton, describe, restyle
from qwendesk.widgets.controls import Switch
from qwendesk.widgets.layouts import FlowLayout
from qwendesk.widgets.text_layout import ElidedLabel

_TONES = {"failed": "bad", "starting": "warn"}
# Characters of a tool's description that are shown.
_MOST_DESCRIPTION = 200


class ServerLine(QFrame):
    switched = Signal(bool)
    tool_switched = Signal(str, bool)
    """The server's name of a tool, and whether it is on."""
    test_asked = Signal()
    change_asked = Signal()
    removal_asked = Signal()

    def __init__(self, server_id: str, number: int) -> None:
        super().__init__()
        self.server_id = server_id
        self.state = McpServerState(ServerConfig(server_id, ""))
        self._name = f"settings.mcp.{number}"
        self.setObjectName(self._name)
        self._is_open = False
        self._shown_tools: tuple[OfferedTool, ...] | None = None
        self._switches: dict[str, Switch] = {}
        self._title = QLabel()
        self._title.setProperty("kind", "strong")
        self._title.setTextFormat(Qt.TextFormat.PlainText)
        self._title.setObjectName(f"{self._name}.title")
        self._status = QLabel()
        self._status.setObjectName(f"{self._name}.status")
        self._status.setProperty("kind", "small")
        self._command = ElidedLabel(f"{self._name}.command", kind="small")
        self._problem = self._label("problem", "error")
        self._log = self._label("log", "flag")
        self._switch = Switch()
        self._switch.clicked.connect(self.switched)
        self._chevron = IconButton("right", size=16, side=28)
        self._chevron.clicked.connect(lambda: self._open(is_open=not self._is_open))
        self._inside = self._make_inside()
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 8, 8, 8)
        column.setSpacing(4)
        column.addLayout(self._make_head())
        column.addWidget(self._problem)
        column.addWidget(self._log)
        column.addWidget(self._inside)
        self._open(is_open=False)

    def show_state(self, state: McpServerState) -> None:
        """Show a server as it is now."""
        self.state = state
        config = state.config
        self._title.setText(config.name)
        self._status.setText(status_text(state))
        restyle(self._status, "tone", _TONES.get(state.phase, "") if config.is_on else "")
        self._command.setText(config.command_line)
        self._command.setToolTip(config.command_line)
        self._problem.setText(state.problem)
        self._problem.setVisible(bool(state.problem))
        self._log.setText("\n".join(state.log))
        self._log.setVisible(bool(state.log))
        self._switch.setChecked(config.is_on)
        about = tr("{0}, {1}", config.name, status_text(state))
        describe(self._switch, f"{self._name}.on", about, tr("Offer the tools of this server to chats"))
        self._test.setEnabled(state.phase != "starting" and config.is_on)
        self._about.setText(offer_text(config.offer))
        self._about.setVisible(bool(self._about.text()))
        self._show_tools(config)
        self._describe_chevron()

    def _make_head(self) -> QHBoxLayout:
        first = QHBoxLayout()
        first.setSpacing(8)
        first.addWidget(self._title)
        first.addWidget(self._status, 1)
        texts = QVBoxLayout()
        texts.setSpacing(2)
        texts.addLayout(first)
        texts.addWidget(self._command)
        self._test = TextButton(tr("Test"), kind="quiet")
        describe(self._test, f"{self._name}.test", tr("Test"), tr("Start it anew, and see what it offers"))
        self._test.clicked.connect(self.test_asked)
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addLayout(texts, 1)
        row.addWidget(self._test)
        row.addWidget(self._switch)
        row.addWidget(self._chevron)
        return row

    def _make_inside(self) -> QWidget:
        box = QWidget()
        self._about = self._label("about", "small")
        self._tools = QVBoxLayout()
        self._tools.setSpacing(2)
        change = TextButton(tr("Change…"))
        describe(change, f"{self._name}.change", tr("Change…"), tr("Its program or address, arguments and secrets"))
        change.clicked.connect(self.change_asked)
        remove = TextButton(tr("Remove…"), kind="quiet")
        describe(remove, f"{self._name}.remove", tr("Remove…"), tr("Stop it, and delete its settings"))
        remove.clicked.connect(self.removal_asked)
        buttons = FlowLayout()
        buttons.addWidget(change)
        buttons.addWidget(remove)
        column = QVBoxLayout(box)
        column.setContentsMargins(0, 4, 8, 0)
        column.setSpacing(8)
        column.addWidget(self._about)
        column.addLayout(self._tools)
        column.addLayout(buttons)
        return box

    def _show_tools(self, config: ServerConfig) -> None:
        if self._is_open and config.offer.tools != self._shown_tools:  # else the keyboard's focus stays where it is
            self._shown_tools = config.offer.tools
            while (item := self._tools.takeAt(0)) is not None:
                widget = item.widget()
                if widget is not None:
                    widget.hide()
                    widget.deleteLater()
            self._switches = {}
            for number, tool in enumerate(config.offer.tools, 1):
                self._tools.addWidget(self._tool_line(f"{self._name}.tool.{number}", tool))
        for name, switch in self._switches.items():
            switch.setChecked(name not in config.tools_off)

    def _tool_line(self, name: str, tool: OfferedTool) -> QWidget:
        line = QWidget()
        shown_name = clean_name(tool.name)
        title = QLabel(shown_name)
        title.setTextFormat(Qt.TextFormat.PlainText)
        about = QLabel(_one_line(tool.description))
        about.setTextFormat(Qt.TextFormat.PlainText)
        about.setObjectName(f"{name}.about")
        about.setProperty("kind", "small")
        about.setWordWrap(True)
        texts = QVBoxLayout()
        texts.setSpacing(0)
        texts.addWidget(title)
        texts.addWidget(about)
        about.setVisible(bool(about.text()))
        switch = Switch()
        tip = tr("Offer this tool to the model")
        describe(switch, f"{name}.on", shown_name, tip)
        switch.clicked.connect(lambda on: self.tool_switched.emit(tool.name, on))
        self._switches[tool.name] = switch
        row = QHBoxLayout(line)
        row.setContentsMargins(0, 2, 0, 2)
        row.setSpacing(8)
        row.addLayout(texts, 1)
        row.addWidget(switch)
        return line

    def _open(self, *, is_open: bool) -> None:
        self._is_open = is_open
        self._show_tools(self.state.config)
        self._chevron.themed.show("down" if is_open else "right")
        self._inside.setVisible(is_open)
        self._describe_chevron()

    def _describe_chevron(self) -> None:
        text = tr("Hide the tools") if self._is_open else tr("Show the tools")
        about = tr("{0}: {1}", self.state.config.name, text)
        describe(self._chevron, f"{self._name}.open", about, text)

    def _label(self, name: str, kind: str) -> QLabel:
        label = QLabel()
        label.setObjectName(f"{self._name}.{name}")
        label.setProperty("kind", kind)
        label.setTextFormat(Qt.TextFormat.PlainText)
        label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        label.setWordWrap(True)
        label.hide()
        return label


def _one_line(description: str) -> str:
    """Return the beginning of a server's text on one line, without characters that nobody sees."""
    shown = "".join(character if character.isprintable() else " " for character in description)
    line = " ".join(shown.split())
    return line if len(line) <= _MOST_DESCRIPTION else f"{line[:_MOST_DESCRIPTION]}…"


def status_text(state: McpServerState) -> str:
    """Return how a server is now, in a few words."""
    if not state.config.is_on:
        return tr("Off")
    match state.phase:
        case "starting":
            return tr("Starting…")
        case "failed":
            return tr("Doesn't run")
        case "running":
            return tr("Running, {0}", _tools_text(state.config.offer))
        case "stopped" if not state.config.offer.server and not state.config.offer.tools:
            return tr("Not tested")
        case "stopped":
            return tr("Starts when needed, {0}", _tools_text(state.config.offer))


def offer_text(offer: ServerOffer) -> str:
    """Return what a server calls itself and what else it offers; "" if it was never reached."""
    counts = (
        (len(offer.resources), tr_n("{0} resource", "{0} resources", len(offer.resources))),
        (len(offer.prompts), tr_n("{0} prompt", "{0} prompts", len(offer.prompts))),
    )
    others = join_list(text for count, text in counts if count)
    sentences = [tr("It calls itself {0}.", offer.server)] if offer.server else []
    if others:
        sentences.append(tr("Also: {0}.", others))
    if offer.not_callable:
        names = join_list(offer.not_callable)
        sentences.append(tr("Can't be called, because their arguments are not a JSON object: {0}.", names))
    if offer.n_left_out:
        sentences.append(
            tr_n("{0} thing it offers is left out: too many or too large.",
                 "{0} things it offers are left out: too many or too large.", offer.n_left_out)
        )  # fmt: skip
    return join_sentences(*sentences)


def _tools_text(offer: ServerOffer) -> str:
    return tr_n("{0} tool", "{0} tools", len(offer.tools))
