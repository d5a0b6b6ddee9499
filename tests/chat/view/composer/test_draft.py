"""Attachments survive a crash and switching between chats."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from PySide6.QtGui import QAction

from qwendesk.core.chats import DraftFile
from tests.chat.view.composer.test_cards import ShapePicture, row
from tests.chat.view.sidebar.chats_desk import ChatsDesk
from tests.window_desk import Desk


async def test_attachments_are_restored_after_a_crash(
    qt_loop: asyncio.Runner, desk: Desk, make_desk: Callable[[], Desk], shape_picture: ShapePicture, tmp_path: Path
) -> None:
    first = await ChatsDesk(desk, tmp_path / "data").open_file()
    picture, text = shape_picture("red", "circle", side=600), tmp_path / "text.txt"
    text.write_text("words")
    desk.drop(picture, text)
    await desk.until(lambda: len(row(desk).items) == 2)
    small = desk.window.findChild(QAction, "composer.attachment.1.size.small")
    assert small is not None
    small.trigger()
    desk.type("half a question")
    await desk.parts.chats.services.chat_list.wait_for_writes()

    other = (await ChatsDesk(make_desk(), first.folder).open_file()).desk
    await other.until(lambda: len(row(other).items) == 2)

    assert row(other).drafts == [DraftFile(str(picture), longest_side=512), str(text)]
    assert other.composer_text.toPlainText() == "half a question"


async def test_attachments_stay_with_their_chat(
    qt_loop: asyncio.Runner, desk: Desk, shape_picture: ShapePicture, tmp_path: Path
) -> None:
    chats = await ChatsDesk(desk, tmp_path / "data").open_file()
    await chats.ask("One")
    picture = shape_picture("red", "circle")
    desk.drop(picture)
    await desk.until(lambda: row(desk).paths == [picture])
    desk.click("chats.new")
    await desk.until(lambda: row(desk).items == ())
    chats.click("One")
    await desk.until(lambda: row(desk).paths == [picture])
