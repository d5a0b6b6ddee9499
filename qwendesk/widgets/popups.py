"""Menus and popovers with rounded corners, and a popover with a search field above a list."""

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, QSize, Qt
from PySide6.QtGui import QKeyEvent, QPainter, QPaintEvent, QShowEvent
from PySide6.QtWidgets import (
    QFrame,
    QLabel,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QMenu,
    QStyle,
    QStyleOption,
    QVBoxLayout,
    QWidget,
)

from qwendesk.widgets.app_style import show_only_the_frame
from qwendesk.widgets.buttons import describe, press_by_enter
from qwendesk.widgets.icons import pixmap
from qwendesk.widgets.tab_order import focus_next, refocus
from qwendesk.widgets.theme_keeper import current_theme

# Size of a submenu's arrow, and its distance from the edge, as a menu's from the window's, in logical pixels.
_ARROW, _EDGE = 14, 8
# Between a button and its menu.
_GAP = 4


class Menu(QMenu):
    """A menu that stays inside its window, with arrows in the theme's colour at its submenus (`add_submenu`)."""

    def __init__(self, parent: QWidget, title: str = "") -> None:
        super().__init__(title, parent)
        self._button: QWidget | None = None
        """The button that it was opened at, unless that has it as its own menu."""
        self.setProperty("kind", "menu")

    def open_at(self, button: QWidget, *, is_right_aligned: bool = False) -> None:
        """Open below a button: their left edges meet, or their right ones."""
        self._button = button
        x = button.width() - self.sizeHint().width() if is_right_aligned else 0
        self.popup(button.mapToGlobal(QPoint(x, button.height() + _GAP)))

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw our own arrow for each submenu, because the stylesheet's would have one colour in every theme."""
        super().paintEvent(event)
        painter, is_mirrored = QPainter(self), self.layoutDirection() is Qt.LayoutDirection.RightToLeft
        for action in self.actions():
            if not isinstance(action.menu(), QMenu):
                continue
            row, place = self.actionGeometry(action), QRect(0, 0, _ARROW, _ARROW)
            place.moveCenter(row.center())
            place.moveLeft(row.left() + _EDGE) if is_mirrored else place.moveRight(row.right() - _EDGE)
            color = current_theme()["text_dim" if action.isEnabled() else "text_off"]
            name = "left" if is_mirrored else "right"
            painter.drawPixmap(place, pixmap(name, color, _ARROW, self.devicePixelRatioF()))
        painter.end()

    def showEvent(self, event: QShowEvent) -> None:
        """Keep the menu of a button inside of the window: beside its right edge, and above a button near its end."""
        super().showEvent(event)
        parent = self.parentWidget()
        window = parent.window() if parent is not None else None
        if window is None or window.windowType() is Qt.WindowType.Popup:
            return  # a submenu, or a menu of a popover, which may be wider than that
        inside = window.geometry().adjusted(_EDGE, 0, -_EDGE, 0)
        too_far = min(self.geometry().right() - inside.right(), self.x() - inside.left())
        if too_far > 0:
            self.move(self.x() - too_far, self.y())
        owners = (each for each in self.menuAction().associatedObjects() if isinstance(each, QWidget))
        button = self._button or next(owners, None)
        if button is None or self.geometry().bottom() <= inside.bottom():
            return
        above = button.mapToGlobal(QPoint(0, -_GAP)).y() - self.height()
        if above >= inside.top():
            self.move(self.x(), above)

    def add_submenu(self, title: str, name: str) -> "Menu":
        """Add an empty submenu with this objectName and return it."""
        submenu = Menu(self, title)
        submenu.setObjectName(name)
        self.addMenu(submenu)
        return submenu


class Popover(QFrame):
    """A panel over the window that closes on Esc or a click beside it. Tab moves the focus in reading order."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self.setProperty("kind", "popover")
        show_only_the_frame(self)

    def focusNextPrevChild(self, forward: bool) -> bool:
        return refocus(self) or focus_next(self, self.focusWidget(), forward=forward)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not press_by_enter(self, event):
            super().keyPressEvent(event)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw the frame of the stylesheet, which Qt leaves out for a transparent window."""
        option = QStyleOption()
        option.initFrom(self)
        painter = QPainter(self)
        self.style().drawPrimitive(QStyle.PrimitiveElement.PE_Widget, option, painter, self)
        painter.end()


