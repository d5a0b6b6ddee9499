"""Labels that wrap or elide their text if there is little space."""

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QLabel, QSizePolicy


class WrappingLabel(QLabel):
    """A label that uses one line if there is enough space, and wraps otherwise.

    A plain QLabel with word wrap requests several lines even if one is enough.
    """

    def __init__(self, text: str = "") -> None:
        super().__init__(text)
        self.setWordWrap(True)

    def sizeHint(self) -> QSize:
        self.ensurePolished()
        padding = self.width() - self.contentsRect().width()
        indent = self.fontMetrics().horizontalAdvance("x") if padding else 0
        words = self.fontMetrics().horizontalAdvance(self.text()) + padding + indent + 2 * self.margin() + 2
        return QSize(words, self.heightForWidth(words))


class ElidedLabel(QLabel):
    """A label that elides the middle of its text, for names of files and folders. `text` returns the complete text."""

    def __init__(self, name: str, *, kind: str = "") -> None:
        super().__init__()
        self.setObjectName(name)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        if kind:
            self.setProperty("kind", kind)

    @property
    def shown(self) -> str:
        """The text as it is drawn, elided if necessary."""
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
