"""Notes above and beside the composer's text: a sentence with buttons for what helps, and that the engine is busy."""

from typing import Literal

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from qwendesk.core.translation import tr
from qwendesk.widgets.buttons import TextButton, describe, restyle
from qwendesk.widgets.layouts import FlowLayout

# Load the model used last, choose the mmproj file, skip the older half of the chat, load a longer context, stop the
# measurement that runs and answer, or see which models there are.
NoticeAction = Literal["last", "mmproj", "skip", "length", "interrupt", "models"]


class ComposerNotice(QWidget):
    """Shows a sentence, or is hidden."""

    changed = Signal(str)
    """The sentence; "" if the notice was removed."""
    chosen = Signal(str)
    """A NoticeAction."""

    def __init__(self) -> None:
        super().__init__()
        self._words = QLabel()
        self._words.setProperty("kind", "notice")
        self._words.setObjectName("composer.notice")
        self._words.setWordWrap(True)
        self._buttons: dict[NoticeAction, TextButton] = {}
        self._row = QWidget()
        flow = FlowLayout(self._row)
        flow.setContentsMargins(0, 0, 0, 0)
        flow.setSpacing(12)
        texts: tuple[tuple[NoticeAction, str, str], ...] = (
            ("last", tr("Load the last model"), tr("Load the model that you used last")),
            ("mmproj", tr("Add a vision file…"), tr("Choose the vision file (mmproj) for this model")),
            ("skip", tr("Skip the older half of the chat"), tr("Your next message is sent without it")),
            ("length", tr("Load with a longer context…"), tr("Show the option for the context length")),
            ("interrupt", tr("Stop it and answer"), tr("Stop the measurement and have the model answer")),
            ("models", tr("Get a model…"), tr("See which models suit this PC")),
        )
        for action, text, tip in texts:
            button = TextButton(text, kind="link")
            describe(button, f"composer.{action}", text, tip)
            button.clicked.connect(lambda _checked=False, action=action: self.chosen.emit(action))
            self._buttons[action] = button
            flow.addWidget(button)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        column.addWidget(self._words)
        column.addWidget(self._row, 0, Qt.AlignmentFlag.AlignTop)
        self.hide()

    @property
    def sentence(self) -> str:
        return self._words.text()

    def show_sentence(self, sentence: str, actions: tuple[NoticeAction, ...], *, warns: bool) -> None:
        """Show a sentence with buttons for `actions`, in amber if it warns; "" hides the notice."""
        self._words.setText(sentence)
        restyle(self._words, "kind", "notice" if warns else "number")
        for action, button in self._buttons.items():
            button.setVisible(action in actions)
        self._row.setVisible(bool(actions))
        self.setVisible(bool(sentence))
        self.changed.emit(sentence)


# Shorter preparations aren't worth a word that flickers.
_SHOWN_AFTER_MS = 400


class PreparingNote(QLabel):
    """Hidden unless something has been prepared for a moment."""

    def __init__(self) -> None:
        super().__init__(tr("Preparing…"))
        self.setProperty("kind", "dim")
        self.setObjectName("composer.preparing")
        self.setToolTip(tr("Your files and the chat are processed ahead, so that the next answer starts sooner."))
        self._timer = QTimer(self, singleShot=True, interval=_SHOWN_AFTER_MS)
        self._timer.timeout.connect(self.show)
        self.hide()

    def show_preparing(self, preparing: bool) -> None:
        if preparing:
            self._timer.start()
        else:
            self._timer.stop()
            self.hide()
