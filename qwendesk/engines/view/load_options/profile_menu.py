"""The menu of a model's profiles: use, save under a name, delete, export and import."""

from pathlib import Path

from PySide6.QtGui import QAction
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QVBoxLayout, QWidget

from qwendesk.core.translation import tr
from qwendesk.engines.pending_load import PendingLoadService
from qwendesk.engines.pending_state import PendingLoad
from qwendesk.widgets.buttons import ChevronButton, TextButton, describe
from qwendesk.widgets.file_dialogs import ask_for_file, ask_where_to_save
from qwendesk.widgets.popups import Menu
from qwendesk.widgets.tasks import window_tasks


class ProfileMenu(QWidget):
    """A button with a menu. A text field appears when the user has to enter a name."""

    def __init__(self, service: PendingLoadService) -> None:
        super().__init__()
        self._service, self._tasks = service, window_tasks()
        self._names: tuple[str, ...] | None = None
        self._button = ChevronButton(tr("Profiles"), kind="quiet")
        describe(
            self._button, "inspector.profiles", tr("Profiles"),
            tr("Your changes are saved for this model. Save them under a name, or share them as a file."),
        )  # fmt: skip
        self._menu = Menu(self)
        self._button.setMenu(self._menu)
        self._name = QLineEdit()
        self._name.setPlaceholderText(tr("Name of the profile"))
        describe(self._name, "inspector.profiles.name", tr("Name of the profile"), tr("Enter saves it"))
        self._name.returnPressed.connect(self._save)
        self._save_button = TextButton(tr("Save"))
        describe(self._save_button, "inspector.profiles.save", tr("Save"), tr("Save the profile under this name"))
        self._save_button.clicked.connect(self._save)
        self._naming = QWidget()
        row = QHBoxLayout(self._naming)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self._name, 1)
        row.addWidget(self._save_button)
        self._naming.hide()
        head = QHBoxLayout()
        head.addWidget(self._button)
        head.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addLayout(head)
        column.addWidget(self._naming)

    def show_pending(self, pending: PendingLoad) -> None:
        if pending.profiles != self._names:
            self._names = pending.profiles
            self._fill(pending.profiles)

    def _fill(self, names: tuple[str, ...]) -> None:
        menu, service = self._menu, self._service
        menu.clear()
        for name in names:
            self._action(name, f"use.{name}").triggered.connect(lambda _c=False, name=name: service.use(name))
        if names:
            menu.addSeparator()
        self._action(tr("Save as…"), "saveas").triggered.connect(self._begin_naming)
        for name in names:
            action = self._action(tr("Delete {0}", name), f"delete.{name}")
            action.triggered.connect(lambda _c=False, name=name: service.delete(name))
        menu.addSeparator()
        self._action(tr("Export to a file…"), "export").triggered.connect(self._export)
        self._action(tr("Import a file…"), "import").triggered.connect(self._import)

    def _action(self, text: str, name: str) -> QAction:
        action = self._menu.addAction(text)
        action.setObjectName(f"inspector.profiles.{name}")
        return action

    def _begin_naming(self) -> None:
        self._naming.show()
        self._name.setFocus()

    def _save(self) -> None:
        self._service.save_as(self._name.text())
        if not self._service.pending.problem:
            self._name.clear()
            self._naming.hide()

    def _export(self) -> None:
        def export(file: str) -> None:
            self._tasks.start(self._service.export(Path(file)))

        title = tr("Export the profile")
        ask_where_to_save(self, "inspector.profiles.export_dialog", title, "profile.json", export)

    def _import(self) -> None:
        def import_from(file: str) -> None:
            self._tasks.start(self._service.import_file(Path(file)))

        filters = [tr("Profiles (*.json)"), tr("All files (*)")]
        ask_for_file(self, "inspector.profiles.import_dialog", tr("Import a profile"), filters, import_from)
