"""The System prompt tab: the chat's system prompt, saved prompts, and the JSON schema of its answers."""

from collections.abc import Callable
from typing import TypeVar

import msgspec
from PySide6.QtCore import QEvent, QSignalBlocker, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QLineEdit, QPlainTextEdit, QVBoxLayout, QWidget

from qwendesk.chat.chat_settings import with_foreign_values
from qwendesk.chat.prompt_library import PromptLibrary, SavedPrompt
from qwendesk.chat.service import ChatService
from qwendesk.core.chats import ChatSettings
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.translation import tr
from qwendesk.widgets.bind import bind_field
from qwendesk.widgets.buttons import TextButton, describe
from qwendesk.widgets.controls import ComboBox
from qwendesk.widgets.layouts import panel_scroll_area
from qwendesk.widgets.rows.text_row import LimitedTextEdit
from qwendesk.widgets.text_layout import align_by_first_letter

# Styles that can be saved with a prompt.
_STYLES = ("general", "precise")
TextField = TypeVar("TextField", bound=QPlainTextEdit)


class SystemPromptTab(QFrame):
    """Edits the system prompt and the JSON schema of the open chat. Changes apply from the next message."""

    def __init__(self, chat: ChatService, library: PromptLibrary) -> None:
        super().__init__()
        self._chat, self._library = chat, library
        self._preset = ""
        self._shown = ChatSettings()
        """The chat's settings that were shown last."""
        self._removed: SavedPrompt | None = None
        """The saved prompt that was deleted or replaced last, for undo."""
        self.setObjectName("inspector.system")
        self._saved_prompts = ComboBox()
        describe(
            self._saved_prompts, "inspector.system.kept", tr("Saved prompts"), tr("Use a saved prompt in this chat")
        )
        self._saved_prompts.setToolTip(tr("Use a saved prompt in this chat; F2 renames it"))
        self._text = self._field("text", tr("System prompt"), QPlainTextEdit())
        self._text.setProperty("kind", "prompt")
        self._text.setPlaceholderText(tr("How the model should behave in this chat. {date} and {model} are filled in."))
        self._schema = self._field("schema", tr("JSON schema"), LimitedTextEdit())
        self._schema.setFixedHeight(96)
        self._schema.setPlaceholderText('{"type": "object", "properties": {}}')
        self._error = QLabel()
        self._error.setProperty("kind", "error")
        self._error.setObjectName("inspector.system.complaint")
        self._error.setWordWrap(True)
        self._error.hide()
        self._schema.paste_refused.connect(self._show_error)
        self._used_note = _caption(tr("Applies from your next message."), "small")
        self._used_note.setObjectName("inspector.system.used")
        self._text.textChanged.connect(self._on_edited)
        self._schema.textChanged.connect(self._on_edited)
        content = QWidget()
        column = QVBoxLayout(content)
        column.setContentsMargins(16, 14, 16, 14)
        column.setSpacing(8)
        column.addWidget(_caption(tr("System prompt"), "heading"))
        column.addWidget(self._saved_prompts)
        column.addWidget(self._text, 1)
        column.addLayout(self._name_row())
        column.addLayout(self._library_row())
        column.addWidget(_caption(tr("Structured output (JSON schema)"), "small"))
        column.addWidget(self._schema)
        column.addWidget(self._error)
        column.addWidget(self._used_note)
        around = QVBoxLayout(self)
        around.setContentsMargins(0, 0, 0, 0)
        around.addWidget(panel_scroll_area(content))
        self._fill_list()
        self._saved_prompts.activated.connect(self._load_selected)
        self._shown_chat = ""
        bind_field(self, library.state, lambda state: state.problem, self._show_error)
        bind_field(self, chat.state, lambda state: (state.chat_id, state.settings), self._show_settings)

    def _show_settings(self, shown: tuple[str, ChatSettings]) -> None:
        """Show the settings of the open chat. A schema with an error is kept until another chat is opened."""
        chat_id, settings = shown
        is_other_chat, before = chat_id != self._shown_chat, self._shown
        self._shown_chat, self._shown, self._preset = chat_id, settings, settings.preset
        if is_other_chat or settings.system_prompt != before.system_prompt:
            _show_text(self._text, settings.system_prompt)
        if is_other_chat or settings.json_schema != before.json_schema:
            _show_text(self._schema, settings.json_schema)
        if is_other_chat:
            self._show_error(self._library.state.value.problem)

    def event(self, event: QEvent) -> bool:
        """Keep F2 for the saved prompts while the focus is here: elsewhere it renames the chat."""
        if (
            isinstance(event, QKeyEvent)
            and event.type() is QEvent.Type.ShortcutOverride
            and event.key() == Qt.Key.Key_F2
        ):
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_F2:
            self._rename()
        else:
            super().keyPressEvent(event)

    def _field(self, name: str, label: str, field: TextField) -> TextField:
        field.setProperty("kind", "details")
        field.setTabChangesFocus(True)
        align_by_first_letter(field)
        describe(field, f"inspector.system.{name}", label)
        return field

    def _name_row(self) -> QHBoxLayout:
        """Return the row with the name field and the Save button."""
        self._name = QLineEdit()
        self._name.setPlaceholderText(tr("Name"))
        describe(self._name, "inspector.system.name", tr("Name"), tr("Name of the saved prompt"))
        self._name.textChanged.connect(self._show_buttons)
        self._name.returnPressed.connect(self._on_name_entered)
        save = self._button("keep", tr("Save"), tr("Save this prompt in your library"))
        save.clicked.connect(self._save)
        row = QHBoxLayout()
        row.setSpacing(4)
        row.addWidget(self._name, 1)
        row.addWidget(save)
        return row

    def _library_row(self) -> QHBoxLayout:
        """Return the row with the buttons for the saved prompt that is selected."""
        rename = self._button("rename", tr("Rename"), tr("Rename the saved prompt to the name in the field"))
        rename.clicked.connect(self._rename)
        delete = self._button("forget", tr("Delete"), tr("Delete this prompt from your library"))
        delete.clicked.connect(self._delete)
        self._undo = TextButton(tr("Undo"), kind="link")
        describe(self._undo, "inspector.system.undo", tr("Undo"), tr("Restore the previous prompt"))
        self._undo.clicked.connect(self._undo_removal)
        self._undo.hide()
        self._rename_button, self._delete_button = rename, delete
        row = QHBoxLayout()
        row.setSpacing(4)
        row.addWidget(rename)
        row.addWidget(delete)
        row.addStretch(1)
        row.addWidget(self._undo)
        return row

    def _button(self, name: str, text: str, tip: str) -> TextButton:
        button = TextButton(text, kind="quiet")
        describe(button, f"inspector.system.{name}", text, tip)
        return button

    def _fill_list(self, name: str = "") -> None:
        self._saved_prompts.clear()
        self._saved_prompts.addItem(tr("Saved prompts…"))
        for prompt in self._library.prompts:
            self._saved_prompts.addItem(tr("{0} (built-in)", prompt.name) if prompt.built_in else prompt.name, prompt)
        found = next((i for i, prompt in enumerate(self._library.prompts, 1) if prompt.name == name), 0)
        self._saved_prompts.setCurrentIndex(found)
        self._show_buttons()

    @property
    def _selected(self) -> SavedPrompt | None:
        """The selected prompt; None if it is built-in or none is selected."""
        prompt: SavedPrompt | None = self._saved_prompts.currentData()
        return prompt if prompt is not None and not prompt.built_in else None

    def _show_buttons(self) -> None:
        self._delete_button.setEnabled(self._selected is not None)
        self._rename_button.setEnabled(self._selected is not None)

    def _load_selected(self) -> None:
        self._show_buttons()
        prompt = self._saved_prompts.currentData()
        if prompt is not None:
            self._preset = prompt.preset if prompt.preset in _STYLES else self._preset
            self._name.setText("" if prompt.built_in else prompt.name)
            _show_text(self._text, prompt.text)
            self._on_edited()
            if prompt.is_foreign:
                self._chat.change_settings(with_foreign_values(self._chat.settings, ("system_prompt",)))

    def _on_name_entered(self) -> None:
        if self._selected is not None and self._typed_name() != self._selected.name:
            self._rename()
        else:
            self._save()

    def _rename(self) -> None:
        """Rename the selected prompt to the name in the field; focus the field if that is still the old name."""
        selected, name = self._selected, self._typed_name()
        if selected is None:
            return
        if name in ("", selected.name):
            self._name.setText(selected.name)
            self._name.setFocus()
            self._name.selectAll()
        elif self._try_change(lambda: self._library.rename(selected.name, name)):
            self._fill_list(name)
            self._saved_prompts.setFocus()

    def _save(self) -> None:
        name = self._typed_name()
        style = self._preset if self._preset in _STYLES else ""
        before = next((each for each in self._library.prompts if each.name == name and not each.built_in), None)
        is_foreign = self._chat.settings.is_imported or self._chat.settings.has_foreign_text
        if self._try_change(lambda: self._library.add(name, self._text.toPlainText(), style, is_foreign=is_foreign)):
            is_other = before is not None and before.text != self._text.toPlainText().strip()
            self._offer_undo(before if is_other else None)
            self._fill_list(name)

    def _delete(self) -> None:
        selected = self._selected
        if selected is not None and self._try_change(lambda: self._library.delete(selected.name)):
            self._offer_undo(selected)
        self._fill_list()

    def _undo_removal(self) -> None:
        removed, self._removed = self._removed, None
        self._undo.hide()
        if removed is not None and self._try_change(
            lambda: self._library.add(removed.name, removed.text, removed.preset, is_foreign=removed.is_foreign)
        ):
            self._fill_list(removed.name)
            self._load_selected()

    def _offer_undo(self, removed: SavedPrompt | None) -> None:
        self._removed = removed
        self._undo.setVisible(removed is not None)

    def _typed_name(self) -> str:
        return " ".join(self._name.text().split())

    def _try_change(self, action: Callable[[], None]) -> bool:
        """Perform `action`. Return True if the library accepted the change; else show why it didn't."""
        try:
            action()
        except QwenDeskError as error:
            self._show_error(error.sentence)
            return False
        self._show_error("")
        return True

    def _on_edited(self) -> None:
        """Change the settings of the chat. A schema with an error is not used, and the error is shown."""
        settings = msgspec.structs.replace(
            self._chat.settings, system_prompt=self._text.toPlainText().strip(), preset=self._preset
        )
        if self._preset != self._chat.settings.preset:
            settings = msgspec.structs.replace(settings, preset_name="", preset_values={})
        try:
            self._chat.change_settings(settings)
            self._chat.change_settings(
                msgspec.structs.replace(settings, json_schema=self._schema.toPlainText().strip())
            )
        except QwenDeskError as error:
            self._show_error(error.sentence)
            return
        self._show_error("")

    def _show_error(self, sentence: str) -> None:
        self._error.setText(sentence)
        self._error.setVisible(bool(sentence))
        self._used_note.setVisible(not sentence)


def _show_text(field: QPlainTextEdit, text: str) -> None:
    """Show a text that was not typed. A field that already has it keeps its cursor and the spaces around the text."""
    if field.toPlainText().strip() != text:
        with QSignalBlocker(field):
            field.setPlainText(text)


def _caption(text: str, kind: str) -> QLabel:
    label = QLabel(text)
    label.setProperty("kind", kind)
    return label
