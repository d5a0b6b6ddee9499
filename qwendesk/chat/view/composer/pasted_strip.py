"""The strip above the composer's text that says what else pasted text can be: a command, a model's name, a picture.

It never blocks the text.
"""

from PySide6.QtCore import Signal
from PySide6.QtGui import QTextCursor
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from qwendesk.chat.view.composer.composer_text import ComposerText
from qwendesk.chat.view.composer.pasted_content import PastedContent
from qwendesk.commands.pasted_text import PastedKind, command_name, pasted_kind
from qwendesk.core.translation import tr
from qwendesk.widgets.buttons import TextButton, describe
from qwendesk.widgets.layouts import FlowLayout


class PastedStrip(QWidget):
    """Shown after such a text was pasted into the empty composer, as long as it is there."""

    command_asked = Signal(str)
    """The user wants to see what a command or a Modelfile means."""
    model_asked = Signal(str)
    """The user wants to see a model on the Models page."""
    picture_asked = Signal(object)
    """A PastedContent: the user wants this picture in place of the pasted text."""
    shown = Signal(str)
    """The sentence, for screen readers."""

    def __init__(self, text: ComposerText) -> None:
        super().__init__()
        self._text, self._pasted = text, ""
        self._kind: PastedKind = ""
        self._picture: PastedContent | None = None
        self._can_see = True
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
        text.picture_offered.connect(self.offer_picture)
        text.textChanged.connect(self._on_changed)
        self.hide()

    def remove(self, pasted: str) -> None:
        """Clear the composer if it still has just this text, which was used."""
        if self._text.toPlainText().strip() == pasted.strip():
            self._text.clear()

    def show_vision(self, *, can_see: bool) -> None:
        """Set whether the loaded model sees pictures."""
        self._can_see = can_see
        if not can_see and self._picture is not None:
            self._on_keep()

    def offer_picture(self, content: PastedContent) -> None:
        """Offer the picture of a text that was just inserted, unless the loaded model can't see it."""
        if not self._can_see:
            return
        self._pasted, self._kind = "\n".join(content.text.splitlines()).strip(), ""
        self._picture = PastedContent(image=content.text_as_picture)
        tip = tr("The clipboard also has it as a picture. Replace the text by that")
        self._offer(tr("The text was pasted."), tr("Paste as picture"), tip)

    def _on_pasted(self, pasted: str) -> None:
        pasted, self._picture = pasted.strip(), None
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
        self._offer(sentence, show, tip)

    def _offer(self, sentence: str, show: str, tip: str) -> None:
        describe(self._show, "composer.pasted.show", show, tip)
        self._show.setText(show)
        self._sentence.setText(sentence)
        self.show()
        self.shown.emit(sentence)

    def _on_changed(self) -> None:
        if self._pasted and self._pasted not in self._text.toPlainText():
            self._on_keep()

    def _on_keep(self) -> None:
        self._pasted, self._picture = "", None
        if self._keep.hasFocus() or self._show.hasFocus():
            self._text.setFocus()
        self.hide()

    def _on_show(self) -> None:
        if self._picture is not None:
            picture = self._picture
            self._take_out(self._pasted)
            self._on_keep()
            self.picture_asked.emit(picture)
            return
        (self.model_asked if self._kind == "model" else self.command_asked).emit(self._pasted)

    def _take_out(self, pasted: str) -> None:
        """Delete the last place of a text from the message, in a way that can be undone."""
        before, found, _after = self._text.toPlainText().rpartition(pasted)
        if not found:
            return
        cursor = self._text.textCursor()
        start, length = (len(text.encode("utf-16-le")) // 2 for text in (before, found))  # as Qt counts
        cursor.setPosition(start)
        cursor.setPosition(start + length, QTextCursor.MoveMode.KeepAnchor)
        cursor.removeSelectedText()
