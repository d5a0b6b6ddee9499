"""The menu of sampling presets: use, save under a name, rename, delete, export and import."""

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QLineEdit, QVBoxLayout, QWidget

from qwendesk.chat.chat_settings import is_preset_changed
from qwendesk.chat.presets import PresetsService, PresetsState
from qwendesk.chat.service import ChatService
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.presets import Style
from qwendesk.core.translation import tr, tr_n
from qwendesk.widgets.bind import bind, bind_field
from qwendesk.widgets.buttons import ChevronButton, TextButton, describe, restyle
from qwendesk.widgets.file_dialogs import ask_for_file, ask_where_to_save
from qwendesk.widgets.popups import Menu
from qwendesk.widgets.theme_keeper import current_theme

_NAME = "inspector.presets"
# Maximum width of a name on the button in logical pixels; a longer one is elided.
_MAX_NAME_WIDTH = 170


class PresetMenu(QWidget):
    """A button with the menu, a name field that appears when it is needed, and a line for messages."""

    def __init__(self, presets: PresetsService, chat: ChatService) -> None:
        super().__init__()
        self._presets, self._chat = presets, chat
        self._renamed = ""
        """Name of the preset to rename with the name field; "" to save a new one."""
        self._message, self._is_error = "", False
        self._button = ChevronButton()
        describe(self._button, _NAME, tr("My presets"), tr("Sampling values you saved under a name"))
        self._menu = Menu(self)
        # Created only once, because clearing a menu doesn't delete its submenus.
        self._rename_menu, self._delete_menu = Menu(self._menu, tr("Rename")), Menu(self._menu, tr("Delete"))
        self._button.setMenu(self._menu)
        head = QHBoxLayout()
        head.addWidget(self._button)
        head.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 4)
        column.setSpacing(4)
        column.addLayout(head)
        column.addWidget(self._naming_row())
        column.addWidget(self._note_row())
        bind(self, presets.state, self._on_presets)
        bind_field(self, chat.state, lambda state: state.settings, self.show_presets)
        bind_field(self, chat.state, lambda state: state.chat_id, self._on_chat_opened)

    def _on_presets(self, state: PresetsState) -> None:
        if state.problem:
            self._message, self._is_error = state.problem, True
        self.show_presets()

    def show_presets(self, _changed: object = None) -> None:
        settings = self._chat.settings
        name, is_changed = settings.preset_name, is_preset_changed(settings)
        shown = tr("{0}, changed", name) if name and is_changed else name
        widest = current_theme().px(_MAX_NAME_WIDTH)
        elided = self.fontMetrics().elidedText(name or tr("My presets"), Qt.TextElideMode.ElideRight, widest)
        elided = elided.replace("&", "&&")
        self._button.setText(tr("{0}, changed", elided) if name and is_changed else elided)
        self._button.setAccessibleName(tr("My presets: {0}", shown) if name else tr("My presets"))
        self._note.setVisible(bool(self._message))
        self._note_text.setText(self._message)
        restyle(self._note_text, "kind", "error" if self._is_error else "small")
        self._undo.setVisible(self._presets.state.value.can_undo and bool(self._message) and not self._is_error)
        self._fill(name, is_changed=is_changed)

    def begin_naming(self, name: str = "") -> None:
        """Ask for the name of a new preset, or for a new name of the preset `name`."""
        self._renamed = name
        self._name.setText(name)
        self._save.setText(tr("Rename") if name else tr("Save"))
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

    def _naming_row(self) -> QWidget:
        self._name = QLineEdit()
        self._name.setPlaceholderText(tr("Preset name"))
        describe(self._name, f"{_NAME}.name", tr("Preset name"), tr("Enter saves it, Esc cancels"))
        self._name.returnPressed.connect(self._take_name)
        self._save = TextButton(tr("Save"))
        describe(self._save, f"{_NAME}.save", tr("Save"), tr("Save the current values under this name"))
        self._save.clicked.connect(self._take_name)
        self._naming = QWidget()
        row = QHBoxLayout(self._naming)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self._name, 1)
        row.addWidget(self._save)
        self._naming.hide()
        return self._naming

    def _note_row(self) -> QWidget:
        self._note_text = QLabel()
        self._note_text.setObjectName(f"{_NAME}.words")
        self._note_text.setTextFormat(Qt.TextFormat.PlainText)
        self._note_text.setWordWrap(True)
        self._undo = TextButton(tr("Undo"), kind="link")
        describe(self._undo, f"{_NAME}.undo", tr("Undo"), tr("Restore the preset"))
        self._undo.clicked.connect(lambda: self._run(self._presets.undo))
        self._note = QFrame()
        row = QHBoxLayout(self._note)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(self._note_text, 1)
        row.addWidget(self._undo)
        return self._note

    def _fill(self, chosen: str, *, is_changed: bool) -> None:
        menu, names = self._menu, self._presets.state.value.names
        for each in (menu, self._rename_menu, self._delete_menu):
            each.clear()
        for name in names:
            action = self._action(menu, name, f"use.{name}")
            action.setCheckable(True)
            action.setChecked(name == chosen and not is_changed)
            action.triggered.connect(lambda _c=False, name=name: self._run(lambda: self._presets.use(name)))
            action = self._action(self._rename_menu, name, f"rename.{name}")
            action.triggered.connect(lambda _c=False, name=name: self.begin_naming(name))
            action = self._action(self._delete_menu, name, f"delete.{name}")
            action.triggered.connect(lambda _c=False, name=name: self._delete(name))
        if names:
            menu.addSeparator()
        self._fill_built_in(menu)
        menu.addSeparator()
        self._action(menu, tr("Save as a preset…"), "keep").triggered.connect(lambda _c=False: self.begin_naming())
        if chosen in names:
            update = self._action(menu, tr("Update {0}", chosen), "update")
            update.setEnabled(is_changed)
            update.triggered.connect(lambda _c=False: self._save_preset(chosen))
        if names:
            menu.addMenu(self._rename_menu)
            menu.addMenu(self._delete_menu)
        menu.addSeparator()
        export = self._action(menu, tr("Export all…"), "export")
        export.setEnabled(bool(names))
        export.triggered.connect(self._export)
        self._action(menu, tr("Import…"), "import").triggered.connect(self._import)

    def _fill_built_in(self, menu: Menu) -> None:
        """Add the four presets of the model card, each with or without thinking."""
        entries: tuple[tuple[Style, bool, str], ...] = (
            ("general", True, tr("General, thinking")),
            ("precise", True, tr("Coding, thinking")),
            ("general", False, tr("General, without thinking")),
            ("precise", False, tr("Reasoning, without thinking")),
        )
        chat, settings = self._chat, self._chat.settings
        for style, thinking, text in entries:
            action = self._action(menu, text, f"card.{style}.{'thinking' if thinking else 'instruct'}")
            action.setCheckable(True)
            is_it = not settings.preset_name and chat.style == style and chat.thinking == thinking
            action.setChecked(is_it and not is_preset_changed(settings))
            action.triggered.connect(
                lambda _c=False, style=style, thinking=thinking: self._use_built_in(style, thinking=thinking)
            )

    def _action(self, menu: Menu, text: str, name: str) -> QAction:
        action = menu.addAction(text.replace("&", "&&"))
        action.setObjectName(f"{_NAME}.{name}")
        return action

    def _take_name(self) -> None:
        name = self._name.text()
        is_done = (
            self._run(lambda: self._presets.rename(self._renamed, name)) if self._renamed else self._save_preset(name)
        )
        if is_done:
            self._end_naming()
            self._button.setFocus()

    def _on_chat_opened(self, _chat_id: str) -> None:
        self._end_naming()
        problem = self._presets.state.value.problem
        self._show_message(problem, is_error=bool(problem))

    def _save_preset(self, name: str) -> bool:
        return self._run(lambda: self._presets.save(name), tr("Saved as “{0}”.", " ".join(name.split())))

    def _delete(self, name: str) -> None:
        self._run(lambda: self._presets.delete(name), tr("Deleted “{0}”. This chat keeps its values.", name))

    def _use_built_in(self, style: Style, *, thinking: bool) -> None:
        self._run(lambda: self._presets.use_built_in(style, thinking=thinking))

    def _run(self, action: Callable[[], None], message: str = "") -> bool:
        """Perform `action`. Show `message` and return True if it succeeded; else show why it failed."""
        try:
            action()
        except QwenDeskError as error:
            self._show_message(error.sentence, is_error=True)
            return False
        self._show_message(message)
        return True

    def _show_message(self, message: str, *, is_error: bool = False) -> None:
        self._message, self._is_error = message, is_error
        self.show_presets()

    def _end_naming(self) -> None:
        self._name.clear()
        self._naming.hide()

    def _export(self) -> None:
        title = tr("Export presets")
        ask_where_to_save(self, f"{_NAME}.export_dialog", title, "presets.json", self._export_to)

    def _import(self) -> None:
        filters = [tr("Presets (*.json)"), tr("All files (*)")]
        ask_for_file(self, f"{_NAME}.import_dialog", tr("Import presets"), filters, self._import_from)

    def _export_to(self, file: str) -> None:
        self._run(lambda: self._presets.export(Path(file)), tr("Exported to {0}.", Path(file).name))

    def _import_from(self, file: str) -> None:
        try:
            added = self._presets.import_file(Path(file))
        except QwenDeskError as error:
            self._show_message(error.sentence, is_error=True)
        else:
            self._show_message(tr_n("{0} preset added.", "{0} presets added.", added))
