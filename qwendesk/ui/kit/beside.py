"""Two widgets beside each other while there is room, else the second below the first."""

from PySide6.QtCore import QRect, Qt
from PySide6.QtWidgets import QHBoxLayout, QLayoutItem, QWidget

from qwendesk.ui.kit.items_layout import ItemsLayout


class BesideOrBelow(ItemsLayout):
    """The first is as wide as it can be, but never less than `least` pixels while the second stands beside it; the
    second has the width it asks for. From right to left where the window is."""

    def __init__(self, first: QWidget, second: QWidget, *, least: int, spacing: int = 8) -> None:
        super().__init__(spacing=spacing)
        self._least = least
        self.addWidget(first)
        self.addWidget(second)

    def expandingDirections(self) -> Qt.Orientation:
        return Qt.Orientation.Horizontal

    def heightForWidth(self, width: int) -> int:
        return max((place.bottom() + 1 for place in self._places(QRect(0, 0, width, 0))), default=0)

    def setGeometry(self, rect: QRect) -> None:
        super().setGeometry(rect)
        for item, place in zip(self._shown(), self._places(rect), strict=True):
            item.setGeometry(self._turned(place, rect))

    def _places(self, rect: QRect) -> list[QRect]:
        """Where the shown items belong in `rect`, whose height is only used to put them in the middle of it."""
        shown = self._shown()
        if len(shown) < 2:
            return [QRect(rect.x(), rect.y(), rect.width(), _height(item, rect.width())) for item in shown]
        first, second = shown
        wanted = second.sizeHint().width()
        left = rect.width() - wanted - self.spacing()
        if left < max(self._least, first.minimumSize().width()):
            wanted = min(wanted, rect.width())
            upper = QRect(rect.x(), rect.y(), rect.width(), _height(first, rect.width()))
            return [upper, QRect(rect.x(), upper.bottom() + 1 + self.spacing(), wanted, _height(second, rect.width()))]
        heights = _height(first, left), _height(second, wanted)
        line = max(*heights, rect.height())
        tops = [rect.y() + (line - height) // 2 for height in heights]
        return [
            QRect(rect.x(), tops[0], left, heights[0]),
            QRect(rect.x() + left + self.spacing(), tops[1], wanted, heights[1]),
        ]


def in_a_row(*widgets: QWidget, spacing: int = 8) -> QWidget:
    """One widget with all of them beside each other."""
    holder = QWidget()
    row = QHBoxLayout(holder)
    row.setContentsMargins(0, 0, 0, 0)
    row.setSpacing(spacing)
    for widget in widgets:
        row.addWidget(widget)
    return holder


def _height(item: QLayoutItem, width: int) -> int:
    return item.heightForWidth(width) if item.hasHeightForWidth() else item.sizeHint().height()
