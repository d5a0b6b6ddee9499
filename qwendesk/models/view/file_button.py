"""The button of a file on the Hub: download it, resume its download, fix it or load it."""

from collections.abc import Coroutine, Mapping
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any, Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QLabel, QPushButton, QVBoxLayout, QWidget

from qwendesk.core.errors import QwenDeskError
from qwendesk.core.translation import mark, tr
from qwendesk.models.model_list import FileStatus, FileStatuses
from qwendesk.models.services import ModelServices
from qwendesk.models.view.model_actions import ModelActions
from qwendesk.widgets.buttons import TextButton, describe
from qwendesk.widgets.layouts import ResponsivePairLayout
from qwendesk.widgets.navigation import Navigation
from qwendesk.widgets.tasks import window_tasks

# The button's text and tooltip, by the status of the file.
_TEXTS: Final[Mapping[FileStatus, tuple[str, str]]] = MappingProxyType(
    {
        "absent": (mark("Download"), mark("Download from Hugging Face")),
        "downloading": (mark("Downloading"), mark("See the progress under Downloads")),
        "paused": (mark("Resume"), mark("Resume the paused download")),
        "failed": (mark("Retry"), mark("The download failed: {0}")),
        "present": (mark("Load"), mark("Load this model")),
        "flagged": (mark("Fix"), mark("This file has a problem. See My models.")),
    }
)


def file_button() -> TextButton:
    """Return the button of a file in a table."""
    button = TextButton(tr("Download"))
    button.setProperty("compact", "true")
    return button


def show_file_status(button: QPushButton, statuses: FileStatuses, repo: str, path: str) -> None:
    """Show on `button` what can be done with the file."""
    status = statuses.status(repo, path)
    text, tip = _TEXTS[status]
    stopped = statuses.stopped.get((repo, path))
    button.setText(tr(text))
    button.setToolTip(tr(tip, stopped.sentence if stopped is not None else ""))
    button.setAccessibleName(tr("{0}: {1}", tr(text), PurePosixPath(path).name))
    button.setEnabled(status != "downloading")


class FileOffersTab(QWidget):
    """Base class of the tabs that offer files on the Hub."""

    def __init__(self, services: ModelServices, actions: ModelActions, navigation: Navigation, name: str) -> None:
        """`name` begins the object name of `problem`, which the tab places in its layout."""
        super().__init__()
        self._downloads, self._tasks = services.downloads, window_tasks()
        self._actions, self._navigation = actions, navigation
        self._statuses = FileStatuses()
        self._asked = "", "", True
        """Repository and path of the file whose button was clicked last, and whether with its vision projector."""
        self.problem = ProblemLine(f"{name}.problem")
        """Why a download couldn't start."""
        self.problem.retry_asked.connect(self._retry)

    def show_statuses(self, statuses: FileStatuses) -> None:
        """Show on the buttons of the files what can be done with each."""
        raise NotImplementedError

    def handle_click(self, repo: str, path: str, *, with_mmproj: bool = True) -> None:
        """Perform the action of the file's button. `with_mmproj` is whether to download its vision projector too."""
        self._asked = repo, path, with_mmproj
        match self._statuses.status(repo, path):
            case "paused" | "failed":
                self._run(self._downloads.resume(self._statuses.stopped[(repo, path)].id))
            case "flagged":
                self._navigation.models_tab_asked.emit("mine")
            case "present":
                self._actions.load(self._statuses.present[(repo, path)])
            case _:
                self._run(self._downloads.add(repo, path, with_mmproj=with_mmproj))

    def _retry(self) -> None:
        repo, path, with_mmproj = self._asked
        self.handle_click(repo, path, with_mmproj=with_mmproj)

    def _run(self, action: Coroutine[Any, Any, object]) -> None:
        async def run() -> None:
            try:
                await action
                self.problem.show_problem("")
            except QwenDeskError as error:
                self.problem.show_problem(error.sentence)

        self._tasks.start(run())


# Least width in pixels of the sentence next to the button.
_LEAST_WORDS = 240


class ProblemLine(QWidget):
    """Hidden until there is a problem. Object names of its controls begin with `name`."""

    retry_asked = Signal()

    def __init__(self, name: str) -> None:
        super().__init__()
        self._text = QLabel()
        self._text.setObjectName(name)
        self._text.setProperty("kind", "error")
        self._text.setTextFormat(Qt.TextFormat.PlainText)
        self._text.setWordWrap(True)
        retry = TextButton(tr("Retry"), icon_name="again")
        describe(retry, f"{name}.retry", tr("Retry"), tr("Try again"))
        retry.clicked.connect(self.retry_asked)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addLayout(ResponsivePairLayout(self._text, retry, least=_LEAST_WORDS))
        self.hide()

    def show_problem(self, sentence: str) -> None:
        """Show a sentence; "" hides the line."""
        self._text.setText(sentence)
        self.setVisible(bool(sentence))
