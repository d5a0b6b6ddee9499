"""The person's own sampling presets: choose, keep under a name, rename, delete, export, import."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QKeyEvent
from PySide6.QtWidgets import QFileDialog, QFrame, QHBoxLayout, QLabel, QLineEdit, QMenu, QVBoxLayout, QWidget

from qwendesk.core.presets import Style
from qwendesk.ui.bridges.chat import ChatBridge
from qwendesk.ui.bridges.presets import PresetsBridge
from qwendesk.ui.kit.buttons import TextButton, describe, restyle
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper

_NAME = "inspector.presets"
_WIDEST = 170
"""Logical pixels for a name on the button; a longer one is cut."""


class PresetMenu(QWidget):
    """A button with a menu; a field for a name appears when one is needed, and a line that says what was done."""

    def __init__(self, keeper: ThemeKeeper, presets: PresetsBridge, chat: ChatBridge) -> None:
        super().__init__()
        self._presets, self._chat = presets, chat
        self._renamed = ""
        self._keeper = keeper
        self._button = TextButton(keeper)
        describe(self._button, _NAME, tr("My presets"), tr("Sampling values under names of your own"))
        self._menu = QMenu(self)
        # Made once: clearing a menu does not end the menus in it.
        self._rename_menu, self._delete_menu = QMenu(tr("Rename"), self._menu), QMenu(tr("Delete"), self._menu)
        self._button.setMenu(self._menu)
        head = QHBoxLayout()
        head.addWidget(self._button)
        head.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 4)
        column.setSpacing(4)
        column.addLayout(head)
        column.addWidget(self._naming_row(keeper))
        column.addWidget(self._note_row(keeper))
        presets.changed.connect(self.show_presets)
        chat.options_changed.connect(self.show_presets)
        chat.replaced.connect(self._on_replaced)
        self.show_presets()

    def show_presets(self) -> None:
        name, is_changed = self._chat.preset_name, self._chat.is_preset_changed
        shown = tr("{0}, changed", name) if name and is_changed else name
        widest = self._keeper.theme.px(_WIDEST)
        elided = self.fontMetrics().elidedText(name or tr("My presets"), Qt.TextElideMode.ElideRight, widest)
        elided = elided.replace("&", "&&")
        self._button.setText((tr("{0}, changed", elided) if name and is_changed else elided) + " ▾")
        self._button.setAccessibleName(tr("My presets: {0}", shown) if name else tr("My presets"))
        self._note.setVisible(bool(self._presets.words))
        self._words.setText(self._presets.words)
        restyle(self._words, "kind", "error" if self._presets.is_bad else "small")
        self._undo.setVisible(self._presets.can_undo)
        self._fill(name, is_changed=is_changed)

    def begin_naming(self, name: str = "") -> None:
        """Ask for the name of a new preset, or for another one of `name`."""
        self._renamed = name
        self._name.setText(name)
        self._save.setText(tr("Rename") if name else tr("Keep"))
        self._save.setAccessibleName(self._save.text())
        self._naming.show()
        self._name.setFocus()
        self._name.selectAll()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and self._naming.isVisible():
            self._end_naming()
            self._button.setFocus()
        else:
            super().keyPressEvent(event)

    def _naming_row(self, keeper: ThemeKeeper) -> QWidget:
        self._name = QLineEdit()
        self._name.setPlaceholderText(tr("Name of the preset"))
        describe(self._name, f"{_NAME}.name", tr("Name of the preset"), tr("Enter keeps it, Esc does not"))
        self._name.returnPressed.connect(self._take_name)
        self._save = TextButton(keeper, tr("Keep"))
        describe(self._save, f"{_NAME}.save", tr("Keep"), tr("Under this name"))
        self._save.clicked.connect(self._take_name)
        self._naming = QWidget()
        row = QHBoxLayout(self._naming)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self._name, 1)
        row.addWidget(self._save)
        self._naming.hide()
        return self._naming

    def _note_row(self, keeper: ThemeKeeper) -> QWidget:
        self._words = QLabel()
        self._words.setObjectName(f"{_NAME}.words")
        self._words.setTextFormat(Qt.TextFormat.PlainText)
        self._words.setWordWrap(True)
        self._undo = TextButton(keeper, tr("Undo"), kind="link")
        describe(self._undo, f"{_NAME}.undo", tr("Undo"), tr("Bring back what was there before"))
        self._undo.clicked.connect(self._presets.undo)
        self._note = QFrame()
        row = QHBoxLayout(self._note)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self._words, 1)
        row.addWidget(self._undo)
        return self._note

    def _fill(self, chosen: str, *, is_changed: bool) -> None:
        menu, presets, names = self._menu, self._presets, self._presets.names
        for each in (menu, self._rename_menu, self._delete_menu):
            each.clear()
        for name in names:
            action = self._action(menu, name, f"use.{name}")
            action.setCheckable(True)
            action.setChecked(name == chosen and not is_changed)
            action.triggered.connect(lambda _c=False, name=name: presets.use(name))
            action = self._action(self._rename_menu, name, f"rename.{name}")
            action.triggered.connect(lambda _c=False, name=name: self.begin_naming(name))
            action = self._action(self._delete_menu, name, f"delete.{name}")
            action.triggered.connect(lambda _c=False, name=name: presets.delete(name))
        if names:
            menu.addSeparator()
        self._fill_built_in(menu)
        menu.addSeparator()
        self._action(menu, tr("Keep these values…"), "keep").triggered.connect(lambda _c=False: self.begin_naming())
        if chosen in names:
            update = self._action(menu, tr("Update {0}", chosen), "update")
            update.setEnabled(is_changed)
            update.triggered.connect(lambda _c=False: presets.save(chosen))
        if names:
            menu.addMenu(self._rename_menu)
            menu.addMenu(self._delete_menu)
        menu.addSeparator()
        export = self._action(menu, tr("Export all to a file…"), "export")
        export.setEnabled(bool(names))
        export.triggered.connect(self._export)
        self._action(menu, tr("Import a file…"), "import").triggered.connect(self._import)

    def _fill_built_in(self, menu: QMenu) -> None:
        """The model card's four; each with thinking or without."""
        entries: tuple[tuple[Style, bool, str], ...] = (
            ("general", True, tr("General, thinking")),
            ("precise", True, tr("Coding, thinking")),
            ("general", False, tr("General, without thinking")),
            ("precise", False, tr("Reasoning, without thinking")),
        )
        chat = self._chat
        for style, thinking, text in entries:
            action = self._action(menu, text, f"card.{style}.{'thinking' if thinking else 'instruct'}")
            action.setCheckable(True)
            is_it = not chat.preset_name and chat.style == style and chat.thinking == thinking
            action.setChecked(is_it and not chat.is_preset_changed)
            action.triggered.connect(
                lambda _c=False, style=style, thinking=thinking: self._presets.use_built_in(style, thinking=thinking)
            )

    def _action(self, menu: QMenu, text: str, name: str) -> QAction:
        action = menu.addAction(text.replace("&", "&&"))
        action.setObjectName(f"{_NAME}.{name}")
        return action

    def _take_name(self) -> None:
        name = self._name.text()
        done = self._presets.rename(self._renamed, name) if self._renamed else self._presets.save(name)
        if done:
            self._end_naming()
            self._button.setFocus()

    def _on_replaced(self) -> None:
        self._end_naming()
        self._presets.hush()

    def _end_naming(self) -> None:
        self._name.clear()
        self._naming.hide()

    def _export(self) -> None:
        dialog = QFileDialog(self, tr("Export the presets"))
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setDefaultSuffix("json")
        dialog.selectFile("presets.json")
        dialog.fileSelected.connect(self._presets.export)
        self._open(dialog)

    def _import(self) -> None:
        dialog = QFileDialog(self, tr("Import presets"))
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.setNameFilters([tr("Presets (*.json)"), tr("All files (*)")])
        dialog.fileSelected.connect(self._presets.take_in)
        self._open(dialog)

    def _open(self, dialog: QFileDialog) -> None:
        dialog.finished.connect(dialog.deleteLater)
        dialog.open()
