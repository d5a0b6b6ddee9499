"""A notice above the pages about something that happened elsewhere, with actions."""

from collections.abc import Callable

import msgspec
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from qwendesk.core.translation import tr
from qwendesk.widgets.buttons import IconButton, TextButton, describe
from qwendesk.widgets.kit import MARGIN, READING_WIDTH, centred
from qwendesk.widgets.layouts import DensitySpacing, FlowLayout


class NoticeAction(msgspec.Struct, frozen=True):
    """A button of a notice. It closes the notice unless `stays` is True."""

    name: str
    text: str
    tooltip: str
    run: Callable[[], None]
    stays: bool = False


class Notice(QWidget):
    """A card that is deleted when it is dismissed or one of its actions is chosen."""

    def __init__(self, name: str, title: str, sentence: str, actions: tuple[NoticeAction, ...] = ()) -> None:
        super().__init__()
        self.setObjectName(name)
        self.setAccessibleName(title)
        card = QFrame()
        card.setProperty("kind", "notice")
        around = QVBoxLayout(self)
        around.setContentsMargins(0, 14, 0, 6)
        around.addLayout(centred(card, READING_WIDTH, margin=MARGIN))
        heading = QLabel(title)
        heading.setObjectName(f"{name}.title")
        heading.setProperty("kind", "heading")
        heading.setWordWrap(True)
        words = QLabel(sentence)
        words.setObjectName(f"{name}.sentence")
        words.setWordWrap(True)
        words.setVisible(bool(sentence))
        for label in (heading, words):
            label.setTextFormat(Qt.TextFormat.PlainText)
        close = IconButton("close", size=16, side=28)
        describe(close, f"{name}.dismiss", tr("Dismiss"))
        close.clicked.connect(self.end)
        top = QHBoxLayout()
        top.addWidget(heading, 1)
        top.addWidget(close)
        column = QVBoxLayout(card)
        column.setContentsMargins(16, 10, 10, 12)
        column.setSpacing(6)
        DensitySpacing(column)
        column.addLayout(top)
        column.addWidget(words)
        if actions:
            column.addLayout(self._buttons(actions))

    def end(self) -> None:
        """Hide and delete the notice."""
        self.hide()
        self.deleteLater()

    def _buttons(self, actions: tuple[NoticeAction, ...]) -> FlowLayout:
        row = FlowLayout()
        for action in actions:
            button = TextButton(action.text)
            describe(button, f"{self.objectName()}.{action.name}", action.text, action.tooltip)
            button.clicked.connect(lambda _checked=False, action=action: self._choose(action))
            row.addWidget(button)
        return row

    def _choose(self, action: NoticeAction) -> None:
        if not action.stays:
            self.end()
        action.run()
