"""The model folders on the settings page: models folders, folders used in place, and other apps."""

from collections.abc import Coroutine
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from qwendesk.core.errors import QwenDeskError
from qwendesk.core.translation import tr
from qwendesk.hub.model_folders import ModelFolders
from qwendesk.models.library_service import LibraryService
from qwendesk.widgets.bind import bind_field
from qwendesk.widgets.buttons import IconButton, TextButton, describe
from qwendesk.widgets.controls import Switch
from qwendesk.widgets.file_dialogs import ask_for_folder
from qwendesk.widgets.layouts import FlowLayout
from qwendesk.widgets.rows.titled_card import TitledCard
from qwendesk.widgets.tasks import window_tasks
from qwendesk.widgets.text_layout import ElidedLabel

_WORDS = (
    "model folders folder drive disk where downloads go other apps lm studio jan ollama open webui llama.cpp "
    "hugging face cache"
)


class FoldersSection(TitledCard):
    """Shows and changes the folders of the library."""

    def __init__(self, library: LibraryService) -> None:
        super().__init__("settings.folders", tr("Model folders"), _WORDS)
        self._library, self._tasks = library, window_tasks()
        self._list = QVBoxLayout()
        self._list.setSpacing(0)
        box = QWidget()
        box.setLayout(self._list)
        self._list.setContentsMargins(0, 0, 0, 0)
        self._lines: list[QFrame] = []
        self._error = QLabel()
        self._error.setProperty("kind", "error")
        self._error.setObjectName("settings.folders.error")
        self._error.setWordWrap(True)
        self._error.setContentsMargins(16, 0, 16, 8)
        self._error.hide()
        self.add(box)
        self.add(self._error)
        self.add(self._make_buttons())
        self.add(self._make_other_apps())
        bind_field(self, library.state, lambda state: state.folders, self._show)

    def _show(self, folders: ModelFolders) -> None:
        for line in self._lines:
            self._list.removeWidget(line)
            line.hide()
            line.deleteLater()
        self._lines = []
        for place, folder in enumerate(folders.models, 1):
            what = tr("Downloads go here") if place == 1 else tr("For imports, and for downloads on request")
            self._lines.append(self._line(f"settings.folders.{place}", folder, what, place=place))
        for place, folder in enumerate(folders.added, 1):
            self._lines.append(self._line(f"settings.folders.added.{place}", folder, tr("Used in place"), place=0))
        for line in self._lines:
            self._list.addWidget(line)
        self._other_apps.setChecked(folders.other_apps)

    def _line(self, name: str, folder: str, what: str, *, place: int) -> QFrame:
        line = QFrame()
        line.setObjectName(name)
        path = ElidedLabel(f"{name}.path")
        path.setText(folder)
        path.setToolTip(folder)
        path.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        note = QLabel(what)
        note.setProperty("kind", "small")
        texts = QVBoxLayout()
        texts.setSpacing(2)
        texts.addWidget(path)
        texts.addWidget(note)
        row = QHBoxLayout(line)
        row.setContentsMargins(16, 8, 8, 8)
        row.setSpacing(8)
        row.addLayout(texts, 1)
        if place > 1:
            first = TextButton(tr("Download here"), kind="quiet")
            describe(first, f"{name}.first", tr("Download here"), tr("Save downloads in this folder"))
            first.clicked.connect(lambda: self._start(self._library.download_to(folder)))
            row.addWidget(first)
        if place != 1 or len(self._library.folders.models) > 1:
            remove = IconButton("close", size=16, side=28)
            describe(remove, f"{name}.remove", tr("Remove"), tr("Remove this folder (files are kept)"))
            remove.clicked.connect(lambda: self._start(self._library.remove_folder(folder)))
            row.addWidget(remove)
        return line

    def _make_buttons(self) -> QWidget:
        box = QWidget()
        around = QVBoxLayout(box)
        around.setContentsMargins(16, 4, 16, 8)
        row = FlowLayout()
        around.addLayout(row)
        own = TextButton(tr("Add a models folder…"), icon_name="folder")
        describe(
            own,
            "settings.folders.add",
            tr("Add a models folder…"),
            tr("A folder on any drive for downloads and imports"),
        )
        own.clicked.connect(lambda: self._choose(tr("Choose a folder for downloads"), own=True))
        other = TextButton(tr("Use an existing folder…"), kind="quiet")
        describe(
            other,
            "settings.folders.add_other",
            tr("Use an existing folder…"),
            tr("Use its models in place. The files are never changed."),
        )
        other.clicked.connect(lambda: self._choose(tr("Choose a folder with models"), own=False))
        row.addWidget(own)
        row.addWidget(other)
        return box

    def _make_other_apps(self) -> QWidget:
        box = QWidget()
        text = QLabel(tr("Use models from other apps"))
        note = QLabel(
            tr(
                "From LM Studio, Ollama, Open WebUI, Jan, llama.cpp and the Hugging Face cache. Their files are never "
                "changed."
            )
        )
        note.setProperty("kind", "small")
        note.setWordWrap(True)
        self._other_apps = Switch()
        describe(self._other_apps, "settings.folders.other_apps", tr("Use models from other apps"))
        self._other_apps.clicked.connect(lambda on: self._start(self._library.include_other_apps(included=on)))
        texts = QVBoxLayout()
        texts.setSpacing(2)
        texts.addWidget(text)
        texts.addWidget(note)
        row = QHBoxLayout(box)
        row.setContentsMargins(16, 8, 16, 8)
        row.setSpacing(24)
        row.addLayout(texts, 1)
        row.addWidget(self._other_apps)
        return box

    def _choose(self, title: str, *, own: bool) -> None:
        chosen = self.add_models_folder if own else self.use_in_place
        ask_for_folder(self, "settings.folders.dialog", title, chosen, kind="models")

    def add_models_folder(self, folder: str) -> None:
        self._start(self._library.add_models_folder(folder))

    def use_in_place(self, folder: str) -> None:
        self._start(self._library.use_in_place(folder))

    def _start(self, change: Coroutine[Any, Any, None]) -> None:
        self._tasks.start(self._run(change))

    async def _run(self, change: Coroutine[Any, Any, None]) -> None:
        try:
            await change
        except QwenDeskError as error:
            self._error.setText(error.sentence)
            self._error.show()
            self._show(self._library.folders)  # a switch shows the saved state again
        else:
            self._error.hide()
