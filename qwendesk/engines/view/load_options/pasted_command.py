"""Takes over a pasted command line of llama.cpp, Ollama or vLLM: shows what it would set, and applies it."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPlainTextEdit, QVBoxLayout, QWidget

from qwendesk.core.command_reader import ReadCommand, read_command
from qwendesk.core.errors import BadOption
from qwendesk.core.translation import tr
from qwendesk.engines.pending_load import PendingLoadService
from qwendesk.engines.view.load_options import pasted_text
from qwendesk.widgets.buttons import TextButton, describe

_HEIGHT = 84
"""Height of the field in pixels: about four lines."""


class PastedCommand(QWidget):
    """A button that opens a field to paste into. Applying changes the pending load options and loads nothing."""

    answer_options_pasted = Signal(object)
    """Generation options by key, to be set for the open chat."""
    model_asked = Signal(str)
    """The user wants to see a model on the Models page: its name, or words to search for."""

    def __init__(self, service: PendingLoadService) -> None:
        super().__init__()
        self._service = service
        self._found: ReadCommand | None = None
        self._open = TextButton(tr("Paste a command…"), kind="pill")
        self._open.setCheckable(True)
        describe(
            self._open, "inspector.paste", tr("Paste a command…"),
            tr("See what a command for llama.cpp, Ollama or vLLM means here, and take it over"),
        )  # fmt: skip
        self._field = QPlainTextEdit()
        self._field.setFixedHeight(_HEIGHT)
        self._field.setTabChangesFocus(True)
        self._field.setPlaceholderText("llama-server -m … -c 65536, ollama run …, vllm serve …, FROM …")
        describe(
            self._field, "inspector.paste.text", tr("Command"),
            tr("A command line of llama.cpp, Ollama or vLLM, or a Modelfile"),
        )  # fmt: skip
        self._field.textChanged.connect(self._read)
        self._model, self._changes, self._remarks = (_label(name) for name in ("model", "changes", "remarks"))
        self._remarks.setProperty("kind", "small")
        self._apply = TextButton(tr("Apply"), kind="primary")
        describe(self._apply, "inspector.paste.apply", tr("Apply"), tr("Set these options. Nothing is loaded yet."))
        self._apply.clicked.connect(self._on_apply)
        self._find = TextButton(tr("Find the model"), kind="quiet")
        describe(self._find, "inspector.paste.find", tr("Find the model"), tr("Look for it on the Models page"))
        self._find.clicked.connect(self._on_find)
        self._frame = QFrame()
        self._frame.setObjectName("inspector.paste.frame")
        buttons = QHBoxLayout()
        buttons.addWidget(self._apply)
        buttons.addWidget(self._find)
        buttons.addStretch(1)
        column = QVBoxLayout(self._frame)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        for widget in (self._field, self._model, self._changes, self._remarks):
            column.addWidget(widget)
        column.addLayout(buttons)
        self._frame.hide()
        self._open.toggled.connect(self._on_toggled)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(self._open, 0, Qt.AlignmentFlag.AlignLeft)
        outer.addWidget(self._frame)
        self._read()

    def _on_toggled(self, is_open: bool) -> None:
        self._frame.setVisible(is_open)
        if is_open:
            self._field.setFocus()

    def _read(self) -> None:
        text = self._field.toPlainText()
        self._found = found = read_command(text) if text.strip() else None
        model = changes = remarks = ""
        if found is not None:
            model, changes = pasted_text.model_text(found), pasted_text.changes_text(found)
            remarks = pasted_text.remarks_text(found)
        elif text.strip():
            changes = tr("This isn't a command line of llama.cpp, Ollama or vLLM.")
        for label, content in ((self._model, model), (self._changes, changes), (self._remarks, remarks)):
            label.setText(content)
            label.setVisible(bool(content))
        self._apply.setVisible(found is not None and bool(pasted_text.load_changes(found) or found.answer))
        self._find.setVisible(found is not None and found.model is not None and not found.model.file)

    def _on_apply(self) -> None:
        found = self._found
        if found is None:
            return
        try:
            self._service.change(pasted_text.load_changes(found))
        except BadOption as error:
            self._changes.setText(error.sentence)
            return
        if found.answer:
            self.answer_options_pasted.emit(dict(found.answer))
        self._field.clear()
        self._open.setChecked(False)

    def _on_find(self) -> None:
        if self._found is not None and self._found.model is not None:
            self.model_asked.emit(self._found.model.text)


def _label(name: str) -> QLabel:
    label = QLabel()
    label.setObjectName(f"inspector.paste.{name}")
    label.setWordWrap(True)
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    label.hide()
    return label
