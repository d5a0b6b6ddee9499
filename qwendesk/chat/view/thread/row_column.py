"""The column of rows in a conversation. The Tab key moves through its controls and scrolls them into view."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QApplication, QScrollArea, QWidget

from qwendesk.widgets.tab_order import focus_next, give_focus, lost_focus, tab_stops_in
from qwendesk.widgets.theme_keeper import current_theme


class RowColumn(QWidget):
    """The widget inside the scroll area. Its rows change, so it gets the current ones at each key press."""

    def __init__(self, area: QScrollArea, rows: Callable[[], Sequence[QWidget]]) -> None:
        super().__init__()
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)  # so that scrolling moves pixels without repainting
        self._area = area
        self._rows = rows

    def focusNextPrevChild(self, forward: bool) -> bool:
        here = QApplication.focusWidget()
        stops = self._stops()
        if here in stops:
            index = stops.index(here) + (1 if forward else -1)
            if 0 <= index < len(stops):
                give_focus(stops[index], forward=forward)
                return True
        if lost_focus(self.window()) is not None:
            return self.window().focusNextPrevChild(forward)
        return focus_next(self.window(), here, forward=forward)

    def tab_stops(self) -> list[QWidget]:
        """Return the controls that Tab can reach from outside: the visible ones, and the one with the focus."""
        here = QApplication.focusWidget()
        seen = QRect(0, -self.y(), self._area.viewport().width(), self._area.viewport().height())
        return [each for each in self._stops() if each is here or seen.intersects(self._place(each))]

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(event.rect(), current_theme().color("window"))
        painter.end()

    def _stops(self) -> list[QWidget]:
        return [stop for row in self._rows() for stop in tab_stops_in(row)]

    def _place(self, widget: QWidget) -> QRect:
        return QRect(widget.mapTo(self, widget.rect().topLeft()), widget.size())
