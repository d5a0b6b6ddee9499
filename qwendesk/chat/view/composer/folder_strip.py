"""The folders in which the model may read in this chat, above the message field, each with its state."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from qwendesk.core.folder_state import FolderState
from qwendesk.core.number_format import show_count
from qwendesk.core.translation import join_list, tr, tr_n
from qwendesk.widgets.buttons import TextButton, describe
from qwendesk.widgets.layouts import FlowLayout


def folder_text(name: str, state: FolderState | None) -> str:
    """Return the name of a folder and how far it is: "papers: reading 1 of 2 files"; the name if it isn't read."""
    if state is None:
        return name
    match state.phase:
        case "waiting" | "listing":
            return tr("{0}: looking for files…", name)
        case "reading":
            return tr("{0}: reading {1} of {2} files", name, show_count(state.n_seen), show_count(state.n_found))
        case "failed":
            return tr("{0}: can't be read", name)
        case "ready":
            files = tr_n("{1}: {0} file", "{1}: {0} files", state.n_files, name)
            missing = tr_n("{0} can't be read", "{0} can't be read", state.n_problems)
            return join_list((files, missing)) if state.n_problems else files


def has_problem(state: FolderState) -> bool:
    return state.phase == "failed" or bool(state.n_problems) or bool(state.note)


class FolderStrip(QWidget):
    """Hidden while there is no folder."""

    opened = Signal(str)
    """The path of a folder of which the user wants to know more."""

    def __init__(self) -> None:
        super().__init__()
        self._buttons: dict[str, TextButton] = {}
        self._flow = FlowLayout(self, spacing=6)
        self.hide()

    def show_folders(self, folders: Sequence[str], states: Mapping[str, FolderState]) -> None:
        """Show these folders; those without a state are not read."""
        for folder in [each for each in self._buttons if each not in folders]:
            button = self._buttons.pop(folder)
            self._flow.removeWidget(button)
            button.hide()
            button.deleteLater()
        for folder in folders:
            if folder not in self._buttons:
                self._buttons[folder] = self._new_button(folder)
            _show_state(self._buttons[folder], folder, states.get(folder))
        self.setVisible(bool(folders))

    def _new_button(self, folder: str) -> TextButton:
        button = TextButton(kind="size", icon_name="folder", role="text_link")
        button.clicked.connect(lambda: self.opened.emit(folder))
        self._flow.addWidget(button)
        button.show()
        return button


def _show_state(button: TextButton, folder: str, state: FolderState | None) -> None:
    name = Path(folder).name or folder
    text = folder_text(name, state)
    button.setText(text.replace("&", "&&"))
    button.themed.show("folder", "text_warn" if state is not None and has_problem(state) else "text_link")
    describe(button, f"composer.folder.{folder}", text, tr("What is read in {0}", folder))
