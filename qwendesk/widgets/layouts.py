"""Layouts that wrap or scroll, and spacing by the density setting."""

import asyncio
import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from PySide6.QtCore import QMargins, QObject, QPoint, QRect, QSize, Qt
from PySide6.QtGui import QPaintEvent, QShowEvent
from PySide6.QtWidgets import (
    QBoxLayout,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLayout,
    QLayoutItem,
    QScrollArea,
    QScrollBar,
    QWidget,
)
from shiboken6 import isValid

from qwendesk.widgets.theme_keeper import app_theme, current_theme


class WrappingLayout(QLayout):
    """Base class of layouts whose height depends on their width. They have no margins; hidden widgets take no space."""

    def __init__(self, parent: QWidget | None = None, *, spacing: int = 8) -> None:
        super().__init__(parent)
        self._items: list[QLayoutItem] = []
        self._heights: dict[int, int] = {}
        """Heights for widths that were asked for since the last change."""
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

    def heightForWidth(self, width: int) -> int:
        if width not in self._heights:
            self._heights[width] = self._height_for(width)
        return self._heights[width]

    def invalidate(self) -> None:
        self._heights.clear()
        super().invalidate()

    def _height_for(self, width: int) -> int:
        raise NotImplementedError

    def sizeHint(self) -> QSize:
        """Return the size of all items in one line."""
        hints = [item.sizeHint() for item in self._shown()]
        gaps = self.spacing() * max(0, len(hints) - 1)
        return QSize(sum(hint.width() for hint in hints) + gaps, max((hint.height() for hint in hints), default=0))

    def minimumSize(self) -> QSize:
        """Return the size of the widest and of the tallest item. `heightForWidth` returns the height of all of them."""
        sizes = [item.minimumSize() for item in self._shown()]
        widths, heights = ([size.width() for size in sizes], [size.height() for size in sizes])
        return QSize(max(widths, default=0), max(heights, default=0))

    def _shown(self) -> list[QLayoutItem]:
        return [item for item in self._items if not item.isEmpty()]

    def _mirrored(self, place: QRect, rect: QRect) -> QRect:
        """Return `place` mirrored in `rect` if the window's direction is right to left."""
        parent = self.parentWidget()
        if parent is None or parent.layoutDirection() != Qt.LayoutDirection.RightToLeft:
            return place
        return place.translated(rect.left() + rect.right() - place.right() - place.left(), 0)


