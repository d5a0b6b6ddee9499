"""The settings page as it is used: found, changed, refused, marked, reset, remembered."""

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QComboBox, QLabel, QLineEdit, QListWidget, QScrollArea, QWidget

from qwendesk.core.app_options import AppOptions
from qwendesk.core.settings import table
from qwendesk.settings.service import SettingsService, settings_file
from tests.window_desk import Desk

_THEME = "settings.appearance.theme.row"


async def options(desk) -> AppOptions:
    """As they would be at the next start."""
    await desk.parts.services.settings.close()
    return SettingsService().options


def enter(desk, name: str, text: str) -> None:
    field = desk.find(name, QLineEdit)
    field.setFocus()
    field.selectAll()
    QTest.keyClicks(field, text)
    QTest.keyClick(field, Qt.Key.Key_Return)


async def test_gear_and_shortcut_open_the_page(home, make_desk):
    desk = make_desk()
    desk.click("rail.settings")
    assert desk.is_shown("settings.search")
    desk.window.show_page("chat")
    assert not desk.is_shown("settings.search")
    desk.composer_text.setFocus()
    await desk.until(desk.window.isActiveWindow)
    desk.press(Qt.Key.Key_Comma, Qt.KeyboardModifier.ControlModifier)
    assert desk.is_shown("settings.search")


async def test_every_option_has_a_row_and_the_basic_ones_are_on_screen(page):
    for entry in table(AppOptions).values():
        rows = [each for each in page.window.findChildren(QWidget) if each.objectName().endswith(f".{entry.key}.row")]
        (row,) = [each for each in rows if each.objectName().startswith("settings.")]
        assert row.isHidden() is not entry.setting.basic
    page.click("settings.advanced")
    assert page.is_shown("settings.network.proxy")


async def test_nothing_is_cut_off_in_the_narrowest_window(page):
    page.window.resize(page.window.minimumSize())
    page.click("settings.advanced")
    area = next(each for each in page.window.findChildren(QScrollArea) if each.isAncestorOf(page.find(_THEME, QWidget)))
    # If the content is too wide, it can be scrolled sideways, though there is no scroll bar.
    await page.until(lambda: area.width() < 560 and area.horizontalScrollBar().maximum() == 0)
    row, dark = page.find(_THEME, QWidget), page.find("settings.appearance.theme.dark", QWidget)
    texts = page.find("settings.appearance.theme.label", QWidget)
    await page.until(lambda: dark.mapTo(row, QPoint()).y() > texts.mapTo(row, QPoint()).y() + texts.height())


async def test_change_is_saved_marked_and_reset(page):
    assert not page.is_shown("settings.network.offline.mark")
    page.click("settings.network.offline")
    assert (await options(page)).offline
    assert page.parts.services.models.network.connection.is_offline
    assert page.is_shown("settings.network.offline.mark")
    page.click("settings.network.offline.reset")
    assert not (await options(page)).offline
    assert not page.find("settings.network.offline", QAbstractButton).isChecked()
    assert not page.is_shown("settings.network.offline.reset")


async def test_a_number_out_of_range_is_refused_with_the_range(page):
    enter(page, "settings.models.reserve_gb", "9999")
    assert "up to 256" in page.text_of("settings.models.reserve_gb.error")
    assert (await options(page)).reserve_gb == AppOptions().reserve_gb
    enter(page, "settings.models.reserve_gb", "2.5")
    assert not page.is_shown("settings.models.reserve_gb.error")
    assert (await options(page)).reserve_gb == 2.5


async def test_arrow_keys_step_a_number_and_esc_discards_typing(page):
    field = page.find("settings.appearance.zoom_percent", QLineEdit)
    field.setFocus()
    QTest.keyClick(field, Qt.Key.Key_Up)
    assert (await options(page)).zoom_percent == 101
    QTest.keyClicks(field, "77")
    QTest.keyClick(field, Qt.Key.Key_Escape)
    assert field.text() == "101"


async def test_search_includes_advanced_options_and_choices(page):
    search = page.find("settings.search", QLineEdit)
    search.setText("proxy")
    assert page.is_shown("settings.network.proxy")
    assert not page.is_shown("settings.appearance.theme.dark")
    assert not page.is_shown("settings.folders")
    search.setText("lm studio")
    assert page.is_shown("settings.folders")
    search.setText("nothing is about this")
    assert page.is_shown("settings.nothing")
    assert page.text_of("settings.nothing") == "Nothing found for “nothing is about this”."
    search.clear()
    assert page.is_shown("settings.appearance.theme.dark")


async def test_what_a_search_found_by_hidden_words_says_by_which(page):
    """The search for "folder" found "What tools may do without asking", in which no folder was to be read."""
    search = page.find("settings.search", QLineEdit)
    search.setText("folder")
    found = page.find("settings.consents", QWidget)
    texts = [each.text() for each in found.findChildren(QLabel) if each.isVisible()]
    assert found.isVisible()
    assert any("folder" in text.lower() for text in texts)
    search.setText("metered")
    assert page.text_of("settings.models.gpu_engine.found") == "Found by: metered"
    search.setText("download")
    assert not page.is_shown("settings.models.gpu_engine.found"), "its help says it"
    search.clear()
    assert not page.is_shown("settings.consents.found")


async def test_the_page_opens_with_all_settings_after_a_search(desk: Desk) -> None:
    desk.window.go_to("settings")
    search = desk.find("settings.search", QLineEdit)
    search.setText("proxy")
    desk.window.go_to("chat")
    desk.window.go_to("settings")
    assert search.text() == ""
    assert desk.is_shown("settings.appearance")


