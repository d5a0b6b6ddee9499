"""What one chat is told first: its system prompt, with a library of kept ones, and the JSON schema of its answers."""

import msgspec
from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QComboBox, QFrame, QHBoxLayout, QLabel, QLineEdit, QPlainTextEdit, QVBoxLayout

from qwendesk.core.errors import QwenDeskError
from qwendesk.services.chat.library import PromptLibrary
from qwendesk.ui.bridges.chat import ChatBridge
from qwendesk.ui.kit.buttons import TextButton, describe
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper


class SystemPart(QFrame):
    """Shows the open chat's own settings; `applied` when they were taken over."""

    applied = Signal()

    def __init__(self, keeper: ThemeKeeper, chat: ChatBridge, library: PromptLibrary) -> None:
        super().__init__()
        self._chat, self._library = chat, library
        self._preset = ""
        self.setObjectName("inspector.system")
        self._kept = QComboBox()
        describe(self._kept, "inspector.system.kept", tr("Kept prompts"), tr("Take a kept prompt into this chat"))
        self._text = self._field("text", tr("System prompt"))
        self._text.setPlaceholderText(
            tr("What the model should know or be in this chat. {date} and {model} are filled in.")
        )
        self._schema = self._field("schema", tr("JSON schema"))
        self._schema.setFixedHeight(96)
        self._schema.setPlaceholderText('{"type": "object", "properties": {}}')
        self._schema.document().setDefaultFont(keeper.theme.mono_font(12))
        self._name = QLineEdit()
        self._name.setPlaceholderText(tr("Name"))
        describe(self._name, "inspector.system.name", tr("Name"), tr("Name under which this prompt is kept"))
        self._complaint = QLabel()
        self._complaint.setProperty("kind", "error")
        self._complaint.setObjectName("inspector.system.complaint")
        self._complaint.setWordWrap(True)
        self._complaint.hide()
        self._used = _caption(tr("Used from the next question on."), "good")
        self._used.setObjectName("inspector.system.used")
        self._used.hide()
        keep = self._button(keeper, "keep", tr("Keep"), tr("Keep this prompt in your library"))
        keep.clicked.connect(self._keep)
        self._forget = self._button(keeper, "forget", tr("Delete"), tr("Delete this prompt from your library"))
        self._forget.clicked.connect(self._delete)
        apply = TextButton(keeper, tr("Use in this chat"), kind="primary")
        describe(apply, "inspector.system.apply", tr("Use in this chat"), tr("From the next question on"))
        apply.clicked.connect(self._apply)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 14, 16, 14)
        column.setSpacing(8)
        column.addWidget(_caption(tr("System prompt"), "heading"))
        column.addWidget(self._kept)
        column.addWidget(self._text, 1)
        row = QHBoxLayout()
        row.addWidget(self._name, 1)
        row.addWidget(keep)
        row.addWidget(self._forget)
        row.setSpacing(4)
        column.addLayout(row)
        column.addWidget(_caption(tr("Answers as JSON, by this schema"), "small"))
        column.addWidget(self._schema)
        column.addWidget(self._complaint)
        column.addWidget(self._used)
        column.addWidget(apply, 0, Qt.AlignmentFlag.AlignRight)
        self._list()
        self._kept.activated.connect(self._take)
        self.show_settings()
        chat.options_changed.connect(self.show_settings)

    def show_settings(self) -> None:
        """What the open chat has now; what was typed and not used goes."""
        settings = self._chat.settings
        for field, text in ((self._text, settings.system_prompt), (self._schema, settings.json_schema)):
            if field.toPlainText() != text:
                field.setPlainText(text)
        self._preset = settings.preset
        self._say("")

    def _field(self, name: str, label: str) -> QPlainTextEdit:
        field = QPlainTextEdit()
        field.setProperty("kind", "details")
        field.setTabChangesFocus(True)
        describe(field, f"inspector.system.{name}", label)
        return field

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
        self._show_forget()

    def _show_forget(self) -> None:
        prompt = self._kept.currentData()
        self._forget.setEnabled(prompt is not None and not prompt.built_in)

    def _take(self) -> None:
        self._show_forget()
        prompt = self._kept.currentData()
        if prompt is not None:
            self._text.setPlainText(prompt.text)
            self._name.setText("" if prompt.built_in else prompt.name)
            self._preset = prompt.preset or self._preset

    def _keep(self) -> None:
        name = " ".join(self._name.text().split())
        try:
            self._library.add(name, self._text.toPlainText(), self._preset)
        except QwenDeskError as error:
            self._say(error.sentence)
            return
        self._list(name)
        self._say("")

    def _delete(self) -> None:
        try:
            self._library.delete(self._kept.currentData().name)
        except QwenDeskError as error:
            self._say(error.sentence)
        self._list()

    def _apply(self) -> None:
        settings = msgspec.structs.replace(
            self._chat.settings,
            system_prompt=self._text.toPlainText().strip(),
            json_schema=self._schema.toPlainText().strip(),
            preset=self._preset,
        )
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
