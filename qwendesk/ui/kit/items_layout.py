"""What a layout of our own needs of Qt beside its rule for places: a list of items, and sizes by their sum."""

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtWidgets import QLayout, QLayoutItem, QWidget


class ItemsLayout(QLayout):
    """Its height depends on its width. Without margins; hidden widgets take no room."""

    def __init__(self, parent: QWidget | None = None, *, spacing: int = 8) -> None:
        super().__init__(parent)
        self._items: list[QLayoutItem] = []
        self.setContentsMargins(0, 0, 0, 0)
        self.setSpacing(spacing)

    def addItem(self, item: QLayoutItem) -> None:
        self._items.append(item)

    def count(self) -> int:
        return len(self._items)

    def itemAt(self, index: int) -> QLayoutItem | None:
        return self._items[index] if 0 <= index < len(self._items) else None

    def takeAt(self, index: int) -> QLayoutItem | None:
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    def hasHeightForWidth(self) -> bool:
        return True

    def sizeHint(self) -> QSize:
        """All in one line."""
        hints = [item.sizeHint() for item in self._shown()]
        gaps = self.spacing() * max(0, len(hints) - 1)
        return QSize(sum(hint.width() for hint in hints) + gaps, max((hint.height() for hint in hints), default=0))

    def minimumSize(self) -> QSize:
        """The widest and the highest alone: how high all are together, `heightForWidth` says."""
        sizes = [item.minimumSize() for item in self._shown()]
        widths, heights = ([size.width() for size in sizes], [size.height() for size in sizes])
        return QSize(max(widths, default=0), max(heights, default=0))

    def _shown(self) -> list[QLayoutItem]:
        return [item for item in self._items if not item.isEmpty()]

    def _turned(self, place: QRect, rect: QRect) -> QRect:
        """`place` in `rect` as the window's direction wants it."""
        parent = self.parentWidget()
        if parent is None or parent.layoutDirection() != Qt.LayoutDirection.RightToLeft:
            return place
        return place.translated(rect.left() + rect.right() - place.right() - place.left(), 0)
