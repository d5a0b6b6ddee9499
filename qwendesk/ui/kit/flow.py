"""Widgets beside each other that go on in the next line where the width ends, as words do."""

from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtWidgets import QLayout, QLayoutItem, QWidget


class FlowLayout(QLayout):
    """Each line is as high as its highest widget. From right to left where the window is. At the top of what room it
    has, or in the middle with AlignVCenter."""

    def __init__(self, parent: QWidget | None = None, *, spacing: int = 8) -> None:
        super().__init__(parent)
        self._items: list[QLayoutItem] = []
        self.setContentsMargins(0, 0, 0, 0)
        self.setSpacing(spacing)

    def insertWidget(self, index: int, widget: QWidget) -> None:
        self.addWidget(widget)
        self._items.insert(index, self._items.pop())

    def addItem(self, item: QLayoutItem) -> None:
        self._items.append(item)

    def count(self) -> int:
        return len(self._items)

    def itemAt(self, index: int) -> QLayoutItem | None:
        return self._items[index] if 0 <= index < len(self._items) else None

    def takeAt(self, index: int) -> QLayoutItem | None:
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    def expandingDirections(self) -> Qt.Orientation:
        return Qt.Orientation(0)

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        return self._place(QRect(0, 0, width, 0), moves=False)

    def sizeHint(self) -> QSize:
        """All in one line."""
        hints = [item.sizeHint() for item in self._items if not item.isEmpty()]
        gaps = self.spacing() * max(0, len(hints) - 1)
        return QSize(sum(hint.width() for hint in hints) + gaps, max((hint.height() for hint in hints), default=0))

    def minimumSize(self) -> QSize:
        """Each in a line of its own."""
        sizes = [item.minimumSize() for item in self._items if not item.isEmpty()]
        width, height = ([size.width() for size in sizes], [size.height() for size in sizes])
        return QSize(max(width, default=0), max(height, default=0))

    def setGeometry(self, rect: QRect) -> None:
        super().setGeometry(rect)
        if self.alignment() & Qt.AlignmentFlag.AlignVCenter:
            spare = max(0, rect.height() - self.heightForWidth(rect.width()))
            rect = rect.adjusted(0, spare // 2, 0, 0)
        self._place(rect, moves=True)

    def _place(self, rect: QRect, *, moves: bool) -> int:
        """The height that all lines take; moves the widgets there if wanted."""
        x, y, line_height = rect.x(), rect.y(), 0
        parent = self.parentWidget()
        direction = parent.layoutDirection() if parent is not None else Qt.LayoutDirection.LeftToRight
        for item in self._items:
            if item.isEmpty():
                continue
            size = item.sizeHint()
            if x + size.width() > rect.x() + rect.width() and line_height:
                x, y, line_height = rect.x(), y + line_height + self.spacing(), 0
            if moves:
                place = QRect(QPoint(x, y), QSize(min(size.width(), rect.width()), size.height()))
                item.setGeometry(_mirrored(place, rect) if direction == Qt.LayoutDirection.RightToLeft else place)
            x += size.width() + self.spacing()
            line_height = max(line_height, size.height())
        return y + line_height - rect.y()


def _mirrored(place: QRect, rect: QRect) -> QRect:
    return QRect(QPoint(rect.left() + rect.right() - place.right(), place.y()), place.size())
