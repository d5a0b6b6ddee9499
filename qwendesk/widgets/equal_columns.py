"""A layout of columns of equal width, which wrap into several rows where there is little space."""

from PySide6.QtCore import QPoint, QRect, QSize, Qt

from qwendesk.widgets.layouts import WrappingLayout


class EqualColumnsLayout(WrappingLayout):
    """Arranges widgets in rows of equally wide columns, at least `least` pixels wide each.

    All rows have the same number of columns if possible: four widgets are placed as 4, 2 + 2 or one below the other.
    The widgets of a row are as tall as the tallest of them.
    """

    def __init__(self, *, least: int, spacing: int = 14) -> None:
        super().__init__(spacing=spacing)
        self._least = least

    def minimumSize(self) -> QSize:
        """Return no width: columns become narrower than `least` if a single one has no more space."""
        return QSize(0, 0)

    def expandingDirections(self) -> Qt.Orientation:
        return Qt.Orientation.Horizontal

    def heightForWidth(self, width: int) -> int:
        places = self._places(QRect(0, 0, width, 0))
        return max((place.bottom() + 1 for place in places), default=0)

    def setGeometry(self, rect: QRect) -> None:
        super().setGeometry(rect)
        for item, place in zip(self._shown(), self._places(rect), strict=True):
            item.setGeometry(self._mirrored(place, rect))

    def columns_in(self, width: int) -> int:
        """Return how many columns are beside each other."""
        count = len(self._shown())
        fitting = max(1, min(count, (width + self.spacing()) // (self._least + self.spacing())))
        n_rows = -(-count // fitting)
        return -(-count // n_rows) if n_rows else 1

    def _places(self, rect: QRect) -> list[QRect]:
        shown, columns = self._shown(), self.columns_in(rect.width())
        width = (rect.width() - self.spacing() * (columns - 1)) // columns
        places: list[QRect] = []
        top = rect.y()
        for first in range(0, len(shown), columns):
            row = shown[first : first + columns]
            height = max(
                item.heightForWidth(width) if item.hasHeightForWidth() else item.sizeHint().height() for item in row
            )
            for column in range(len(row)):
                left = rect.x() + column * (width + self.spacing())
                places.append(QRect(QPoint(left, top), QSize(width, height)))
            top += height + self.spacing()
        return places
