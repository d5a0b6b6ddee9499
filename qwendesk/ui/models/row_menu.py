"""The menu of one model: check, show, move or copy, delete."""

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QAction, QDesktopServices
from PySide6.QtWidgets import QFileDialog, QMenu, QWidget

from qwendesk.core.units import show_bytes
from qwendesk.hub.importing import How
from qwendesk.hub.library import LibraryModel
from qwendesk.ui.bridges.models import ModelEntry, ModelsBridge
from qwendesk.ui.kit.text import tr


class RowMenu(QMenu):
    """Made anew each time it opens. The file of another app can only be copied."""

    def __init__(self, bridge: ModelsBridge, entry: ModelEntry, parent: QWidget) -> None:
        super().__init__(parent)
        self._bridge, self._entry, self._page = bridge, entry, parent
        self.setObjectName("models.my.menu")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setToolTipsVisible(True)
        model, is_idle = entry.model, entry.work is None
        verify = self._add("verify", tr("Verify every byte"), lambda: bridge.verify(model.path))
        verify.setToolTip(tr("Compute the SHA-256 and compare it with Hugging Face, as far as that can be reached"))
        verify.setEnabled(is_idle)
        self._add("show", tr("Show in folder"), self._show_in_folder)
        self._add_bring(model, is_enabled=is_idle and not model.problem)
        self.addSeparator()
        delete = self._add("delete", tr("Delete…"), lambda: bridge.ask_to_delete(model.path))
        delete.setEnabled(is_idle and model.writable)
        if not model.writable:
            delete.setToolTip(tr("It belongs to another app: delete it there"))

    def _add(self, name: str, text: str, run: Callable[[], None]) -> QAction:
        action = QAction(text, self)
        action.setObjectName(f"models.my.menu.{name}")
        action.triggered.connect(lambda _checked=False: run())
        self.addAction(action)
        return action

    def _add_bring(self, model: LibraryModel, *, is_enabled: bool) -> None:
        how: How = "move" if model.writable else "copy"
        title = tr("Move to") if how == "move" else tr("Copy to QwenDesk's folder")
        menu = self.addMenu(title)
        menu.setObjectName("models.my.menu.bring")
        menu.setEnabled(is_enabled)
        menu.setToolTipsVisible(True)
        for index, folder in enumerate(self._bridge.folders.models, 1):
            if folder == model.place:
                continue
            free = self._bridge.free_bytes(folder)
            name = folder.replace("&", "&&")
            action = menu.addAction(name if free is None else tr("{0} ({1} free)", name, show_bytes(free)))
            action.setObjectName(f"models.my.menu.bring.{index}")
            if free is not None and free < model.n_bytes:
                action.setEnabled(False)
                action.setToolTip(tr("{0} more would be needed there", show_bytes(model.n_bytes - free)))
            action.triggered.connect(lambda _checked=False, to=folder: self._bridge.bring(model.path, to, how))
        other = menu.addAction(tr("Another folder…"))
        other.setObjectName("models.my.menu.bring.other")
        other.triggered.connect(
            lambda: choose_folder(
                self._page,
                tr("Choose a folder for models"),
                lambda to: self._bridge.bring(model.path, to, how),
            )
        )

    def _show_in_folder(self) -> None:
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(Path(self._entry.model.path).parent)))


def choose_folder(parent: QWidget, title: str, chosen: Callable[[str], None]) -> None:
    """Opens a folder dialog; `chosen` gets the path, or is never called."""
    dialog = QFileDialog(parent, title)
    dialog.setObjectName("models.folder.dialog")
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.setFileMode(QFileDialog.FileMode.Directory)
    dialog.setOption(QFileDialog.Option.ShowDirsOnly)
    dialog.fileSelected.connect(lambda path: chosen(str(Path(path))))
    dialog.open()
