"""Shows the folders of the open chat with their states, and what the user can do with them."""

from collections.abc import Callable, Mapping

import msgspec
from PySide6.QtCore import QObject
from shiboken6 import isValid

from qwendesk.chat.service import ChatService
from qwendesk.chat.view.composer.composer import Composer
from qwendesk.chat.view.folder_dialog import FolderDialog
from qwendesk.core.chats import ChatSettings
from qwendesk.core.folder_state import FolderState
from qwendesk.core.observed import Observed
from qwendesk.widgets.bind import bind, bind_field


class FolderView(QObject):
    """Connects the folders above the message field and in the menu of tools with the settings of the chat."""

    def __init__(self, composer: Composer, chat: ChatService) -> None:
        super().__init__(composer)
        self._composer, self._chat = composer, chat
        self._states: Mapping[str, FolderState] = {}
        self._read_again: Callable[[], None] = lambda: None
        self._dialog: FolderDialog | None = None
        self._opened = ""
        composer.folders.opened.connect(self.open)
        composer.tools.choice.folder_opened.connect(self.open)
        bind_field(self, chat.state, lambda state: state.settings, lambda _settings: self._show())

    def follow(self, states: Observed[Mapping[str, FolderState]], read_again: Callable[[], None]) -> None:
        """Show the states of the folders. `read_again` looks for changes in those of the open chat."""
        self._read_again = read_again
        bind(self, states, self._show_states)

    def open(self, folder: str) -> None:
        """Open the dialog about a folder."""
        parent = self._composer.window()
        self._opened = folder
        self._dialog = FolderDialog(folder, self._read_again, lambda: self._remove(folder), parent)
        self._dialog.show_state(self._states.get(folder))
        self._dialog.open()

    def _show_states(self, states: Mapping[str, FolderState]) -> None:
        self._states = states
        self._show()

    def _show(self) -> None:
        settings = self._chat.settings
        self._composer.folders.show_folders(settings.tool_folders, self._states)
        self._composer.tools.choice.show_folder_states(self._states)
        if self._dialog is not None and isValid(self._dialog):
            self._dialog.show_state(self._states.get(self._opened))

    def _remove(self, folder: str) -> None:
        settings: ChatSettings = self._chat.settings
        folders = tuple(each for each in settings.tool_folders if each != folder)
        self._chat.change_settings(msgspec.structs.replace(settings, tool_folders=folders))
