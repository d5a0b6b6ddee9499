"""The card of the search key on the settings page, and the two options above it."""

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit

from qwendesk.core import paths
from qwendesk.hub.access_tokens import SEARCH_HOST, load_token
from qwendesk.settings.service import SettingsService
from qwendesk.toolbox.web.web_search import chosen_service
from tests.window_desk import Desk


async def enter_key(desk: Desk) -> None:
    field = desk.find("settings.searchkey.field", QLineEdit)
    field.setFocus()
    QTest.keyClicks(field, " key-1729 ")
    assert field.displayText() != " key-1729 ", "it is typed unseen"
    desk.click("settings.searchkey.save")
    await desk.until(lambda: "in a file that only you can read" in desk.text_of("settings.searchkey.place"))


async def test_key_is_saved_and_deleted(page: Desk) -> None:
    await page.until(lambda: page.text_of("settings.searchkey.place") == "No key. Only Brave Search needs one.")
    await enter_key(page)
    assert load_token(SEARCH_HOST) == "key-1729"
    assert page.find("settings.searchkey.field", QLineEdit).text() == "", "it is never shown again"
    page.click("settings.searchkey.delete")
    await page.until(lambda: page.text_of("settings.searchkey.place").startswith("No key"))
    assert load_token(SEARCH_HOST) == ""


async def test_key_that_cannot_be_saved_is_said(page: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(paths, "config_folder", lambda: tmp_path / "file")
    field = page.find("settings.searchkey.field", QLineEdit)
    QTest.keyClicks(field, "key-1729")
    page.click("settings.searchkey.save")
    await page.until(lambda: "The key couldn't be saved" in page.text_of("settings.searchkey.result"))


async def test_service_and_address_are_chosen_there(page: Desk) -> None:
    page.click("settings.web.search_service.searxng")
    field = page.find("settings.web.searxng_address", QLineEdit)
    QTest.keyClicks(field, "http://localhost:8080")
    QTest.keyClick(field, Qt.Key.Key_Return)
    await page.parts.services.settings.close()
    service = chosen_service(SettingsService().options)
    assert (service.title, service.host) == ("SearXNG", "localhost:8080")


async def test_address_that_is_none_is_refused(page: Desk) -> None:
    field = page.find("settings.web.searxng_address", QLineEdit)
    for text in ("localhost:8080", "http://user:secret@localhost", "ftp://nas", "http://"):
        field.selectAll()
        QTest.keyClicks(field, text)
        QTest.keyClick(field, Qt.Key.Key_Return)
        assert page.text_of("settings.web.searxng_address.error")
    assert page.parts.services.settings.options.searxng_address == ""
