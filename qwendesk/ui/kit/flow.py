"""Widgets beside each other that go on in the next line where the width ends, as words do."""

from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtWidgets import QWidget

from qwendesk.ui.kit.items_layout import ItemsLayout


class FlowLayout(ItemsLayout):
    """Each line is as high as its highest widget. From right to left where the window is. At the top of what room it
    has, or in the middle with AlignVCenter."""

    def insertWidget(self, index: int, widget: QWidget) -> None:
        self.addWidget(widget)
        self._items.insert(index, self._items.pop())

    def expandingDirections(self) -> Qt.Orientation:
        return Qt.Orientation(0)

    def heightForWidth(self, width: int) -> int:
        return self._place(QRect(0, 0, width, 0), moves=False)

    def setGeometry(self, rect: QRect) -> None:
        super().setGeometry(rect)
        if self.alignment() & Qt.AlignmentFlag.AlignVCenter:
            spare = max(0, rect.height() - self.heightForWidth(rect.width()))
            rect = rect.adjusted(0, spare // 2, 0, 0)
        self._place(rect, moves=True)

    def _place(self, rect: QRect, *, moves: bool) -> int:
        """The height that all lines take; moves the widgets there if wanted."""
        x, y, line_height = rect.x(), rect.y(), 0
        for item in self._shown():
            size = item.sizeHint()
            if x + size.width() > rect.x() + rect.width() and line_height:
                x, y, line_height = rect.x(), y + line_height + self.spacing(), 0
            if moves:
                place = QRect(QPoint(x, y), QSize(min(size.width(), rect.width()), size.height()))
                item.setGeometry(self._turned(place, rect))
            x += size.width() + self.spacing()
            line_height = max(line_height, size.height())
        return y + line_height - rect.y()
