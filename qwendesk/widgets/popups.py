"""Menus and popovers with rounded corners, behind which no square background or shadow is visible."""

from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QMenu, QStyle, QStyleOption, QWidget

from qwendesk.widgets.compositor import is_composited
from qwendesk.widgets.icons import pixmap
from qwendesk.widgets.tab_order import refocus
from qwendesk.widgets.theme_keeper import current_theme

_ARROW, _EDGE = 14, 8
"""Size of a submenu's arrow, and its distance from the edge, in logical pixels."""


class Menu(QMenu):
    """A menu with rounded corners. Add submenus with `add_submenu`, so that they have them too.

    Qt's own menus, such as that of a text field, have square corners in the stylesheet.
    """

    def __init__(self, parent: QWidget | None = None, title: str = "") -> None:
        super().__init__(title, parent)
        self.setProperty("kind", "menu")
        show_only_the_frame(self)

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

    def add_submenu(self, title: str, name: str) -> "Menu":
        """Add an empty submenu with this objectName and return it."""
        submenu = Menu(self, title)
        submenu.setObjectName(name)
        self.addMenu(submenu)
        return submenu


class Popover(QFrame):
    """A panel over the window that closes on Esc or a click beside it."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self.setProperty("kind", "popover")
        show_only_the_frame(self)

    def focusNextPrevChild(self, forward: bool) -> bool:
        return refocus(self) or super().focusNextPrevChild(forward)

    def paintEvent(self, _event: QPaintEvent) -> None:
        """Draw the frame of the stylesheet, which Qt leaves out for a transparent window."""
        option = QStyleOption()
        option.initFrom(self)
        painter = QPainter(self)
        self.style().drawPrimitive(QStyle.PrimitiveElement.PE_Widget, option, painter, self)
        painter.end()


def show_only_the_frame(popup: QWidget, frame: QWidget | None = None) -> None:
    """Leave transparent what is outside of the rounded frame. The system would draw a square shadow there.

    `frame` is the widget that has the frame, if it isn't `popup`. Without a compositor its corners are square, since
    what is transparent would be black.
    """
    flags = Qt.WindowType.FramelessWindowHint | Qt.WindowType.NoDropShadowWindowHint
    popup.setWindowFlags(popup.windowFlags() | flags)
    if is_composited():
        popup.setAttribute(Qt.WidgetAttribute.WA_TranslucentBackground)
    else:
        (frame or popup).setProperty("corners", "square")