_PAGE = 8
_MOVES = {Qt.Key.Key_Down: 1, Qt.Key.Key_Up: -1, Qt.Key.Key_PageDown: _PAGE, Qt.Key.Key_PageUp: -_PAGE}
# Smallest distance in pixels from the window's left and right edge.
_WINDOW_EDGE = 8
# Height in pixels of what is around the list: the search field, and the window above and below the popover.
_AROUND = 200


class SearchPopover(Popover):
    """Built each time it is opened. Object names of its controls begin with `name`."""

    def __init__(self, name: str, title: str, parent: QWidget, *, width: int, row_height: int, most_rows: int) -> None:
        super().__init__(parent)
        self._window, self._row_height, self._most_rows = parent, row_height, most_rows
        self.setObjectName(name)
        self.setAccessibleName(title)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setFixedWidth(min(width, parent.width() - 40))
        self._query = QLineEdit()
        self._query.installEventFilter(self)
        self._query.textChanged.connect(self._refill)
        self._query.returnPressed.connect(self._choose_current)
        self._list = QListWidget()
        self._list.setProperty("kind", "palette")
        self._list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._list.itemClicked.connect(lambda _item: self._choose_current())
        self._remark = QLabel()
        self._remark.setObjectName(f"{name}.nothing")
        self._remark.setProperty("kind", "small")
        self.column = QVBoxLayout(self)
        self.column.setContentsMargins(12, 12, 12, 12)
        self.column.setSpacing(8)
        self.column.addWidget(self._query)
        self.column.addWidget(self._remark)
        self.column.addWidget(self._list)

    def describe_parts(self, search: str, tip: str, rows: str) -> None:
        """Name the search field, which shows `search` while it is empty, and the list."""
        self._query.setPlaceholderText(search)
        describe(self._query, f"{self.objectName()}.query", search, tip)
        describe(self._list, f"{self.objectName()}.list", rows)

    def fill(self, query: str) -> str:
        """Add a row for everything that matches `query`. Return a remark to show above the list, or "" for none."""
        raise NotImplementedError

    def choose(self, key: str) -> None:
        """Do what the chosen row means. The popover is closed already."""
        raise NotImplementedError

    def add_row(self, key: str, row: QWidget, spoken: str) -> QListWidgetItem:
        """Add a row and return its item. `spoken` is its text for screen readers."""
        item = QListWidgetItem()
        item.setData(Qt.ItemDataRole.UserRole, key)
        set_spoken(item, spoken)
        item.setSizeHint(QSize(0, self._row_height))
        self._list.addItem(item)
        self._list.setItemWidget(item, row)
        return item

    def open_at(self, widget: QWidget, top: int) -> None:
        """Show the popover `top` pixels below the upper edge of `widget`, and focus the search field.

        It is centred below `widget` as far as the window is wide enough.
        """
        self._refill("")
        place = widget.mapTo(self._window, QPoint((widget.width() - self.width()) // 2, top))
        place.setX(max(_WINDOW_EDGE, min(place.x(), self._window.width() - self.width() - _WINDOW_EDGE)))
        self.move(self._window.mapToGlobal(place))
        self.show()
        self._query.setFocus()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self._query and isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            step = _MOVES.get(Qt.Key(event.key()))
            if step is not None:
                last = self._list.count() - 1
                self._list.setCurrentRow(max(0, min(last, self._list.currentRow() + step)))
                return True
        return super().eventFilter(watched, event)

    def _refill(self, query: str) -> None:
        self._list.clear()
        remark = self.fill(query)
        self._remark.setText(remark)
        self._remark.setVisible(bool(remark))
        self._list.setCurrentRow(0)
        count = self._list.count()
        self._list.setVisible(count > 0)
        most = min(self._most_rows, (self._window.height() - _AROUND) // self._row_height)
        self._list.setFixedHeight(min(count, most) * self._row_height)
        self.fit_height()

    def refill(self) -> None:
        """Fill the list again, because there is something else to show."""
        self._refill(self._query.text())

    def fit_height(self) -> None:
        """Give the popover the height of its content, after something in it was shown or hidden."""
        has_flow = self.column.hasHeightForWidth()
        self.setFixedHeight(self.column.heightForWidth(self.width()) if has_flow else self.column.sizeHint().height())

    def _choose_current(self) -> None:
        if self._list.currentRow() >= 0:
            key: str = self._list.currentItem().data(Qt.ItemDataRole.UserRole)
            self.close()
            self.choose(key)


def set_spoken(item: QListWidgetItem, text: str) -> None:
    """Set the text of a row for screen readers."""
    item.setData(Qt.ItemDataRole.AccessibleTextRole, text)
