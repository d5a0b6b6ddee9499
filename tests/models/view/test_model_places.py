"""Model folders and the access token, as they are changed on the settings page."""

from pathlib import Path

from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit

from qwendesk.hub.model_folders import read_folders
from qwendesk.models.view.folders_section import FoldersSection
from tests.hub.hub_server import running_hub


async def test_folders_are_added_moved_first_and_removed(page, home):
    (home / "second").mkdir()
    (home / "theirs").mkdir()
    folders = page.find("settings.folders", FoldersSection)
    folders.add_models_folder(str(home / "second"))
    await page.until(lambda: page.is_shown("settings.folders.2.first"))
    page.click("settings.folders.2.first")
    await page.until(lambda: page.text_of("settings.folders.1.path") == str(home / "second"))
    assert read_folders().models == (str(home / "second"), str(home / "ours"))
    page.click("settings.folders.2.remove")
    await page.until(lambda: read_folders().models == (str(home / "second"),))
    await page.until(lambda: not page.has("settings.folders.2.first"))
    assert not page.is_shown("settings.folders.1.remove")
    folders.use_in_place(str(home / "theirs"))
    await page.until(lambda: page.is_shown("settings.folders.added.1.remove"))
    page.click("settings.folders.other_apps")
    await page.until(lambda: read_folders().other_apps)


async def test_a_folder_of_another_app_is_refused(page, home):
    folders = page.find("settings.folders", FoldersSection)
    theirs = Path.home() / ".lmstudio" / "models"
    theirs.mkdir(parents=True, exist_ok=True)
    folders.add_models_folder(str(theirs / "mine"))
    await page.until(lambda: page.is_shown("settings.folders.error"))
    assert "LM Studio" in page.text_of("settings.folders.error")
    theirs.rmdir()
    theirs.parent.rmdir()


async def test_token_field_has_the_focus_when_opened(page):
    await page.until(page.window.isActiveWindow)
    page.parts.navigation.settings_asked.emit("token")
    await page.until(page.find("settings.token.field", QLineEdit).hasFocus)


async def test_token_is_saved_tested_and_deleted_but_never_shown(page):
    with running_hub() as hub:
        hub.accounts["secret-token"] = "ada"
        page.parts.services.settings.change({"hub_endpoint": hub.endpoint})
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
