"""The window stands where it was left."""

from collections.abc import Callable

from PySide6.QtWidgets import QApplication

from qwendesk.app.window_part import restore_window, window_state
from qwendesk.services.window_state import WindowState
from tests.ui.desk import Desk


async def test_it_is_as_it_was_left(make_desk: Callable[[], Desk]) -> None:
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
    restore_window(desk.window, desk.parts.around.finder, desk.parts.around.tray, left)
    assert (desk.window.width(), desk.window.height()) == (930, 610)
    assert desk.is_shown("engine.page")
    desk.window.show_page("chat")
    assert not desk.is_shown("chats")
    desk.window.show_page("engine")
    assert window_state(desk.window, desk.parts.around.finder, desk.parts.around.tray) == left


async def test_nothing_remembered_changes_nothing(make_desk: Callable[[], Desk]) -> None:
    desk = make_desk()
    before = window_state(desk.window, desk.parts.around.finder, desk.parts.around.tray)
    restore_window(desk.window, desk.parts.around.finder, desk.parts.around.tray, WindowState())
    assert window_state(desk.window, desk.parts.around.finder, desk.parts.around.tray) == before


async def test_a_screen_that_is_gone_does_not_hide_the_window(make_desk: Callable[[], Desk]) -> None:
    desk = make_desk()
    restore_window(
        desk.window, desk.parts.around.finder, desk.parts.around.tray, WindowState(x=50_000, y=0, width=800, height=600)
    )
    assert desk.window.width() == 800
    assert any(screen.geometry().intersects(desk.window.geometry()) for screen in QApplication.screens())
