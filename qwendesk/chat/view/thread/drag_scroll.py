"""Scrolls the conversation while a selection is dragged beyond its edge."""

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QPoint, Qt, QTimer
from PySide6.QtGui import QCursor
from PySide6.QtWidgets import QApplication, QScrollArea

if TYPE_CHECKING:
    from qwendesk.chat.view.answer.answer_view import AnswerView


_EVERY_MS = 30
# The distance beyond the edge is divided by this to get the pixels to scroll, so farther away scrolls faster.
_SLOWNESS = 4


class DragScroll(QObject):
    def __init__(self, area: QScrollArea) -> None:
        super().__init__(area)
        self._area = area
        self._view: AnswerView | None = None
        self._timer = QTimer(self, interval=_EVERY_MS)
        self._timer.timeout.connect(self._tick)

    @property
    def is_running(self) -> bool:
        return self._timer.isActive()

    def moved(self, view: "AnswerView", place: QPoint) -> None:
        """Start or stop scrolling, depending on the position of the mouse in an answer."""
        self._view = view
        if self._distance_beyond(view.mapToGlobal(place)):
            self._timer.start()
        else:
            self._timer.stop()

    def step(self, mouse: QPoint) -> None:
        """Scroll once, by the distance of the mouse beyond the edge, and extend the selection.

        `mouse` is in screen coordinates.
        """
        beyond = self._distance_beyond(mouse)
        if self._view is None or not beyond:
            self._timer.stop()
            return
        bar = self._area.verticalScrollBar()
        bar.setValue(bar.value() + (max(4, beyond // _SLOWNESS) if beyond > 0 else min(-4, beyond // _SLOWNESS)))
        self._view.extend_selection(self._view.mapFromGlobal(mouse))

    def _tick(self) -> None:
        if not QApplication.mouseButtons() & Qt.MouseButton.LeftButton:
            self._timer.stop()
            return
        self.step(QCursor.pos())

    def _distance_beyond(self, mouse: QPoint) -> int:
        """Return the pixels below (positive) or above (negative) the viewport; 0 inside."""
        port = self._area.viewport()
        y = port.mapFromGlobal(mouse).y()
        return y - port.height() if y > port.height() else min(0, y)