@pytest.mark.parametrize(
    ("flag", "said"),
    [
        ("-ngl", "GPU offload belongs to a model: it's in the inspector beside the chat."),
        ("--port", "QwenDesk's own server is set up on the Server page."),
    ],
)
async def test_search_for_a_flag_says_where_its_option_is(page, flag: str, said: str):
    page.find("settings.search", QLineEdit).setText(flag)
    assert page.text_of("settings.nothing") == said


async def test_the_hint_of_the_theme_follows_the_choice(page):
    hint = page.find("settings.appearance.theme.text", QLabel)
    assert hint.text() == "Follows your system's appearance."
    page.click("settings.appearance.theme.light")
    assert hint.text() == "Always light."
    page.parts.services.settings.change({"theme": "dark"})
    assert hint.text() == "Always dark."


async def test_theme_changes_at_once_and_is_restored_after_a_restart(page, keeper):
    page.click("settings.appearance.theme.light")
    assert not keeper.theme.is_dark
    assert (await options(page)).theme == "light"
    page.click("settings.appearance.theme.light")
    assert page.find("settings.appearance.theme.light", QAbstractButton).isChecked()
    keeper.choose("dark")
    assert (await options(page)).theme == "dark"
    assert page.find("settings.appearance.theme.dark", QAbstractButton).isChecked()
    page.parts.appearance.apply(with_theme=True)
    assert keeper.theme.is_dark


async def test_zoom_is_saved_and_a_theme_of_the_command_line_is_not(page, keeper):
    await page.until(page.window.isActiveWindow)
    page.press(Qt.Key.Key_Plus, Qt.KeyboardModifier.ControlModifier)
    assert (await options(page)) == AppOptions(zoom_percent=110)
    assert page.find("settings.appearance.zoom_percent", QLineEdit).text() == "110"
    keeper.zoom(0)
    assert (await options(page)) == AppOptions()


async def test_failed_save_is_shown(page):
    settings_file().parent.mkdir(parents=True, exist_ok=True)
    settings_file().unlink(missing_ok=True)
    settings_file().mkdir()
    page.click("settings.network.offline")
    await page.until(lambda: page.is_shown("settings.note"))
    assert "couldn't be saved" in page.text_of("settings.note")
    page.window.show_page("chat")
    page.parts.services.settings.change({"offline": False})
    await page.until(lambda: page.is_shown("banner"))
    assert "couldn't be saved" in page.text_of("banner.sentence"), "on other pages too"
    settings_file().rmdir()


async def test_another_language_offers_a_restart_which_quits_and_asks_to_start_again(page):
    assert not page.is_shown("settings.appearance.language.restart")
    page.parts.services.settings.change({"language": "de"})
    assert page.is_shown("settings.appearance.language.restart")
    page.parts.services.settings.change({"language": ""})
    assert not page.is_shown("settings.appearance.language.restart")
    page.parts.services.settings.change({"language": "de"})
    closed = []
    page.window.closed.connect(lambda: closed.append(True))
    assert not page.window.wants_restart
    page.click("settings.appearance.language.restart")
    assert page.window.wants_restart
    assert closed
    assert (await options(page)).language == "de"


def top_of(page, name: str) -> int:
    card = page.find(name, QWidget)
    return card.mapTo(card.window(), QPoint()).y()


async def test_list_of_sections_leads_to_them_and_marks_where_the_user_is(page):
    page.window.resize(1280, 800)
    sections = page.find("settings.sections", QListWidget)
    await page.until(sections.isVisible)
    names = [sections.item(place).text() for place in range(sections.count())]
    assert sections.currentItem().text() == "Appearance"
    for name, card in (("Games", "settings.games"), ("Tools", "settings.mcp")):
        sections.setCurrentRow(names.index(name))
        await page.until(lambda card=card: 0 < top_of(page, card) < 200)
        assert sections.currentItem().text() == name
    area = next(each for each in page.window.findChildren(QScrollArea) if each.isAncestorOf(page.find(_THEME, QWidget)))
    area.verticalScrollBar().setValue(0)
    assert sections.currentItem().text() == "Appearance"
    QTest.keyClick(sections, Qt.Key.Key_Down)
    assert sections.currentItem().text() == "Chats"


async def test_list_has_only_the_sections_that_were_found(page):
    page.window.resize(1280, 800)
    sections = page.find("settings.sections", QListWidget)
    enter(page, "settings.search", "language")
    shown = [sections.item(place).text() for place in range(sections.count()) if not sections.isRowHidden(place)]
    assert shown == ["Appearance"]


async def test_sections_are_a_menu_where_there_is_no_room_for_the_list(page):
    page.window.resize(900, 640)
    menu = page.find("settings.menu", QComboBox)
    await page.until(menu.isVisible)
    assert not page.is_shown("settings.sections")
    menu.activated.emit(menu.findText("Privacy"))
    await page.until(lambda: menu.currentText() == "Privacy")
    page.window.resize(1280, 800)
    await page.until(lambda: page.is_shown("settings.sections"))
    assert not menu.isVisible()


async def test_web_origins_must_be_addresses(page):
    enter(page, "settings.server.server_origins", "localhost:3000/path")
    assert "http://localhost:3000" in page.text_of("settings.server.server_origins.error")
    enter(page, "settings.server.server_origins", "http://localhost:3000; app://obsidian.md")
    assert (await options(page)).server_origins == ("http://localhost:3000", "app://obsidian.md")
