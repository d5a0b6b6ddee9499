"""A label that stands in one line and gives way: it goes on in the next line where the width ends."""

from PySide6.QtCore import QSize
from PySide6.QtWidgets import QLabel


class GivingLabel(QLabel):
    """A plain QLabel with word wrap asks for several lines even where there is room for one."""

    def __init__(self, text: str = "") -> None:
        super().__init__(text)
        self.setWordWrap(True)

    def sizeHint(self) -> QSize:
        words = self.fontMetrics().horizontalAdvance(self.text()) + 2 * self.margin() + 2
        return QSize(words, self.heightForWidth(words))
