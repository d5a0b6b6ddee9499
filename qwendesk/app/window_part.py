"""Puts the window where it was left, and remembers where it is when it closes."""

from PySide6.QtCore import QRect
from PySide6.QtGui import QGuiApplication

from qwendesk.services.window_state import WindowState
from qwendesk.ui.frame.finder import Finder
from qwendesk.ui.frame.main_window import MainWindow
from qwendesk.ui.frame.tray import Tray

_SEEN = 100
"""Logical pixels of the window, each way, that must be on a screen that is there."""


def restore_window(window: MainWindow, finder: Finder, tray: Tray, state: WindowState) -> None:
    """Before it is shown. A place on a screen that is gone is passed over, the size is kept."""
    finder.remember(state.recent)
    if not state.has_sidebar:
        window.chat_room.toggle_sidebar()
    tray.is_known = state.knows_tray
    if state.has_inspector:
        window.chat_room.show_inspector()
    if state.page:
        window.show_page(state.page)
    if not state.width or not state.height:
        return
    window.resize(state.width, state.height)
    place = QRect(state.x, state.y, state.width, state.height)
    on_screens = [screen.availableGeometry().intersected(place) for screen in QGuiApplication.screens()]
    if any(part.width() >= _SEEN and part.height() >= _SEEN for part in on_screens):
        window.move(state.x, state.y)
    if state.is_maximised:
        window.showMaximized()


def window_state(window: MainWindow, finder: Finder, tray: Tray) -> WindowState:
    """As it is now; of a maximised window the place it goes back to."""
    place = window.normalGeometry() if window.isMaximized() else QRect(window.pos(), window.size())
    return WindowState(
        x=place.x(),
        y=place.y(),
        width=place.width(),
        height=place.height(),
        is_maximised=window.isMaximized(),
        page=window.page,
        has_inspector=window.chat_room.is_inspector_wanted,
        knows_tray=tray.is_known,
        has_sidebar=window.chat_room.is_sidebar_wanted,
        recent=finder.recent,
    )
