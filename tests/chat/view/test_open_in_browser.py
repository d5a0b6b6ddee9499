"""HTML and SVG of an answer open in the system's browser."""

from pathlib import Path

import pytest
from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices

from qwendesk.core import paths
from tests.fakes.engine import ScriptedAnswer
from tests.window_desk import Desk

ANSWER = "Here:\n\n```html\n<h1>Hello</h1>\n```\n\nand\n\n```python\nprint()\n```\n"


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    found: list[Path] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: found.append(Path(QUrl(url).toLocalFile())))
    return found


@pytest.fixture(autouse=True)
def unexplained() -> None:
    """The user has not been told yet: the home folder is that of the whole session."""
    (paths.config_folder() / "browser-pages.json").unlink(missing_ok=True)


async def answered(desk: Desk) -> None:
    await desk.load_demo()
    desk.client.answers = [ScriptedAnswer(text=ANSWER)]
    await desk.ask("A page, please")
    await desk.until(lambda: desk.is_shown("thread.code.open"))


async def test_page_opens_after_a_sentence_the_first_time(desk: Desk, opened: list[Path]) -> None:
    await answered(desk)
    desk.click("thread.code.open")
    await desk.until(lambda: desk.is_shown("browserpage.open"))
    assert "Scripts don't run" in desk.text_of("browserpage.consequence")
    assert not opened
    desk.click("browserpage.open")
    await desk.until(lambda: bool(opened))
    assert b"&lt;h1&gt;Hello&lt;/h1&gt;" in opened[0].read_bytes()
    assert opened[0].parent == paths.cache_folder() / "browser-pages"

    await desk.until(lambda: not desk.has("browserpage"))
    desk.click("thread.code.open")
    await desk.until(lambda: len(opened) == 2)
    assert not desk.has("browserpage"), "the user knows now"


async def test_nothing_is_written_without_a_yes(desk: Desk, opened: list[Path]) -> None:
    await answered(desk)
    desk.click("thread.code.open")
    await desk.until(lambda: desk.is_shown("browserpage.cancel"))
    desk.click("browserpage.cancel")
    await desk.until(lambda: not desk.has("browserpage"))
    assert not opened
    assert not list((paths.cache_folder() / "browser-pages").glob("*"))


async def test_incognito_chat_asks_each_time(desk: Desk, opened: list[Path]) -> None:
    desk.parts.chats.sidebar.new_incognito()
    await answered(desk)
    for number in (1, 2):
        desk.click("thread.code.open")
        await desk.until(lambda: desk.is_shown("browserpage.open"))
        assert "incognito" in desk.text_of("browserpage.consequence")
        desk.click("browserpage.open")
        await desk.until(lambda number=number: len(opened) == number and not desk.has("browserpage"))


async def test_pages_are_deleted_when_the_app_closes(desk: Desk, opened: list[Path]) -> None:
    await answered(desk)
    desk.click("thread.code.open")
    await desk.until(lambda: desk.is_shown("browserpage.open"))
    desk.click("browserpage.open")
    await desk.until(lambda: bool(opened))
    await desk.parts.close()
    assert not opened[0].exists()
