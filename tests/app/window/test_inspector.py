"""The inspector is built when it is first opened, and then shows the chat and the model of that moment."""

from collections.abc import Callable

import msgspec
import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QAction
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit, QPlainTextEdit, QWidget

from qwendesk.app.window.window_state import WindowState, restore_window
from tests.fakes.engine import DEMO_REPORT
from tests.window_desk import Desk


def toggle_inspector(desk: Desk) -> None:
    action = desk.window.findChild(QAction, "action.inspector")
    assert action is not None
    action.trigger()


async def test_tabs_are_built_when_first_shown(desk: Desk) -> None:
    assert not any(desk.has(f"inspector.{tab}") for tab in ("load", "sampling", "system"))
    toggle_inspector(desk)
    assert desk.is_shown("inspector.load.all"), "the demo is loaded"
    assert not desk.has("inspector.sampling")
    toggle_inspector(desk)
    assert not desk.is_shown("inspector.load")


async def test_a_button_in_the_top_bar_opens_and_closes_the_inspector(desk: Desk) -> None:
    desk.window.show_page("models")
    desk.click("inspector.toggle")
    assert desk.is_shown("inspector.load.all")
    desk.click("inspector.toggle")
    assert not desk.is_shown("inspector")


async def test_tabs_show_the_settings_of_the_open_chat(desk: Desk) -> None:
    desk.parts.chat.set_system_prompt("Be brief.")
    desk.parts.chat.set_sampling({"temperature": "0.25"})
    toggle_inspector(desk)
    desk.click("inspector.tab.system")
    assert desk.find("inspector.system.text", QPlainTextEdit).toPlainText() == "Be brief."
    desk.click("inspector.tab.sampling")
    assert desk.find("inspector.sampling.sampling.temperature", QLineEdit).text() == "0.25"
    assert desk.is_shown("inspector.sampling.sampling.temperature.mark")


async def test_command_opens_the_inspector_at_its_tab(desk: Desk) -> None:
    desk.window.show_page("models")
    action = desk.window.findChild(QAction, "action.system_prompt")
    assert action is not None
    action.trigger()
    assert desk.window.page == "chat"
    assert desk.is_shown("inspector.system.text")
    assert not desk.has("inspector.load"), "the tab that nobody asked for isn't built"


async def test_sampling_tab_follows_the_loaded_model(make_desk: Callable[[], Desk]) -> None:
    desk = make_desk()
    toggle_inspector(desk)
    desk.click("inspector.tab.sampling")
    await desk.load_demo()
    temperature = desk.parts.chat.options().temperature
    assert float(desk.find("inspector.sampling.sampling.temperature", QLineEdit).text()) == temperature


@pytest.mark.parametrize(
    ("recommended", "temperature", "said"),
    [
        ({"temperature": 0.55}, 0.55, "QwenDesk doesn't know this model: its file recommends these values."),
        ({}, 0.8, "QwenDesk doesn't know this model: these are llama.cpp's values."),
    ],
)
async def test_sampling_tab_says_that_a_model_is_unknown_and_where_its_values_are_from(
    make_desk: Callable[[], Desk], recommended: dict[str, float], temperature: float, said: str
) -> None:
    desk = make_desk()
    desk.client.report = msgspec.structs.replace(
        DEMO_REPORT, architecture="llama", recommended_sampling=dict(recommended)
    )
    toggle_inspector(desk)
    desk.click("inspector.tab.sampling")
    await desk.load_demo()
    assert said in desk.text_of("inspector.sampling.summary")
    assert desk.parts.chat.options().temperature == temperature


