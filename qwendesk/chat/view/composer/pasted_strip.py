"""The strip above the composer's text that says what a pasted command or model name can do, and never blocks it."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from qwendesk.chat.view.composer.composer_text import ComposerText
from qwendesk.core.pasted_text import PastedKind, command_name, pasted_kind
from qwendesk.core.translation import tr
from qwendesk.widgets.buttons import TextButton, describe
from qwendesk.widgets.layouts import FlowLayout


class PastedStrip(QWidget):
    """Shown after such a text was pasted into the empty composer, as long as it is there."""

    command_asked = Signal(str)
    """The user wants to see what a command or a Modelfile means."""
    model_asked = Signal(str)
    """The user wants to see a model on the Models page."""
    shown = Signal(str)
    """The sentence, for screen readers."""

    def __init__(self, text: ComposerText) -> None:
        super().__init__()
        self._text, self._pasted = text, ""
        self._kind: PastedKind = ""
        self._sentence = QLabel()
        self._sentence.setProperty("kind", "small")
        self._sentence.setObjectName("composer.pasted")
        self._sentence.setWordWrap(True)
        self._show = TextButton(kind="link")
        self._show.clicked.connect(self._on_show)
        keep = self._keep = TextButton(tr("Keep as text"), kind="link")
        describe(keep, "composer.pasted.keep", tr("Keep as text"), tr("It is sent to the model as you pasted it"))
        keep.clicked.connect(self._on_keep)
        buttons = QWidget()
        flow = FlowLayout(buttons)
        flow.setContentsMargins(0, 0, 0, 0)
        flow.setSpacing(12)
        flow.addWidget(self._show)
        flow.addWidget(keep)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        column.addWidget(self._sentence)
        column.addWidget(buttons)
        text.text_pasted.connect(self._on_pasted)
        text.textChanged.connect(self._on_changed)
        self.hide()

    def remove(self, pasted: str) -> None:
        """Clear the composer if it still has just this text, which was used."""
        if self._text.toPlainText().strip() == pasted.strip():
            self._text.clear()

    def _on_pasted(self, pasted: str) -> None:
        pasted = pasted.strip()
        kind = pasted_kind(pasted) if self._text.toPlainText().strip() == pasted else ""
        if not kind:
            return
        self._pasted, self._kind = pasted, kind
        if kind == "model":
            sentence, show = tr("This names a model on Hugging Face."), tr("Show its files")
            tip = tr("See on the Models page which of its files fit this PC")
        else:
            sentence = tr("This is an Ollama Modelfile.")
            if kind == "command":
                sentence = tr("This is a command for {0}.", command_name(pasted))
            show = tr("Show what it means here")
            tip = tr("See which options it sets and what memory that takes, and apply them")
        describe(self._show, "composer.pasted.show", show, tip)
        self._show.setText(show)
        self._sentence.setText(sentence)
        self.show()
        self.shown.emit(sentence)

    def _on_changed(self) -> None:
        if self._pasted and self._pasted not in self._text.toPlainText():
            self._on_keep()

    def _on_keep(self) -> None:
        self._pasted = ""
        if self._keep.hasFocus() or self._show.hasFocus():
            self._text.setFocus()
        self.hide()

    def _on_show(self) -> None:
        (self.model_asked if self._kind == "model" else self.command_asked).emit(self._pasted)
