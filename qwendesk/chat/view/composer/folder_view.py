"""The folders of the open chat with their states, and the dialog about what is read of one."""

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
from PySide6.QtCore import QObject, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QHBoxLayout, QPlainTextEdit, QVBoxLayout, QWidget
from shiboken6 import isValid

from qwendesk.chat.service import ChatService
from qwendesk.chat.view.composer.composer import Composer
from qwendesk.core.chats import ChatSettings
from qwendesk.core.folder_state import FolderState
from qwendesk.core.number_format import show_count
from qwendesk.core.observed import Observed
from qwendesk.core.translation import join_sentences, tr, tr_n
from qwendesk.widgets.bind import bind, bind_field
from qwendesk.widgets.buttons import TextButton, describe
from qwendesk.widgets.kit import paragraph
from qwendesk.widgets.question_dialog import Dialog

_WIDTH, _HEIGHT = 560, 420


class FolderDialog(Dialog):
    """Closes with Esc, and deletes itself."""

    def __init__(
        self, folder: str, read_again: Callable[[], None], remove: Callable[[], None], parent: QWidget
    ) -> None:
        super().__init__(parent)
        self._folder = folder
        self.setObjectName("folder")
        self.setWindowTitle(tr("Folder for this chat"))
        self.setModal(True)
        self._most_height = min(_HEIGHT, parent.height() - 40)
        self.resize(min(_WIDTH, parent.width() - 40), self._most_height)
        self._state, self._note = (
            paragraph(kind="lead", name="folder.state"),
            paragraph(kind="small", name="folder.note"),
        )
        self._head = paragraph(kind="small", name="folder.head")
        self._problems = QPlainTextEdit()
        self._problems.setObjectName("folder.problems")
        self._problems.setAccessibleName(tr("Files that can't be read"))
        self._problems.setReadOnly(True)
        self._problems.setTabChangesFocus(True)
        name, path = paragraph(kind="heading", name="folder.name"), paragraph(kind="dim", name="folder.path")
        name.setText(Path(folder).name or folder)
        path.setText(folder)
        column = self._column = QVBoxLayout(self)
        column.setContentsMargins(20, 18, 20, 16)
        column.setSpacing(8)
        for widget in (name, path, self._state, self._note, self._head):
            column.addWidget(widget)
        column.addWidget(self._problems, 1)
        column.addSpacing(8)
        column.addLayout(self._buttons(read_again, remove))
        self.finished.connect(self.deleteLater)
        self.show_state(None)

    def show_state(self, state: FolderState | None) -> None:
        """Show how the folder is now; None: it is not read."""
        self._state.setText(_sentence(state))
        self._note.setText(state.note if state is not None else "")
        self._note.setVisible(bool(self._note.text()))
        problems = state.problems if state is not None else ()
        lines = [_problem_line(each.path, each.reason) for each in problems]
        n_more = state.n_problems - len(problems) if state is not None else 0
        if n_more:
            lines.append(tr_n("{0} more", "{0} more", n_more))
        self._head.setText(tr("These files can't be read, so the model doesn't find what is in them:"))
        self._head.setVisible(bool(lines))
        self._problems.setVisible(bool(lines))
        self._fit(has_list=bool(lines))
        if "\n".join(lines) != self._problems.toPlainText():
            self._problems.setPlainText("\n".join(lines))
        self._again.setEnabled(state is not None and state.phase in ("ready", "failed"))

    def _fit(self, *, has_list: bool) -> None:
        """Be as tall as the sentences need, or as a list needs."""
        self._column.activate()
        self.resize(self.width(), self._most_height if has_list else self._column.totalHeightForWidth(self.width()))

    def _buttons(self, read_again: Callable[[], None], remove: Callable[[], None]) -> QHBoxLayout:
        again = self._again = TextButton(tr("Read again"))
        describe(again, "folder.again", tr("Read again"), tr("Look for files that are new or have changed"))
        again.clicked.connect(read_again)
        show = TextButton(tr("Open folder"))
        describe(show, "folder.show", tr("Open folder"), self._folder)
        show.clicked.connect(lambda: QDesktopServices.openUrl(QUrl.fromLocalFile(self._folder)))
        away = TextButton(tr("Remove"))
        describe(away, "folder.remove", tr("Remove"), tr("Remove this folder from the chat (files are kept)"))
        away.clicked.connect(self.accept)
        away.clicked.connect(remove)
        close = TextButton(tr("Close"), kind="primary")
        describe(close, "folder.close", tr("Close"), shortcut="Esc")
        close.clicked.connect(self.reject)
        close.setFocus()
        row = QHBoxLayout()
        row.setSpacing(8)
        for button in (again, show, away):
            row.addWidget(button)
        row.addStretch(1)
        row.addWidget(close)
        return row


def _problem_line(path: str, reason: str) -> str:
    """Return why a file can't be read, with its path; a reason that begins with its name isn't told it twice."""
    name = Path(path).name
    return path + reason[len(name) :] if reason.startswith(name) else f"{path}: {reason}"


def _sentence(state: FolderState | None) -> str:
    if state is None:
        return tr("It is read when a tool that reads files is on.")
    match state.phase:
        case "waiting" | "listing":
            return tr("Looking for files…")
        case "reading":
            return tr("Reading {0} of {1} files", show_count(state.n_seen), show_count(state.n_found))
        case "failed":
            return tr("This folder can't be read.")
        case "ready":
            found = tr_n("{0} file with text can be searched.", "{0} files with text can be searched.", state.n_files)
            missing = tr_n("{0} file can't be read.", "{0} files can't be read.", state.n_problems)
            return join_sentences(found, missing) if state.n_problems else found


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
