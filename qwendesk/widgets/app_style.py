"""Qt's style of the application: round menus, and tooltips in lines that can be read."""

import ctypes
import functools
import logging

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFont, QGuiApplication, QPalette, QTextLayout
from PySide6.QtWidgets import QApplication, QLabel, QMenu, QProxyStyle, QWidget

# Width of a tooltip's text in pixels.
_TIP_WIDTH = 440
_logger = logging.getLogger(__name__)


class AppStyle(QProxyStyle):
    """Fusion, with round menus and wrapped tooltips.

    Qt makes menus of its own: of text fields, of selectable text, of scroll bars. It wraps a tooltip that shows its
    text as it is only where the screen ends.
    """

    def __init__(self) -> None:
        super().__init__("Fusion")

    def polish(self, target: QWidget | QApplication | QPalette | Qt.GlobalColor | QColor, /) -> None:
        # Before the first time a menu is shown, and again after each change of the stylesheet.
        if isinstance(target, QMenu) and not target.testAttribute(Qt.WidgetAttribute.WA_WState_Created):
            show_only_the_frame(target)
        super().polish(target)
        # A tooltip is polished again each time that it is placed, before its size is chosen.
        if isinstance(target, QLabel) and target.inherits("QTipLabel"):
            target.setText(wrapped(target.text(), target.font(), _TIP_WIDTH))


def wrapped(text: str, font: QFont, width: int) -> str:
    """Return the text with line breaks, so that no line is wider than `width` pixels unless a word is."""
    lines: list[str] = []
    for paragraph in text.split("\n"):
        layout, start = QTextLayout(paragraph, font), len(lines)
        code_units = paragraph.encode("utf-16-le", "surrogatepass")
        layout.beginLayout()
        while (line := layout.createLine()).isValid():
            line.setLineWidth(width)
            part = code_units[2 * line.textStart() : 2 * (line.textStart() + line.textLength())]
            lines.append(part.decode("utf-16-le", "surrogatepass").rstrip(" "))
        layout.endLayout()
        if len(lines) == start:
            lines.append("")
    return "\n".join(lines)


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


@functools.cache
def is_composited() -> bool:
    """Return False on an X11 display without a compositor, where transparent pixels are black. Asked once."""
    if QGuiApplication.platformName() != "xcb":
        return True
    try:
        return _has_compositor(ctypes.CDLL("libX11.so.6"))
    except OSError as error:
        _logger.info("Whether there is a compositor is unknown: %s", error)
        return True


def _has_compositor(x11: ctypes.CDLL) -> bool:
    """Return whether a program owns the selection _NET_WM_CM_Sn, as the compositor of screen n does."""
    x11.XOpenDisplay.restype = ctypes.c_void_p
    x11.XInternAtom.restype = x11.XGetSelectionOwner.restype = ctypes.c_ulong
    display = ctypes.c_void_p(x11.XOpenDisplay(None))
    if not display.value:
        return True
    selection = f"_NET_WM_CM_S{x11.XDefaultScreen(display)}".encode()
    owner = x11.XGetSelectionOwner(display, ctypes.c_ulong(x11.XInternAtom(display, selection, 0)))
    x11.XCloseDisplay(display)
    return bool(owner)
