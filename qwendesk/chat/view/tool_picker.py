"""Lets the user choose which tools the model may call in the open chat, and in which folders they may read."""

from collections.abc import Sequence
from typing import Any

import msgspec
from PySide6.QtCore import QObject, Signal

from qwendesk.chat.service import ChatService
from qwendesk.chat.view.composer.composer import Composer
from qwendesk.core.chats import ChatSettings
from qwendesk.core.tool_context import ToolChoice
from qwendesk.core.translation import tr
from qwendesk.engine.protocol import LoadReport
from qwendesk.widgets.bind import bind_field
from qwendesk.widgets.file_dialogs import ask_for_folder


class ToolPicker(QObject):
    """Connects the composer's menu of tools with the settings of the chat."""

    obstacles_asked = Signal()
    """It has to be known now which tools can't be used on this PC."""

    def __init__(self, composer: Composer, chat: ChatService) -> None:
        super().__init__(composer)
        self._composer, self._chat = composer, chat
        self._choices: Sequence[ToolChoice] = ()
        self._report: LoadReport | None = None
        choice = composer.tools.choice
        choice.chosen.connect(lambda names: self._change(tools=tuple(names)))
        choice.folder_asked.connect(self._ask_for_folder)
        choice.aboutToShow.connect(self.obstacles_asked)
        bind_field(self, chat.state, lambda state: state.settings, self._show)

    def show_choices(self, choices: Sequence[ToolChoice]) -> None:
        """Offer these tools."""
        self._choices = choices
        self._show()

    def show_report(self, report: LoadReport | None) -> None:
        self._report = report
        self._show()

    def _show(self, _settings: ChatSettings | None = None) -> None:
        settings = self._chat.settings
        self._composer.tools.show_tools(self._choices, settings, self._report)
        if any(choice.obstacle and set(choice.names) <= set(settings.tools) for choice in self._choices):
            self.obstacles_asked.emit()

    def _change(self, **changes: Any) -> None:
        self._chat.change_settings(msgspec.structs.replace(self._chat.settings, **changes))

    def _ask_for_folder(self) -> None:
        title = tr("Pick a folder in which the model may read")
        ask_for_folder(self._composer, "composer.tools.dialog", title, self._add_folder)

    def _add_folder(self, folder: str) -> None:
        """Take a folder, and switch on the tools that read in it, which come first among those that need one."""
        settings = self._chat.settings
        reading = next((choice.names for choice in self._choices if choice.needs_folder), ())
        tools = (*settings.tools, *(name for name in reading if name not in settings.tools))
        self._change(tools=tools, tool_folders=tuple(dict.fromkeys((*settings.tool_folders, folder))))
