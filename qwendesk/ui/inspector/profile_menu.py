"""The profiles of one model: choose, save under a name, delete, export, import."""

from PySide6.QtGui import QAction
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QLineEdit, QMenu, QVBoxLayout, QWidget

from qwendesk.services.engine.draft import Draft
from qwendesk.ui.bridges.draft import DraftBridge
from qwendesk.ui.kit.buttons import TextButton, describe
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper

_SUFFIX = "json"


class ProfileMenu(QWidget):
    """A button with a menu; a field for a name appears when one is needed."""

    def __init__(self, keeper: ThemeKeeper, bridge: DraftBridge) -> None:
        super().__init__()
        self._bridge = bridge
        self._names: tuple[str, ...] | None = None
        self._button = TextButton(keeper, tr("Profiles") + " ▾", kind="quiet")
        describe(
            self._button, "inspector.profiles", tr("Profiles"),
            tr("What you change is kept for this model; here it gets names, and travels as a file"),
        )  # fmt: skip
        self._menu = QMenu(self)
        self._button.setMenu(self._menu)
        self._name = QLineEdit()
        self._name.setPlaceholderText(tr("Name of the profile"))
        describe(self._name, "inspector.profiles.name", tr("Name of the profile"), tr("Enter saves it"))
        self._name.returnPressed.connect(self._save)
        self._save_button = TextButton(keeper, tr("Save"))
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

    def show_draft(self, draft: Draft) -> None:
        if draft.profiles != self._names:
            self._names = draft.profiles
            self._fill(draft.profiles)

    def _fill(self, names: tuple[str, ...]) -> None:
        menu, bridge = self._menu, self._bridge
        menu.clear()
        for name in names:
            self._action(name, f"use.{name}").triggered.connect(lambda _c=False, name=name: bridge.use(name))
        if names:
            menu.addSeparator()
        self._action(tr("Save under a name…"), "saveas").triggered.connect(self._begin_naming)
        for name in names:
            action = self._action(tr("Delete {0}", name), f"delete.{name}")
            action.triggered.connect(lambda _c=False, name=name: bridge.delete(name))
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
        self._bridge.save_as(self._name.text())
        if not self._bridge.draft.problem:
            self._name.clear()
            self._naming.hide()

    def _export(self) -> None:
        dialog = QFileDialog(self, tr("Export the profile"))
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setDefaultSuffix(_SUFFIX)
        dialog.selectFile(f"profile.{_SUFFIX}")
        dialog.fileSelected.connect(self._bridge.export)
        self._open(dialog)

    def _import(self) -> None:
        dialog = QFileDialog(self, tr("Import a profile"))
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.setNameFilters([tr("Profiles (*.json)"), tr("All files (*)")])
        dialog.fileSelected.connect(self._bridge.take_in)
        self._open(dialog)

    def _open(self, dialog: QFileDialog) -> None:
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()
