"""A vertical scroll area whose content keeps its width when the scroll bar appears."""

from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QScrollBar, QWidget

SCROLL_BAR: Final = 12
"""Width of a scroll bar in the stylesheet, in pixels."""


class SteadyScrollBar(QScrollBar):
    """Always takes its room, and is invisible while there is nothing to scroll."""

    def paintEvent(self, event: QPaintEvent) -> None:
        if self.maximum() > self.minimum():
            super().paintEvent(event)


def steady_scroll_area(content: QWidget) -> QScrollArea:
    """Return a scroll area that scrolls `content` vertically and takes no focus."""
    area = QScrollArea()
    area.setVerticalScrollBar(SteadyScrollBar())
    area.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOn)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.setWidgetResizable(True)
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    area.setWidget(content)
    return area