async def test_sampling_tab_says_that_a_new_qwen_has_the_values_of_the_family_that_it_is_like(
    make_desk: Callable[[], Desk],
) -> None:
    desk = make_desk()
    template = msgspec.structs.replace(DEMO_REPORT.template, preserve_thinking=True, call_dialect="xml")
    file = msgspec.structs.replace(DEMO_REPORT.options, model="Qwen4-27B-Q4_K_M.gguf")
    desk.client.load_result = msgspec.structs.replace(DEMO_REPORT, name="Qwen4-27B", options=file, template=template)
    toggle_inspector(desk)
    desk.click("inspector.tab.sampling")
    await desk.load_demo()
    assert "these are the values of the family that it is like" in desk.text_of("inspector.sampling.summary")


async def test_sampling_tab_says_where_others_disagree_with_the_model_card(make_desk: Callable[[], Desk]) -> None:
    desk = make_desk()
    file = msgspec.structs.replace(DEMO_REPORT.options, model="Qwen3.8-27B-Q4_K_M.gguf")
    desk.client.load_result = msgspec.structs.replace(DEMO_REPORT, name="Qwen3.8-27B", options=file)
    toggle_inspector(desk)
    desk.click("inspector.tab.sampling")
    await desk.load_demo()
    said = "Others publish: Temperature 0.6, Presence penalty 1.5 (Unsloth Studio, 2026-08-22)."
    assert said in desk.text_of("inspector.sampling.summary")

    desk.parts.chat.set_thinking(False)
    assert "Others publish" not in desk.text_of("inspector.sampling.summary")


async def test_inspector_reopens_with_the_window(make_desk: Callable[[], Desk]) -> None:
    desk = make_desk()
    saved = WindowState(width=1280, height=800, has_inspector=True)
    restore_window(desk.window, desk.parts.desktop.menus, desk.parts.desktop.tray, saved)
    assert desk.is_shown("inspector.load.nothing")


def place_of(desk: Desk, name: str) -> QRect:
    widget = desk.find(name, QWidget)
    return QRect(widget.mapTo(desk.window, QPoint(0, 0)), widget.size())


async def resize(desk: Desk, width: int) -> None:
    desk.window.resize(width, 700)
    await desk.until(lambda: desk.window.chat_area.width() == width - desk.window.rail.width())


async def test_the_chat_list_makes_room_for_the_inspector(desk: Desk) -> None:
    await resize(desk, 960)
    assert desk.is_shown("chats.search")
    toggle_inspector(desk)
    await desk.until(lambda: not place_of(desk, "composer").intersects(place_of(desk, "inspector")))
    assert not desk.is_shown("chats.search")
    desk.click("inspector.close")
    assert desk.is_shown("chats.search")


@pytest.mark.parametrize("closing", ["esc", "outside", "button", "command"])
async def test_an_inspector_over_the_page_is_opened_and_closed_by_the_user(desk: Desk, closing: str) -> None:
    toggle_inspector(desk)
    await resize(desk, 560)
    await desk.until(lambda: not desk.is_shown("inspector"))
    toggle_inspector(desk)
    assert desk.is_shown("inspector.load")
    match closing:
        case "esc":
            action = desk.window.findChild(QAction, "action.stop")
            assert action is not None
            assert action.shortcut() == Qt.Key.Key_Escape
            action.trigger()
        case "outside":
            QTest.mouseClick(desk.find("chat.dimmed", QWidget), Qt.MouseButton.LeftButton, pos=QPoint(20, 200))
        case "button":
            desk.click("inspector.close")
        case "command":
            toggle_inspector(desk)
    assert not desk.is_shown("inspector")
    assert not desk.is_shown("chat.dimmed")
    await resize(desk, 1280)
    assert not desk.is_shown("inspector"), "the user closed it"


async def test_inspector_that_would_cover_the_page_does_not_reopen_by_itself(make_desk: Callable[[], Desk]) -> None:
    desk = make_desk()
    saved = WindowState(width=560, height=700, has_inspector=True)
    restore_window(desk.window, desk.parts.desktop.menus, desk.parts.desktop.tray, saved)
    await resize(desk, 560)
    assert not desk.is_shown("inspector")
    await resize(desk, 1280)
    assert desk.is_shown("inspector"), "there is space for it again"
