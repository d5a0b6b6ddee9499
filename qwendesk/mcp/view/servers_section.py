"""The MCP servers on the settings page: added, tested, switched on and off, removed."""

from collections.abc import Sequence

from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from qwendesk.core.translation import tr
from qwendesk.mcp.server_config import NewServer
from qwendesk.mcp.service import McpService, McpState
from qwendesk.mcp.view.server_dialog import PasteDialog, ServerDialog
from qwendesk.mcp.view.server_line import ServerLine
from qwendesk.widgets.bind import bind
from qwendesk.widgets.buttons import TextButton, describe
from qwendesk.widgets.layouts import FlowLayout
from qwendesk.widgets.question_dialog import DialogButton, QuestionDialog
from qwendesk.widgets.rows.titled_card import TitledCard
from qwendesk.widgets.tasks import window_tasks

_WORDS = "mcp servers model context protocol tools claude desktop cursor lm studio json npx uvx add paste"


class ServersSection(TitledCard):
    """Shows a line for each server."""

    def __init__(self, service: McpService) -> None:
        super().__init__("settings.mcp", tr("MCP servers"), _WORDS)
        self._service, self._tasks = service, window_tasks()
        self._lines: dict[str, ServerLine] = {}
        about = _note(
            tr(
                "Servers of the Model Context Protocol give the model more tools. A server that is a program can do "
                "all that you can on this PC, and one at an address gets what the model sends it, so add only those "
                "that you trust. Every call asks you first. Switch servers on for a chat in its Tools menu."
            ),
            "small",
        )
        self._problem = _note("", "error")
        self._problem.setObjectName("settings.mcp.problem")
        self._place = _note(
            tr("Your system has no usable keyring, so secrets of servers are saved in a file that only you can read."),
            "small",
        )
        self._place.setObjectName("settings.mcp.place")
        self._list = QVBoxLayout()
        self._list.setContentsMargins(0, 0, 0, 0)
        self._list.setSpacing(0)
        box = QWidget()
        box.setLayout(self._list)
        self.add(about)
        self.add(box)
        self.add(self._problem)
        self.add(self._place)
        self.add(self._make_buttons())
        bind(self, service.state, self._show)

    def _make_buttons(self) -> QWidget:
        box = QWidget()
        around = QVBoxLayout(box)
        around.setContentsMargins(16, 4, 16, 8)
        row = FlowLayout()
        around.addLayout(row)
        add = TextButton(tr("Add a server…"), icon_name="new")
        describe(add, "settings.mcp.add", tr("Add a server…"), tr("Enter a program or an address"))
        add.clicked.connect(self._add)
        paste = TextButton(tr("Paste JSON…"), kind="quiet")
        describe(
            paste,
            "settings.mcp.paste",
            tr("Paste JSON…"),
            tr("The settings that Claude Desktop, Cursor, LM Studio and VS Code use too"),
        )
        paste.clicked.connect(self._paste)
        row.addWidget(add)
        row.addWidget(paste)
        self.setFocusProxy(add)
        return box

    def _show(self, state: McpState) -> None:
        shown = {each.config.id for each in state.servers}
        for server_id in [each for each in self._lines if each not in shown]:
            line = self._lines.pop(server_id)
            self._list.removeWidget(line)
            line.hide()
            line.deleteLater()
        for server in state.servers:
            if server.config.id not in self._lines:
                self._lines[server.config.id] = self._make_line(server.config.id)
            self._lines[server.config.id].show_state(server)
        self._problem.setText(state.problem)
        self._problem.setVisible(bool(state.problem))
        self._place.setVisible(state.are_secrets_in_file)

    def _make_line(self, server_id: str) -> ServerLine:
        line = ServerLine(server_id, len(self._lines) + 1)
        start = self._tasks.start
        line.switched.connect(lambda on: start(self._service.set_on(server_id, on=on)))
        line.tool_switched.connect(lambda tool, on: start(self._service.set_tool(server_id, tool, on=on)))
        line.test_asked.connect(lambda: start(self._service.test(server_id)))
        line.change_asked.connect(lambda: start(self._change(server_id), self))
        line.removal_asked.connect(lambda: self._ask_to_remove(server_id))
        self._list.addWidget(line)
        return line

    @property
    def _names(self) -> Sequence[str]:
        return [each.config.name for each in self._service.state.value.servers]

    def _add(self) -> None:
        dialog = ServerDialog(self.window(), self._names)
        dialog.entered.connect(lambda server: self._save_new((server,)))
        dialog.open()

    def _paste(self) -> None:
        dialog = PasteDialog(self.window(), self._names)
        dialog.entered.connect(self._save_new)
        dialog.open()

    def _save_new(self, servers: Sequence[NewServer]) -> None:
        self._tasks.start(self._service.add(servers))

    async def _change(self, server_id: str) -> None:
        config = self._lines[server_id].state.config
        secrets = await self._service.secrets(server_id)
        others = [name for name in self._names if name != config.name]
        dialog = ServerDialog(self.window(), others, config, [name for name, value in secrets.items() if value])
        dialog.entered.connect(lambda server: self._tasks.start(self._service.change(server)))
        dialog.open()

    def _ask_to_remove(self, server_id: str) -> None:
        name = self._lines[server_id].state.config.name
        QuestionDialog(
            self.window(),
            "settings.mcp.question",
            tr("Remove {0}?", name),
            tr("It is stopped, and its settings and secrets are deleted. The program itself stays on this PC."),
            (
                DialogButton("yes", tr("Remove"), lambda: self._remove(server_id)),
                DialogButton("no", tr("Cancel")),
            ),
            default="no",
        ).open()

    def _remove(self, server_id: str) -> None:
        self._tasks.start(self._service.remove(server_id))


def _note(text: str, kind: str) -> QLabel:
    label = QLabel(text)
    label.setProperty("kind", kind)
    label.setWordWrap(True)
    label.setContentsMargins(16, 8, 16, 4)
    return label
