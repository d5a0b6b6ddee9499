"""The Tab key in a conversation: from control to control down the column, rows above and below coming into view."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QApplication, QScrollArea, QWidget

from qwendesk.ui.kit.tab_order import focus_next, give_focus, stops_in
from qwendesk.ui.kit.theme_keeper import ThemeKeeper


class FocusWalk(QWidget):
    """The widget that a scroll area shows. Its rows come and go, so that it asks for them anew at each step."""

    def __init__(self, area: QScrollArea, keeper: ThemeKeeper, rows: Callable[[], Sequence[QWidget]]) -> None:
        super().__init__()
        self._keeper = keeper
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)  # so that scrolling moves pixels, and paints none
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
        return focus_next(self.window(), here, forward=forward)

    def tab_stops(self) -> list[QWidget]:
        """What the Tab key finds here from outside: what is on screen, and where the focus is."""
        here = QApplication.focusWidget()
        seen = QRect(0, -self.y(), self._area.viewport().width(), self._area.viewport().height())
        return [each for each in self._stops() if each is here or seen.intersects(self._place(each))]

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(event.rect(), self._keeper.theme.color("window"))
        painter.end()

    def _stops(self) -> list[QWidget]:
        return [stop for row in self._rows() for stop in stops_in(row)]

    def _place(self, widget: QWidget) -> QRect:
        return QRect(widget.mapTo(self, widget.rect().topLeft()), widget.size())
