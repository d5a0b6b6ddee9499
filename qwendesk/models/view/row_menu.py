"""The menu of one model: load options, check, show, move or copy, delete."""

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QAction, QDesktopServices
from PySide6.QtWidgets import QWidget

from qwendesk.core.translation import tr
from qwendesk.core.units import show_bytes
from qwendesk.hub.library import LibraryModel
from qwendesk.hub.model_import import How
from qwendesk.models.library_service import LibraryState
from qwendesk.models.model_list import ModelEntry
from qwendesk.models.view.model_actions import ModelActions
from qwendesk.widgets.file_dialogs import ask_for_folder
from qwendesk.widgets.popups import Menu


class RowMenu(Menu):
    """The menu of one model, created each time it opens. A file of another app can only be copied."""

    def __init__(self, actions: ModelActions, entry: ModelEntry, library: LibraryState, parent: QWidget) -> None:
        super().__init__(parent)
        self._actions, self._entry, self._library, self._page = actions, entry, library, parent
        self.setObjectName("models.my.menu")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setToolTipsVisible(True)
        model, is_idle = entry.model, entry.progress is None
        if not entry.is_companion and not model.problem:
            options = self._add("options", tr("Load options…"), lambda: actions.show_options(model.path))
            options.setToolTip(tr("Set how this model loads, and see the memory it needs, without loading it"))
            self.addSeparator()
        verify = self._add("verify", tr("Verify whole file"), lambda: actions.verify(model.path))
        verify.setToolTip(tr("Compute the SHA-256 and compare it with Hugging Face"))
        verify.setEnabled(is_idle)
        self._add("show", tr("Show in folder"), self._show_in_folder)
        self._add_move(model, is_enabled=is_idle and not model.problem)
        self.addSeparator()
        delete = self._add("delete", tr("Delete…"), lambda: actions.ask_to_delete(model.path))
        delete.setEnabled(is_idle and model.writable)
        if not model.writable:
            delete.setToolTip(tr("This file belongs to another app. Delete it there."))

    def _add(self, name: str, text: str, run: Callable[[], None]) -> QAction:
        action = QAction(text, self)
        action.setObjectName(f"models.my.menu.{name}")
        action.triggered.connect(lambda _checked=False: run())
        self.addAction(action)
        return action

    def _add_move(self, model: LibraryModel, *, is_enabled: bool) -> None:
        how: How = "move" if model.writable else "copy"
        title = tr("Move to") if how == "move" else tr("Copy to QwenDesk's folder")
        menu = self.add_submenu(title, "models.my.menu.bring")
        menu.setEnabled(is_enabled)
        menu.setToolTipsVisible(True)
        for index, folder in enumerate(self._library.folders.models, 1):
            if folder == model.place:
                continue
            free = self._library.free_bytes.get(folder)
            name = folder.replace("&", "&&")
            action = menu.addAction(name if free is None else tr("{0} ({1} free)", name, show_bytes(free)))
            action.setObjectName(f"models.my.menu.bring.{index}")
            if free is not None and free < model.n_bytes:
                action.setEnabled(False)
                action.setToolTip(tr("Not enough space: {0} more needed", show_bytes(model.n_bytes - free)))
            action.triggered.connect(lambda _checked=False, to=folder: self._actions.move(model.path, to, how))
        other = menu.addAction(tr("Another folder…"))
        other.setObjectName("models.my.menu.bring.other")
        other.triggered.connect(
            lambda: choose_folder(
                self._page,
                tr("Choose a models folder"),
                lambda to: self._actions.move(model.path, to, how),
            )
        )

    def _show_in_folder(self) -> None:
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(Path(self._entry.model.path).parent)))


def choose_folder(parent: QWidget, title: str, chosen: Callable[[str], None]) -> None:
    """Open a folder dialog. `chosen` is called with the path, or not at all if the user cancels."""
    ask_for_folder(parent, "models.folder.dialog", title, chosen)
