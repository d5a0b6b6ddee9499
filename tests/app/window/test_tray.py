"""Closing the window to the tray, and out of it again."""

import pytest
from PySide6.QtCore import QEvent
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QSystemTrayIcon

from qwendesk.app.application import Application
from qwendesk.app.window.single_instance import Handover
from qwendesk.app.window.tray import tray_icon
from qwendesk.widgets.theme import load_theme
from qwendesk.widgets.theme_keeper import ThemeKeeper
from tests.window_desk import Desk


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A desktop with a tray; what is said beside its icon."""
    said: list[str] = []
    monkeypatch.setattr(QSystemTrayIcon, "isSystemTrayAvailable", lambda: True)
    monkeypatch.setattr(QSystemTrayIcon, "showMessage", lambda _icon, _title, text, *_rest: said.append(text))
    return said


@pytest.fixture
def closed(said: list[str], desk: Desk) -> list[bool]:
    """How often the app was told to end; the option is on."""
    closed: list[bool] = []
    desk.window.closed.connect(lambda: closed.append(True))
    desk.parts.services.settings.change({"keep_in_tray": True})
    return closed


def choose(desk: Desk, name: str) -> None:
    tray = desk.parts.desktop.tray
    action = next(each for each in tray.icon.contextMenu().actions() if each.objectName() == f"tray.{name}")
    assert isinstance(action, QAction)
    assert action.isEnabled()
    action.trigger()


async def test_closing_hides_the_window_and_explains_it_once(desk: Desk, closed: list[bool], said: list[str]) -> None:
    assert desk.parts.desktop.tray.icon.isVisible()
    for _ in range(2):
        desk.window.close()
        assert desk.window.isHidden()
        choose(desk, "open")
        assert desk.window.isVisible()
    assert closed == []
    assert len(said) == 1
    assert "Quit" in said[0]


async def test_no_model_is_said_to_stay_loaded_where_none_is(desk: Desk, closed: list[bool], said: list[str]) -> None:
    desk.window.eject()
    await desk.until(lambda: desk.parts.engine.state.report is None)
    desk.window.close()
    assert said == ["QwenDesk keeps running. To close it, choose Quit in this icon's menu."]


@pytest.mark.parametrize("name", ["dark", "light"])
def test_the_icon_is_seen_on_dark_and_on_light_panels(keeper: ThemeKeeper, name: str) -> None:
    """The logo alone, in the accent's dark violet, was lost on a dark panel."""
    theme = load_theme(name, 1.0, is_compact=False)
    drawn = tray_icon(theme).pixmap(64, 64).toImage()
    assert drawn.pixelColor(0, 0).alpha() == 0, "round corners"
    assert drawn.pixelColor(32, 2) == theme.color("fill")
    inside = {drawn.pixelColor(x, y).name() for x in range(8, 56) for y in range(8, 56)}
    assert theme.color("on_fill").name() in inside


async def test_the_menu_works_while_the_window_is_hidden(desk: Desk, closed: list[bool]) -> None:
    desk.window.show_page("models")
    desk.window.close()
    choose(desk, "eject")
    await desk.until(lambda: desk.parts.engine.state.report is None)
    assert desk.window.isHidden()
    choose(desk, "new")
    assert desk.is_shown("composer.text")
    desk.window.close()
    choose(desk, "quit")
    assert closed == [True]


async def test_quit_and_logging_off_end_the_app(desk: Desk, closed: list[bool]) -> None:
    desk.window.close()
    assert closed == []
    desk.parts.desktop.tray.end_of_session()
    assert closed == [True]
    desk.window.show()
    desk.window.findChild(QAction, "action.quit").trigger()
    assert len(closed) == 2


async def test_quitting_does_not_say_that_the_app_keeps_running(
    desk: Desk, closed: list[bool], said: list[str]
) -> None:
    desk.window.findChild(QAction, "action.quit").trigger()
    assert closed == [True]
    assert desk.window.isHidden()
    assert said == []


async def test_a_second_start_raises_the_hidden_window(desk: Desk, closed: list[bool]) -> None:
    desk.window.close()
    desk.parts.desktop.handed_over(Handover())
    assert desk.window.isVisible()
    assert closed == []


async def test_without_the_option_closing_quits_and_no_icon_is_shown(desk: Desk, closed: list[bool]) -> None:
    desk.parts.services.settings.change({"keep_in_tray": False})
    assert not desk.parts.desktop.tray.icon.isVisible()
    desk.window.close()
    assert closed == [True]


async def test_without_a_tray_closing_quits_and_the_setting_explains_it(desk: Desk) -> None:
    closed: list[bool] = []
    desk.window.closed.connect(lambda: closed.append(True))
    desk.window.show_page("settings")
    desk.parts.services.settings.change({"keep_in_tray": True})
    assert "no tray" in desk.text_of("settings.start.keep_in_tray.error")
    desk.window.close()
    assert closed == [True]


async def test_long_answer_is_notified_without_its_text(
    desk: Desk, closed: list[bool], said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.window.close()
    said.clear()
    monkeypatch.setattr("qwendesk.app.desktop.LONG_S", 0.0)
    desk.parts.tasks.start(desk.parts.chat.send("A secret question"))
    await desk.until(lambda: bool(said))
    assert said == ["Your answer is ready."]
    assert closed == []


async def test_quit_by_the_system_ends_the_app_despite_the_tray(
    desk: Desk, closed: list[bool], app: Application
) -> None:
    app.give_to(desk.parts.desktop.file_opener)
    try:
        app.sendEvent(app, QEvent(QEvent.Type.Quit))
    finally:
        app.give_to(None)
    assert closed == [True]


async def test_a_quit_that_the_system_asks_for_before_the_window_is_there_waits_for_it(
    desk: Desk, closed: list[bool], app: Application
) -> None:
    app.sendEvent(app, QEvent(QEvent.Type.Quit))
    assert closed == []
    app.give_to(desk.parts.desktop.file_opener)
    app.give_to(None)
    assert closed == [True]
