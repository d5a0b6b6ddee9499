"""Below an opened change of a file: why it can't be undone, with what the user can do instead."""

from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from qwendesk.core.file_edits import EditState, EditStatus
from qwendesk.core.translation import tr
from qwendesk.widgets.buttons import TextButton, describe
from qwendesk.widgets.layouts import FlowLayout


class EditBar(QWidget):
    folder_asked = Signal(str)
    """Path of the file's folder. The file itself is not opened: what a tool wrote could run."""
    difference_asked = Signal()

    def __init__(self, name: str) -> None:
        super().__init__()
        self._path = ""
        self._note = QLabel()
        self._note.setObjectName(f"{name}.note")
        self._note.setProperty("kind", "dim")
        self._note.setTextFormat(Qt.TextFormat.PlainText)
        self._note.setWordWrap(True)
        self._folder = TextButton(tr("Show in folder"))
        describe(self._folder, f"{name}.folder", tr("Show in folder"), tr("Open the folder with the file"))
        self._folder.clicked.connect(lambda: self.folder_asked.emit(str(Path(self._path).parent)))
        self._compare = TextButton(tr("Show difference"))
        tip = tr("Show what has changed in the file since then")
        describe(self._compare, f"{name}.difference", tr("Show difference"), tip)
        self._compare.clicked.connect(self.difference_asked)
        buttons = FlowLayout()
        for button in (self._folder, self._compare):
            buttons.addWidget(button)
        column = QVBoxLayout(self)
        column.setContentsMargins(14, 0, 14, 14)
        column.setSpacing(8)
        column.addWidget(self._note)
        column.addLayout(buttons)
        self.hide()

    def show_status(self, status: EditStatus) -> None:
        self._path = status.path
        self._note.setText(obstacle_text(status))
        self._folder.setVisible(status.state == "changed")
        self._compare.setVisible(status.state == "changed")


def obstacle_text(status: EditStatus) -> str:
    """Return why a change can be neither undone nor redone; "" if it can."""
    match status.state:
        case "changed":
            return tr("Can't be undone: {0} has changed since.", status.name)
        case "missing":
            return tr("Can't be undone: {0} is no longer there.", status.name)
        case "replaced":
            return tr("Can't be undone: a link or a folder stands in the place of {0}.", status.name)
        case "forgotten":
            return tr("Can't be undone: how the file was before isn't kept any more.")
        case "applied" | "undone":
            return ""


def state_text(state: EditState) -> str:
    """Return the state of a change in a few words; "" if it is as the change left it, or unknown."""
    match state:
        case "undone":
            return tr("Undone")
        case "changed" | "missing" | "replaced":
            return tr("Changed since")
        case "applied" | "forgotten":
            return ""