class FlowLayout(WrappingLayout):
    """Arranges widgets in lines, like the words of a paragraph.

    Each line is as tall as its tallest widget, and the others are centred in it. A widget that is wider than a line is
    made narrower, and a label wraps. With AlignVCenter the lines are centred in the available height.
    """

    def insertWidget(self, index: int, widget: QWidget) -> None:
        self.addWidget(widget)
        self._items.insert(index, self._items.pop())

    def expandingDirections(self) -> Qt.Orientation:
        return Qt.Orientation(0)

    def _height_for(self, width: int) -> int:
        return self._place(QRect(0, 0, width, 0), moves=False)

    def setGeometry(self, rect: QRect) -> None:
        super().setGeometry(rect)
        if self.alignment() & Qt.AlignmentFlag.AlignVCenter:
            spare = max(0, rect.height() - self.heightForWidth(rect.width()))
            rect = rect.adjusted(0, spare // 2, 0, 0)
        self._place(rect, moves=True)

    def _place(self, rect: QRect, *, moves: bool) -> int:
        """Return the height of all lines. If `moves`, also move the widgets."""
        y = rect.y()
        for line in self._lines(rect.width()):
            x, height = rect.x(), max(size.height() for _, size in line)
            for item, size in line:
                if moves:
                    top = y + (height - size.height()) // 2
                    item.setGeometry(self._mirrored(QRect(QPoint(x, top), size), rect))
                x += size.width() + self.spacing()
            y += height + self.spacing()
        return max(0, y - self.spacing() - rect.y())

    def _lines(self, width: int) -> list[list[tuple[QLayoutItem, QSize]]]:
        """Return the visible items and their sizes, line by line."""
        lines: list[list[tuple[QLayoutItem, QSize]]] = []
        left = 0
        for item in self._shown():
            size = item.sizeHint()
            if size.width() > width:
                size = QSize(width, _height(item, width))
            if not lines or size.width() > left:
                lines.append([])
                left = width
            lines[-1].append((item, size))
            left -= size.width() + self.spacing()
        return lines


class SteadyStack(QWidget):
    """Shows one of its pages, and is as large as the largest needs: what is below doesn't move when the page changes.

    A QStackedWidget has the height that the current page needs for its width.
    """

    def __init__(self, *pages: QWidget) -> None:
        super().__init__()
        layout = _StackLayout(self)
        for page in pages:
            layout.addWidget(page)
        self._pages, self._number = pages, 0

    def show_page(self, number: int) -> None:
        self._number = number
        if self.isVisible():
            self._hide_others()

    def showEvent(self, event: QShowEvent) -> None:
        """Hide all pages but one only now: one that was never shown has no style yet, and seems to be empty."""
        super().showEvent(event)
        self._hide_others()

    def _hide_others(self) -> None:
        for place, page in enumerate(self._pages):
            page.setVisible(place == self._number)


class _StackLayout(WrappingLayout):
    """Gives each item all the room, also those that are hidden, which a layout usually takes for empty."""

    def sizeHint(self) -> QSize:
        return self._largest([widget.sizeHint() for widget in self._widgets()])

    def minimumSize(self) -> QSize:
        return self._largest([widget.minimumSizeHint() for widget in self._widgets()])

    def setGeometry(self, rect: QRect) -> None:
        super().setGeometry(rect)
        for widget in self._widgets():
            widget.setGeometry(rect)

    def _height_for(self, width: int) -> int:
        heights = (each.heightForWidth(width) if each.hasHeightForWidth() else each.sizeHint().height()
                   for each in self._widgets())  # fmt: skip
        return max(heights, default=0)

    def _widgets(self) -> list[QWidget]:
        return [widget for item in self._items if (widget := item.widget()) is not None]

    def _largest(self, sizes: list[QSize]) -> QSize:
        return functools.reduce(QSize.expandedTo, sizes, QSize(0, 0))


class ResponsivePairLayout(WrappingLayout):
    """Places two widgets side by side if there is room, otherwise one below the other.

    The second has its preferred width. The first takes the rest, at least `least` pixels. With `second_grows` it is the
    other way round.
    """

    def __init__(
        self, first: QWidget, second: QWidget, *, least: int, spacing: int = 8, second_grows: bool = False
    ) -> None:
        super().__init__(spacing=spacing)
        self._least, self._second_grows = least, second_grows
        self.addWidget(first)
        self.addWidget(second)

    def set_least(self, least: int) -> None:
        """Change the least width of the widget that takes the rest."""
        if least != self._least:
            self._least = least
            self.invalidate()

    def expandingDirections(self) -> Qt.Orientation:
        return Qt.Orientation.Horizontal

    def _height_for(self, width: int) -> int:
        return max((place.bottom() + 1 for place in self._places(QRect(0, 0, width, 0))), default=0)

    def setGeometry(self, rect: QRect) -> None:
        super().setGeometry(rect)
        for item, place in zip(self._shown(), self._places(rect), strict=True):
            item.setGeometry(self._mirrored(place, rect))

    def _places(self, rect: QRect) -> list[QRect]:
        """Return the rectangles of the visible items in `rect`, whose height is only used to centre them."""
        shown = self._shown()
        if len(shown) < 2:
            return [QRect(rect.x(), rect.y(), rect.width(), _height(item, rect.width())) for item in shown]
        first, second = shown
        growing, fixed = (second, first) if self._second_grows else (first, second)
        wanted = fixed.sizeHint().width()
        left = rect.width() - wanted - self.spacing()
        is_stacked = left < max(self._least, growing.minimumSize().width())
        if is_stacked:
            wanted, left = min(wanted, rect.width()), rect.width()
        widths = (wanted, left) if self._second_grows else (left, wanted)
        heights = _height(first, widths[0]), _height(second, widths[1])
        if is_stacked:
            lower = rect.y() + heights[0] + self.spacing()
            return [
                QRect(rect.x(), rect.y(), widths[0], heights[0]),
                QRect(rect.x(), lower, widths[1], heights[1]),
            ]
        line = max(*heights, rect.height())
        tops = [rect.y() + (line - height) // 2 for height in heights]
        return [
            QRect(rect.x(), tops[0], widths[0], heights[0]),
            QRect(rect.x() + widths[0] + self.spacing(), tops[1], widths[1], heights[1]),
        ]


@contextmanager
def laid_out_once(widget: QWidget) -> Iterator[None]:
    """Have the widget's children arranged once after the block, before the window is drawn again.

    Without this, Qt arranges the widgets of the whole window for each child that is shown, within `setVisible`.
    """
    layouts = list[QLayout]()
    parent: QWidget | None = widget
    while parent is not None:
        layout: QLayout | None = parent.layout()
        if layout is not None and layout.isEnabled():
            layout.setEnabled(False)
            layouts.append(layout)
        parent = parent.parentWidget()
    try:
        yield
    finally:
        for layout in layouts:
            layout.setEnabled(True)


async def size_hidden(window: QWidget) -> None:
    """Work out the sizes of the hidden widgets of a window, one at a time, so that they are quick to show later.

    The first time, Qt applies the stylesheet to a widget for that: together 20 to 30 ms for the window of a new user.
    """
    for widget in window.findChildren(QWidget):
        if isValid(widget) and not widget.isVisible():
            widget.sizeHint()
            await asyncio.sleep(0)


def widget_with(layout: QLayout) -> QWidget:
    """Return a widget that has `layout`, for places that take a widget."""
    holder = QWidget()
    holder.setLayout(layout)
    return holder


def horizontal_group(*widgets: QWidget, spacing: int = 8) -> QWidget:
    """Return a widget that holds `widgets` side by side."""
    holder = QWidget()
    row = QHBoxLayout(holder)
    row.setContentsMargins(0, 0, 0, 0)
    row.setSpacing(spacing)
    for widget in widgets:
        row.addWidget(widget)
    return holder


def panel_scroll_area(content: QWidget) -> QScrollArea:
    """Return a scroll area for a tab of the inspector. It scrolls `content` vertically and takes no focus."""
    content.setProperty("kind", "panel")
    area = QScrollArea()
    area.setProperty("kind", "panel")
    area.setWidgetResizable(True)
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    area.setWidget(content)
    return area


def _height(item: QLayoutItem, width: int) -> int:
    return item.heightForWidth(width) if item.hasHeightForWidth() else item.sizeHint().height()


_SIDE_BY_SIDE = (QBoxLayout.Direction.LeftToRight, QBoxLayout.Direction.RightToLeft)


class DensitySpacing(QObject):
    """Keeps the vertical margins and gaps of a layout at the chosen density, for as long as the layout exists.

    Horizontal margins don't change, so that widgets of different cards remain aligned.
    """

    def __init__(self, layout: QLayout) -> None:
        """The current margins and gaps of `layout` are used as the comfortable ones."""
        super().__init__(layout)
        self._layout = layout
        self._margins, self._gap = layout.contentsMargins(), _gap(layout)
        app_theme().changed.connect(self._apply)
        self._apply()

    def set_base(self, margins: QMargins, gap: int = 0) -> None:
        """Take these margins and this gap, in logical pixels, as the comfortable ones. A gap of 0 stays as it is."""
        self._margins, self._gap = margins, gap
        self._apply()

    def _apply(self) -> None:
        theme, margins = current_theme(), self._margins
        above, below = theme.space(margins.top()), theme.space(margins.bottom())
        self._layout.setContentsMargins(QMargins(margins.left(), above, margins.right(), below))
        if self._gap > 0 and isinstance(self._layout, QGridLayout):
            self._layout.setVerticalSpacing(theme.space(self._gap))
        elif self._gap > 0:
            self._layout.setSpacing(theme.space(self._gap))


def _gap(layout: QLayout) -> int:
    """Return the gap between the layout's rows; 0 for a horizontal layout, whose gaps don't change."""
    if isinstance(layout, QGridLayout):
        return layout.verticalSpacing()
    is_row = isinstance(layout, QBoxLayout) and layout.direction() in _SIDE_BY_SIDE
    return 0 if is_row else layout.spacing()


# Width of a scroll bar in the stylesheet, in pixels.
SCROLL_BAR: Final = 12


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


class EqualColumnsLayout(WrappingLayout):
    """Arranges widgets in rows of equally wide columns, at least `least` pixels wide each.

    All rows have the same number of columns if possible: four widgets are placed as 4, 2 + 2 or one below the other.
    The widgets of a row are as tall as the tallest of them.
    """

    def __init__(self, *, least: int, spacing: int = 14, row_spacing: int = -1) -> None:
        """`row_spacing` is the space between rows in pixels; -1 takes `spacing`."""
        super().__init__(spacing=spacing)
        self._least, self._row_spacing = least, spacing if row_spacing < 0 else row_spacing

    def set_least(self, least: int) -> None:
        """Set the least width of a column in pixels."""
        self._least = least
        self.invalidate()

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
            top += height + self._row_spacing
        return places
