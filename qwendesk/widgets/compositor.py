"""Whether transparent pixels of a window show what is behind it. On X11 only a compositor does that."""

import ctypes
import functools
import logging

from PySide6.QtGui import QGuiApplication

_logger = logging.getLogger(__name__)


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
