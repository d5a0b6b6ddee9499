"""A label in one line that takes the room it is given: a longer text loses its middle on screen."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QLabel, QSizePolicy


class ShortenedLabel(QLabel):
    """For names of files and folders, whose beginning and end both matter. `text` stays whole."""

    def __init__(self, name: str, *, kind: str = "") -> None:
        super().__init__()
        self.setObjectName(name)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        if kind:
            self.setProperty("kind", kind)

    @property
    def shown(self) -> str:
        """The text as there is room for it."""
        room = self.contentsRect().width()
        return self.fontMetrics().elidedText(self.text(), Qt.TextElideMode.ElideMiddle, room)

    def paintEvent(self, event: QPaintEvent) -> None:
        shown = self.shown
        if shown == self.text():
            super().paintEvent(event)
            return
        painter = QPainter(self)
        self.style().drawItemText(
            painter, self.contentsRect(), self.alignment(), self.palette(), self.isEnabled(), shown,
            self.foregroundRole(),
        )  # fmt: skip
