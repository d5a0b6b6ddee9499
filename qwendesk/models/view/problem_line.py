"""A line that says what failed, with a button that tries again."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from qwendesk.core.translation import tr
from qwendesk.widgets.buttons import TextButton, describe
from qwendesk.widgets.layouts import ResponsivePairLayout

_LEAST_WORDS = 240
"""Least width in pixels of the sentence next to the button."""


class ProblemLine(QWidget):
    """Hidden until there is a problem. Object names of its controls begin with `name`."""

    retry_asked = Signal()

    def __init__(self, name: str) -> None:
        super().__init__()
        self._text = QLabel()
        self._text.setObjectName(name)
        self._text.setProperty("kind", "error")
        self._text.setTextFormat(Qt.TextFormat.PlainText)
        self._text.setWordWrap(True)
        retry = TextButton(" " + tr("Retry"), icon_name="again")
        describe(retry, f"{name}.retry", tr("Retry"), tr("Try again"))
        retry.clicked.connect(self.retry_asked)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addLayout(ResponsivePairLayout(self._text, retry, least=_LEAST_WORDS))
        self.hide()

    def show_problem(self, sentence: str) -> None:
        """Show a sentence; "" hides the line."""
        self._text.setText(sentence)
        self.setVisible(bool(sentence))
