"""The settings page as it is used: found, changed, refused, marked, reset, remembered."""

from pathlib import Path

import keyring
import pytest
from keyring.backends import fail
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QLineEdit, QWidget

from qwendesk.core import paths
from qwendesk.core.app_options import AppOptions
from qwendesk.core.settings import table
from qwendesk.hub.folders import ModelFolders, read_folders, write_folders
from qwendesk.services.settings import SettingsService, settings_file
from tests.hub.hub_server import running_hub


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders of this test's own, and a system without a keyring."""
    before = keyring.get_keyring()
    keyring.set_keyring(fail.Keyring())
    for name in ("config", "data", "cache"):
        monkeypatch.setattr(paths, f"{name}_folder", lambda name=name: tmp_path / name)
    for name in ("HF_TOKEN", "HF_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "ours").mkdir()
    write_folders(ModelFolders((str(tmp_path / "ours"),), other_apps=False))
    yield tmp_path
    keyring.set_keyring(before)


@pytest.fixture
def page(home, make_desk, qt_loop):
    desk = make_desk()
    desk.window.show_page("settings")

    async def start() -> None:
        desk.parts.settings_page.start()

    qt_loop.run(start())
    return desk


def options() -> AppOptions:
    """As they would be at the next start."""
    return SettingsService().options


def enter(desk, name: str, text: str) -> None:
    field = desk.find(name, QLineEdit)
    field.setFocus()
    field.selectAll()
    QTest.keyClicks(field, text)
    QTest.keyClick(field, Qt.Key.Key_Return)


async def test_the_gear_and_the_shortcut_open_it(home, make_desk):
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


async def test_a_change_holds_is_marked_and_is_taken_back(page):
    assert not page.is_shown("settings.network.offline.mark")
    page.click("settings.network.offline")
    assert options().offline
    assert page.parts.models.network.connection.is_offline
    assert page.is_shown("settings.network.offline.mark")
    page.click("settings.network.offline.reset")
    assert not options().offline
    assert not page.find("settings.network.offline", QAbstractButton).isChecked()
    assert not page.is_shown("settings.network.offline.reset")


async def test_a_number_out_of_range_is_refused_with_the_range(page):
    enter(page, "settings.memory.reserve_gb", "9999")
    assert "up to 256" in page.text_of("settings.memory.reserve_gb.error")
    assert options().reserve_gb == AppOptions().reserve_gb
    enter(page, "settings.memory.reserve_gb", "2.5")
    assert not page.is_shown("settings.memory.reserve_gb.error")
    assert options().reserve_gb == 2.5


async def test_a_number_steps_with_the_arrow_keys_and_esc_takes_back_what_was_typed(page):
    field = page.find("settings.look.zoom_percent", QLineEdit)
    field.setFocus()
    QTest.keyClick(field, Qt.Key.Key_Up)
    assert options().zoom_percent == 101
    QTest.keyClicks(field, "77")
    QTest.keyClick(field, Qt.Key.Key_Escape)
    assert field.text() == "101"


async def test_an_address_that_is_none_is_refused(page):
    page.click("settings.advanced")
    enter(page, "settings.network.hub_endpoint", "huggingface")
    assert "an address like" in page.text_of("settings.network.hub_endpoint.error")
    enter(page, "settings.network.hub_endpoint", "https://mirror.example")
    assert options().hub_endpoint == "https://mirror.example"
    assert "mirror.example" in page.parts.models.network.connection.host


async def test_search_looks_through_the_advanced_ones_and_the_lists_too(page):
    search = page.find("settings.search", QLineEdit)
    search.setText("proxy")
    assert page.is_shown("settings.network.proxy")
    assert not page.is_shown("settings.look.theme.dark")
    assert not page.is_shown("settings.folders")
    search.setText("lm studio")
    assert page.is_shown("settings.folders")
    search.setText("nothing is about this")
    assert page.is_shown("settings.nothing")
    search.clear()
    assert page.is_shown("settings.look.theme.dark")


async def test_the_theme_is_changed_at_once_and_there_after_a_restart(page, keeper):
    page.click("settings.look.theme.light")
    assert not keeper.theme.is_dark
    assert options().theme == "light"
    page.click("settings.look.theme.light")
    assert page.find("settings.look.theme.light", QAbstractButton).isChecked()
    keeper.choose("dark")
    assert options().theme == "dark"
    assert page.find("settings.look.theme.dark", QAbstractButton).isChecked()
    page.parts.settings_page.look.apply(with_theme=True)
    assert keeper.theme.is_dark


async def test_text_size_by_keys_is_remembered_and_a_theme_given_at_the_start_is_not(page, keeper):
    await page.until(page.window.isActiveWindow)
    page.press(Qt.Key.Key_Plus, Qt.KeyboardModifier.ControlModifier)
    assert options() == AppOptions(zoom_percent=110)
    assert page.find("settings.look.zoom_percent", QLineEdit).text() == "110"
    keeper.zoom(0)
    assert options() == AppOptions()


async def test_folders_are_added_moved_first_and_removed(page, home):
    (home / "second").mkdir()
    (home / "theirs").mkdir()
    bridge = page.parts.settings_page.folders
    bridge.add_own(str(home / "second"))
    await page.until(lambda: page.has("settings.folders.2.first"))
    page.click("settings.folders.2.first")
    await page.until(lambda: page.text_of("settings.folders.1.path") == str(home / "second"))
    assert read_folders().models == (str(home / "second"), str(home / "ours"))
    page.click("settings.folders.2.remove")
    await page.until(lambda: read_folders().models == (str(home / "second"),))
    await page.until(lambda: not page.has("settings.folders.2.first"))
    assert not page.is_shown("settings.folders.1.remove")
    bridge.add_other(str(home / "theirs"))
    await page.until(lambda: page.is_shown("settings.folders.added.1.remove"))
    page.click("settings.folders.other_apps")
    await page.until(lambda: read_folders().other_apps)


async def test_a_folder_of_another_app_is_refused(page, home):
    bridge = page.parts.settings_page.folders
    theirs = Path.home() / ".lmstudio" / "models"
    theirs.mkdir(parents=True, exist_ok=True)
    bridge.add_own(str(theirs / "mine"))
    await page.until(lambda: page.is_shown("settings.folders.error"))
    assert "LM Studio" in page.text_of("settings.folders.error")
    theirs.rmdir()
    theirs.parent.rmdir()


async def test_a_token_is_saved_tested_and_forgotten_and_never_shown(page):
    with running_hub() as hub:
        hub.accounts["secret-token"] = "ada"
        page.parts.settings.change({"hub_endpoint": hub.endpoint})
        field = page.find("settings.token.field", QLineEdit)
        assert field.echoMode() is QLineEdit.EchoMode.Password
        QTest.keyClicks(field, "secret-token")
        page.click("settings.token.save")
        assert field.text() == ""
        await page.until(lambda: "only you can read" in page.text_of("settings.token.place"))
        page.click("settings.token.test")
        await page.until(lambda: page.is_shown("settings.token.result"))
        assert "ada" in page.text_of("settings.token.result")
        page.click("settings.token.delete")
        await page.until(lambda: "No token" in page.text_of("settings.token.place"))
        from huggingface_hub.utils import close_session

        close_session()


async def test_settings_that_cannot_be_saved_are_said(page):
    settings_file().parent.mkdir(parents=True, exist_ok=True)
    settings_file().unlink(missing_ok=True)
    settings_file().mkdir()
    page.click("settings.network.offline")
    assert "could not be saved" in page.text_of("settings.note")
    settings_file().rmdir()
