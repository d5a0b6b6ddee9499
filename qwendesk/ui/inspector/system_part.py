"""What one chat is told first: its system prompt, with a library of kept ones, and the JSON schema of its answers."""

from collections.abc import Callable

import msgspec
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QLineEdit, QPlainTextEdit, QVBoxLayout

from qwendesk.core.chats import ChatSettings
from qwendesk.core.errors import QwenDeskError
from qwendesk.services.chat.library import PromptLibrary, SavedPrompt
from qwendesk.ui.bridges.chat import ChatBridge
from qwendesk.ui.kit.buttons import TextButton, describe
from qwendesk.ui.kit.choosing import ChoiceBox
from qwendesk.ui.kit.direction import follow_letters
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper

_STYLES = ("general", "precise")
"""Styles that may go with a kept prompt; values set by hand are the chat's."""


class SystemPart(QFrame):
    """Shows the open chat's own settings; `applied` when they were taken over."""

    applied = Signal()

    def __init__(self, keeper: ThemeKeeper, chat: ChatBridge, library: PromptLibrary) -> None:
        super().__init__()
        self._chat, self._library = chat, library
        self._preset = ""
        self._shown = ChatSettings()
        """The chat's settings when they were shown last."""
        self._gone: SavedPrompt | None = None
        """What was deleted or written over last."""
        self.setObjectName("inspector.system")
        self._kept = ChoiceBox(keeper)
        describe(self._kept, "inspector.system.kept", tr("Kept prompts"), tr("Take a kept prompt into this chat"))
        self._kept.setToolTip(tr("Take a kept prompt into this chat; F2 renames it"))
        self._text = self._field("text", tr("System prompt"))
        self._text.setPlaceholderText(
            tr("What the model should know or be in this chat. {date} and {model} are filled in.")
        )
        self._schema = self._field("schema", tr("JSON schema"))
        self._schema.setFixedHeight(96)
        self._schema.setPlaceholderText('{"type": "object", "properties": {}}')
        self._schema.document().setDefaultFont(keeper.theme.mono_font(12))
        self._complaint = QLabel()
        self._complaint.setProperty("kind", "error")
        self._complaint.setObjectName("inspector.system.complaint")
        self._complaint.setWordWrap(True)
        self._complaint.hide()
        self._used = _caption(tr("Used from the next question on."), "good")
        self._used.setObjectName("inspector.system.used")
        self._used.hide()
        apply = TextButton(keeper, tr("Use in this chat"), kind="primary")
        describe(apply, "inspector.system.apply", tr("Use in this chat"), tr("From the next question on"))
        apply.clicked.connect(self._apply)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 14, 16, 14)
        column.setSpacing(8)
        column.addWidget(_caption(tr("System prompt"), "heading"))
        column.addWidget(self._kept)
        column.addWidget(self._text, 1)
        column.addLayout(self._name_row(keeper))
        column.addLayout(self._library_row(keeper))
        column.addWidget(_caption(tr("Answers as JSON, by this schema"), "small"))
        column.addWidget(self._schema)
        column.addWidget(self._complaint)
        column.addWidget(self._used)
        column.addWidget(apply, 0, Qt.AlignmentFlag.AlignRight)
        self._list()
        self._kept.activated.connect(self._take)
        self.show_settings()
        chat.options_changed.connect(self.show_settings)
        chat.replaced.connect(self._on_replaced)

    def show_settings(self) -> None:
        """What the open chat has now; what is typed and not used stays while other options change."""
        before, settings = self._shown, self._chat.settings
        self._shown = settings
        if settings.system_prompt != before.system_prompt:
            self._text.setPlainText(settings.system_prompt)
        if settings.json_schema != before.json_schema:
            self._schema.setPlainText(settings.json_schema)
        if settings.preset != before.preset:
            self._preset = settings.preset
        self._say(self._library.problem)

    def _on_replaced(self) -> None:
        """What was typed for the chat before is not for this one."""
        self._shown = settings = self._chat.settings
        self._text.setPlainText(settings.system_prompt)
        self._schema.setPlainText(settings.json_schema)
        self._preset = settings.preset

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_F2:
            self._begin_rename()
        else:
            super().keyPressEvent(event)

    def _field(self, name: str, label: str) -> QPlainTextEdit:
        field = QPlainTextEdit()
        field.setProperty("kind", "details")
        field.setTabChangesFocus(True)
        follow_letters(field)
        describe(field, f"inspector.system.{name}", label)
        return field

    def _name_row(self, keeper: ThemeKeeper) -> QHBoxLayout:
        """The prompt is kept under this name."""
        self._name = QLineEdit()
        self._name.setPlaceholderText(tr("Name"))
        describe(self._name, "inspector.system.name", tr("Name"), tr("Name under which this prompt is kept"))
        self._name.textChanged.connect(self._show_buttons)
        self._name.returnPressed.connect(self._on_name_entered)
        keep = self._button(keeper, "keep", tr("Keep"), tr("Keep this prompt in your library"))
        keep.clicked.connect(self._keep)
        row = QHBoxLayout()
        row.setSpacing(4)
        row.addWidget(self._name, 1)
        row.addWidget(keep)
        return row

    def _library_row(self, keeper: ThemeKeeper) -> QHBoxLayout:
        """What can be done with the kept prompt that is chosen."""
        rename = self._button(keeper, "rename", tr("Rename"), tr("Give the kept prompt the name in the field"))
        rename.clicked.connect(self._begin_rename)
        forget = self._button(keeper, "forget", tr("Delete"), tr("Delete this prompt from your library"))
        forget.clicked.connect(self._delete)
        self._undo = TextButton(keeper, tr("Undo"), kind="link")
        describe(self._undo, "inspector.system.undo", tr("Undo"), tr("Bring back the prompt that was there before"))
        self._undo.clicked.connect(self._bring_back)
        self._undo.hide()
        self._rename_button, self._forget = rename, forget
        row = QHBoxLayout()
        row.setSpacing(4)
        row.addWidget(rename)
        row.addWidget(forget)
        row.addStretch(1)
        row.addWidget(self._undo)
        return row

    def _button(self, keeper: ThemeKeeper, name: str, text: str, tip: str) -> TextButton:
        button = TextButton(keeper, text, kind="quiet")
        describe(button, f"inspector.system.{name}", text, tip)
        return button

    def _list(self, name: str = "") -> None:
        self._kept.clear()
        self._kept.addItem(tr("Kept prompts…"))
        for prompt in self._library.prompts:
            self._kept.addItem(tr("{0} (comes with QwenDesk)", prompt.name) if prompt.built_in else prompt.name, prompt)
        found = next((i for i, prompt in enumerate(self._library.prompts, 1) if prompt.name == name), 0)
        self._kept.setCurrentIndex(found)
        self._show_buttons()

    @property
    def _own(self) -> SavedPrompt | None:
        """The prompt that is chosen in the list, if it is the person's own."""
        prompt: SavedPrompt | None = self._kept.currentData()
        return prompt if prompt is not None and not prompt.built_in else None

    def _show_buttons(self) -> None:
        self._forget.setEnabled(self._own is not None)
        self._rename_button.setEnabled(self._own is not None)

    def _take(self) -> None:
        self._show_buttons()
        prompt = self._kept.currentData()
        if prompt is not None:
            self._text.setPlainText(prompt.text)
            self._name.setText("" if prompt.built_in else prompt.name)
            self._preset = prompt.preset if prompt.preset in _STYLES else self._preset

    def _on_name_entered(self) -> None:
        if self._own is not None and self._typed_name() != self._own.name:
            self._begin_rename()
        else:
            self._keep()

    def _begin_rename(self) -> None:
        """By the name in the field; while that is still the old one, the field waits for another."""
        own, name = self._own, self._typed_name()
        if own is None:
            return
        if name in ("", own.name):
            self._name.setText(own.name)
            self._name.setFocus()
            self._name.selectAll()
        elif self._change(lambda: self._library.rename(own.name, name)):
            self._list(name)
            self._kept.setFocus()

    def _keep(self) -> None:
        name = self._typed_name()
        style = self._preset if self._preset in _STYLES else ""
        before = next((each for each in self._library.prompts if each.name == name and not each.built_in), None)
        if self._change(lambda: self._library.add(name, self._text.toPlainText(), style)):
            is_other = before is not None and before.text != self._text.toPlainText().strip()
            self._offer_undo(before if is_other else None)
            self._list(name)

    def _delete(self) -> None:
        own = self._own
        if own is not None and self._change(lambda: self._library.delete(own.name)):
            self._offer_undo(own)
        self._list()

    def _bring_back(self) -> None:
        gone, self._gone = self._gone, None
        self._undo.hide()
        if gone is not None and self._change(lambda: self._library.add(gone.name, gone.text, gone.preset)):
            self._list(gone.name)
            self._take()

    def _offer_undo(self, gone: SavedPrompt | None) -> None:
        self._gone = gone
        self._undo.setVisible(gone is not None)

    def _typed_name(self) -> str:
        return " ".join(self._name.text().split())

    def _change(self, intent: Callable[[], None]) -> bool:
        """Whether the library took it; a sentence says why not."""
        try:
            intent()
        except QwenDeskError as error:
            self._say(error.sentence)
            return False
        self._say("")
        return True

    def _apply(self) -> None:
        settings = msgspec.structs.replace(
            self._chat.settings,
            system_prompt=self._text.toPlainText().strip(),
            json_schema=self._schema.toPlainText().strip(),
            preset=self._preset,
        )
        if self._preset != self._chat.settings.preset:
            settings = msgspec.structs.replace(settings, preset_name="", preset_values={})
        try:
            self._chat.change_settings(settings)
        except QwenDeskError as error:
            self._say(error.sentence)
            return
        self._say("")
        self._used.setVisible(True)
        self.applied.emit()

    def _say(self, sentence: str) -> None:
        self._used.hide()
        self._complaint.setText(sentence)
        self._complaint.setVisible(bool(sentence))


def _caption(text: str, kind: str) -> QLabel:
    label = QLabel(text)
    label.setProperty("kind", kind)
    return label
