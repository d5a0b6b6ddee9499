"""Saves and restores the window's position, size and page, in a small file next to the settings."""

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QRect, QSize
from PySide6.QtGui import QGuiApplication, QScreen

from qwendesk.core import paths
from qwendesk.core.json_file import JsonFile

if TYPE_CHECKING:
    from qwendesk.app.window.command_menus import CommandMenus
    from qwendesk.app.window.main_window import MainWindow
    from qwendesk.app.window.tray import Tray

# How many logical pixels of the window must be on a screen, horizontally and vertically.
_MIN_VISIBLE = 100
# Space for the title bar, which is unknown before the window is shown, in logical pixels.
_TITLE_BAR = QSize(0, 40)


class WindowState(msgspec.Struct, frozen=True, kw_only=True):
    """Position and size are in logical pixels; with `width` 0, both are unknown."""

    x: int = 0
    y: int = 0
    width: int = 0
    height: int = 0
    is_maximised: bool = False
    page: str = ""
    has_sidebar: bool = True
    has_inspector: bool = False
    knows_tray: bool = False
    """The user has been told that closing only hides the window."""
    recent: tuple[str, ...] = ()
    """The most recently used commands of the palette, the latest first."""


def window_file() -> Path:
    return paths.config_folder() / "window.json"


def read_window_state(file: Path | None = None) -> WindowState:
    """Return the saved state of the window; the defaults if there is no usable file."""
    return _file(file).read()


def write_window_state(state: WindowState, file: Path | None = None) -> None:
    """Save the state of the window; log the error if that fails."""
    _file(file).try_write(state)


def _file(path: Path | None) -> JsonFile[WindowState]:
    return JsonFile(path or window_file(), WindowState, WindowState, keep_unusable=False)


def restore_window(window: "MainWindow", menus: "CommandMenus", tray: "Tray", state: WindowState) -> None:
    """Restore the window before it is shown; without its position if that is no longer on any screen."""
    menus.remember(state.recent)
    if not state.has_sidebar:
        window.chat_area.toggle_sidebar()
    tray.is_known = state.knows_tray
    if state.has_inspector:
        window.chat_area.restore_inspector()
    if state.page:
        window.show_page(state.page)
    if not state.width or not state.height:
        screen: QScreen | None = QGuiApplication.primaryScreen()
        # There is none for a moment while a driver or a desktop starts, and in a remote session that is cut off.
        if screen is not None:
            window.resize(window.size().boundedTo(screen.availableSize() - _TITLE_BAR))
        return
    window.resize(state.width, state.height)
    place = QRect(state.x, state.y, state.width, state.height)
    on_screens = [screen.availableGeometry().intersected(place) for screen in QGuiApplication.screens()]
    if any(part.width() >= _MIN_VISIBLE and part.height() >= _MIN_VISIBLE for part in on_screens):
        window.move(state.x, state.y)
    if state.is_maximised:
        window.showMaximized()


def window_state(window: "MainWindow", menus: "CommandMenus", tray: "Tray") -> WindowState:
    """Return the current state; for a maximised window, the position and size to which it is restored."""
    place = window.normalGeometry() if window.isMaximized() else QRect(window.pos(), window.size())
    return WindowState(
        x=place.x(),
        y=place.y(),
        width=place.width(),
        height=place.height(),
        is_maximised=window.isMaximized(),
        page=window.page,
        has_inspector=window.chat_area.is_inspector_wanted,
        knows_tray=tray.is_known,
        has_sidebar=window.chat_area.is_sidebar_wanted,
        recent=menus.recent,
    )
