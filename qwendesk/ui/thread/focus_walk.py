"""The Tab key in a conversation: from control to control down the column, whatever order widgets were made in."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QApplication, QScrollArea, QWidget

from qwendesk.ui.kit.theme_keeper import ThemeKeeper


class FocusWalk(QWidget):
    """The widget that a scroll area shows. Qt would walk in the order of making, and recycled rows are made late."""

    def __init__(self, area: QScrollArea, keeper: ThemeKeeper, rows: Callable[[], Sequence[QWidget]]) -> None:
        super().__init__()
        self._keeper = keeper
        self.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)  # so that scrolling moves pixels, and paints none
        self._area = area
        self._rows = rows

    def focusNextPrevChild(self, forward: bool) -> bool:
        here = QApplication.focusWidget()
        if here is None or not self.isAncestorOf(here):
            return super().focusNextPrevChild(forward)
        stops = self._stops()
        step = 1 if forward else -1
        index = stops.index(here) + step if here in stops else -1
        if 0 <= index < len(stops):
            self._focus(stops[index], forward=forward)
            self._area.ensureWidgetVisible(stops[index], 0, 40)
            return True
        return self._leave(here, forward=forward)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(event.rect(), self._keeper.theme.color("window"))
        painter.end()

    def _stops(self) -> list[QWidget]:
        """Everything that takes the focus, from top to bottom and left to right."""
        stops = []
        for row in self._rows():
            inside = [each for each in (row, *row.findChildren(QWidget)) if _takes_tab(each)]
            stops += sorted(inside, key=lambda each: _place(each, row))
        return stops

    def _leave(self, here: QWidget, *, forward: bool) -> bool:
        """To the first control outside, in the order in which the window's widgets lie in each other."""
        # Not along nextInFocusChain: the binding makes what that returns a child of the widget that was asked, and
        # ends it, the window's menus among it, when that widget goes.
        widgets = self.window().findChildren(QWidget)
        if here not in widgets:
            return False
        index = widgets.index(here)
        after, before = widgets[index + 1 :], widgets[:index]
        for each in (*after, *before) if forward else (*reversed(before), *reversed(after)):
            outside = each is not self._area and not self._area.isAncestorOf(each)
            if outside and each.window() is self.window() and _takes_tab(each):
                self._focus(each, forward=forward)
                return True
        return False

    def _focus(self, widget: QWidget, *, forward: bool) -> None:
        widget.setFocus(Qt.FocusReason.TabFocusReason if forward else Qt.FocusReason.BacktabFocusReason)


def _place(widget: QWidget, row: QWidget) -> tuple[int, int]:
    corner = widget.mapTo(row, widget.rect().topLeft()) if widget is not row else widget.rect().topLeft()
    return corner.y(), corner.x()


def _takes_tab(widget: QWidget) -> bool:
    policy = widget.focusPolicy().value
    return bool(policy & Qt.FocusPolicy.TabFocus.value) and widget.isEnabled() and widget.isVisible()
