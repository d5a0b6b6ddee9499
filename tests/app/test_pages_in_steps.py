"""Pages as the app opens them: in steps, between which anything may happen."""

import asyncio
from collections.abc import Callable

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QListWidget, QWidget

from qwendesk.chat.view.inspector.sampling_tab import SamplingTab
from qwendesk.engine.state import EngineState
from qwendesk.widgets.actions import ActionId, installed
from qwendesk.widgets.lazy_page import LazyPage
from qwendesk.widgets.theme_keeper import ThemeKeeper
from tests.window_desk import Desk

pytestmark = pytest.mark.usefixtures("pages_in_steps")

PAGES: tuple[ActionId, ...] = ("page_models", "page_engine", "page_bench", "page_server", "page_settings")


def lazy(desk: Desk, page: str) -> LazyPage[QWidget]:
    found: LazyPage[QWidget] = getattr(desk.parts, page)
    return found


async def opened(desk: Desk, command: ActionId) -> LazyPage[QWidget]:
    """The page that a command opens, once it is complete and arranged."""
    page = lazy(desk, f"{command.removeprefix('page_')}_page")
    installed(desk.window)[command].trigger()
    assert not page.is_built, "the first steps can't be all"
    await desk.until(lambda: page.is_built)
    await arranged()
    return page


async def arranged() -> None:
    """Let what waits in Qt's queue be done: what was added is shown, and gets its place."""
    for _ in range(10):
        await asyncio.sleep(0)


def shown(page: QWidget) -> list[str]:
    names = [each.objectName() for each in page.findChildren(QWidget) if each.isVisible()]
    return sorted(name for name in names if name and not name.startswith("qt_"))


@pytest.mark.parametrize("command", PAGES)
async def test_it_becomes_the_page_that_is_built_at_once(
    make_desk: Callable[[], Desk], command: ActionId, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_steps = shown(await opened(make_desk(), command))
    monkeypatch.setattr(LazyPage, "_begin", LazyPage.page)
    other = make_desk()
    installed(other.window)[command].trigger()
    await arranged()
    assert shown(lazy(other, f"{command.removeprefix('page_')}_page")) == in_steps
    assert len(in_steps) > 5


@pytest.mark.parametrize("command", PAGES)
async def test_the_keyboard_goes_on_in_it(desk: Desk, command: ActionId) -> None:
    desk.find("rail.models", QWidget).setFocus()
    page = await opened(desk, command)
    focus = desk.window.focusWidget()
    assert focus is not None
    assert page.page().isAncestorOf(focus), f"the focus is at {focus.objectName()}"


@pytest.mark.parametrize("passes", range(4))
@pytest.mark.parametrize("command", PAGES)
async def test_the_window_may_close_meanwhile(desk: Desk, command: ActionId, passes: int) -> None:
    installed(desk.window)[command].trigger()
    for _ in range(passes):
        await asyncio.sleep(0)
    await desk.parts.close()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    await arranged()


@pytest.mark.parametrize("command", PAGES)
async def test_who_has_left_it_types_elsewhere(desk: Desk, command: ActionId) -> None:
    page = lazy(desk, f"{command.removeprefix('page_')}_page")
    installed(desk.window)[command].trigger()
    await asyncio.sleep(0)
    installed(desk.window)["page_chat"].trigger()
    await desk.until(lambda: page.is_built)
    assert desk.window.focusWidget() is desk.composer_text
    QTest.keyClicks(desk.window.focusWidget(), "Hello")
    assert desk.composer_text.toPlainText() == "Hello"


async def test_a_link_to_a_part_waits_for_it(desk: Desk) -> None:
    desk.parts.navigation.settings_asked.emit("privacy")
    assert not desk.has("settings.privacy.delete")
    await desk.until(lambda: desk.parts.settings_page.is_built)
    await arranged()
    assert desk.is_shown("settings.privacy.delete")
    sections = desk.find("settings.sections", QListWidget)
    item = sections.currentItem()
    assert item.text() == "Privacy"


async def test_a_section_that_is_chosen_before_it_is_there_is_shown_once_it_is(desk: Desk) -> None:
    installed(desk.window)["page_settings"].trigger()
    await desk.until(lambda: desk.has("settings.sections"))
    sections = desk.find("settings.sections", QListWidget)
    names = [sections.item(row).text() for row in range(sections.count()) if not sections.isRowHidden(row)]
    assert names[0] == "Appearance"
    assert names[-1] == "Privacy"
    assert not desk.has("settings.privacy")
    sections.setCurrentRow(sections.count() - 1)
    await desk.until(lambda: desk.parts.settings_page.is_built)
    await arranged()
    assert sections.currentItem().text() == "Privacy"
    assert not desk.find("settings.privacy", QWidget).visibleRegion().isEmpty()


async def test_a_setting_is_found_while_the_rest_is_added(desk: Desk) -> None:
    installed(desk.window)["page_settings"].trigger()
    await desk.until(lambda: desk.has("settings.search"))
    assert not desk.parts.settings_page.is_built
    search = desk.find("settings.search", QWidget)
    search.setFocus()
    QTest.keyClicks(search, "tray")
    await desk.until(lambda: desk.parts.settings_page.is_built)
    await arranged()
    assert search.hasFocus()
    assert desk.is_shown("settings.start.keep_in_tray.row")
    assert not desk.is_shown("settings.privacy.delete")


async def test_a_theme_that_is_chosen_meanwhile_reaches_all_of_it(desk: Desk, keeper: ThemeKeeper) -> None:
    installed(desk.window)["page_settings"].trigger()
    await desk.until(lambda: desk.has("settings.search"))
    assert not desk.parts.settings_page.is_built
    keeper.choose("light")
    await desk.until(lambda: desk.parts.settings_page.is_built)
    await arranged()
    built = desk.parts.settings_page.grab().toImage()
    keeper.choose("dark")
    await arranged()
    assert desk.parts.settings_page.grab().toImage() != built
    keeper.choose("light")
    await desk.until(lambda: desk.parts.settings_page.grab().toImage() == built)


async def test_a_key_that_is_pressed_meanwhile_is_not_lost(desk: Desk) -> None:
    installed(desk.window)["page_settings"].trigger()
    await asyncio.sleep(0)
    QTest.keyClick(desk.window, Qt.Key.Key_1, Qt.KeyboardModifier.ControlModifier)
    await desk.until(lambda: desk.window.page == "chat")
    await desk.until(lambda: desk.parts.settings_page.is_built)


async def test_a_model_that_goes_while_the_sampling_tab_is_built_is_gone_in_it(desk: Desk) -> None:
    desk.parts.navigation.inspector_asked.emit("sampling")
    await desk.until(lambda: desk.has("inspector.sampling"))
    tab = desk.find("inspector.sampling", SamplingTab)
    assert not desk.parts.chats.sampling.is_built
    assert tab._report is not None
    desk.parts.chats.show_engine(EngineState())
    await desk.until(lambda: desk.parts.chats.sampling.is_built)
    assert tab._report is None
