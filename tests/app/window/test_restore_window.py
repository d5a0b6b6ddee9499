"""The window stands where it was left."""

from collections.abc import Callable

import pytest
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication

from qwendesk.app.window.window_state import WindowState, restore_window, window_state
from tests.window_desk import Desk


async def test_window_is_restored(make_desk: Callable[[], Desk]) -> None:
    desk = make_desk()
    left = WindowState(
        x=20,
        y=30,
        width=930,
        height=610,
        page="engine",
        has_sidebar=False,
        has_inspector=True,
        knows_tray=True,
        recent=("eject",),
    )
    restore_window(desk.window, desk.parts.desktop.menus, desk.parts.desktop.tray, left)
    assert (desk.window.width(), desk.window.height()) == (930, 610)
    assert desk.is_shown("engine.page")
    desk.window.show_page("chat")
    assert not desk.is_shown("chats")
    desk.window.show_page("engine")
    assert window_state(desk.window, desk.parts.desktop.menus, desk.parts.desktop.tray) == left


async def test_the_first_window_fits_the_screen_with_its_title_bar(make_desk: Callable[[], Desk]) -> None:
    desk = make_desk()
    screen = QApplication.primaryScreen().availableSize()
    desk.window.resize(screen * 2)
    restore_window(desk.window, desk.parts.desktop.menus, desk.parts.desktop.tray, WindowState())
    assert desk.window.width() == screen.width()
    assert desk.window.height() < screen.height()


async def test_the_first_window_opens_while_there_is_no_screen(
    make_desk: Callable[[], Desk], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen under Wine: the app starts before the desktop has a screen, and ended with an error."""
    desk = make_desk()
    monkeypatch.setattr(QGuiApplication, "primaryScreen", lambda: None)
    restore_window(desk.window, desk.parts.desktop.menus, desk.parts.desktop.tray, WindowState())
    assert desk.window.width() > 0


async def test_window_is_visible_if_its_screen_is_gone(make_desk: Callable[[], Desk]) -> None:
    desk = make_desk()
    restore_window(
        desk.window,
        desk.parts.desktop.menus,
        desk.parts.desktop.tray,
        WindowState(x=50_000, y=0, width=800, height=600),
    )
    assert desk.window.width() == 800
    assert any(screen.geometry().intersects(desk.window.geometry()) for screen in QApplication.screens())
