"""A damaged chats file: the window says how much was lost, and the backup can be used instead."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from PySide6.QtWidgets import QLabel

from qwendesk.store.backups import backups
from qwendesk.store.opening import CHOSEN_BACKUP, FILE_NAME, open_store
from tests.chat.view.sidebar.chats_desk import ChatsDesk
from tests.store.chat_nodes import node
from tests.store.corruption import pages_of
from tests.window_desk import Desk


def damage_newest_message(folder: Path) -> None:
    """A chat in the backup, one message after it, and the page with that message is gone."""
    store, _report = open_store(folder)
    store.chats.save_node("c", node("q1", text="old " * 900)).result()
    store.back_up()
    store.chats.save_node("c", node("a1", "q1", text="<<newest>> " * 300)).result()
    store.close()
    path = folder / FILE_NAME
    pages = pages_of(path)
    (page,) = (number for number, page in enumerate(pages) if page[0] == 13 and b"<<newest>>" in page)
    pages[page] = bytes(len(pages[page]))
    path.write_bytes(b"".join(pages))


async def test_lost_messages_are_counted_and_the_backup_is_offered(
    qt_loop: object, make_desk: Callable[[], Desk], tmp_path: Path
) -> None:
    folder = tmp_path / "chats"
    await asyncio.to_thread(damage_newest_message, folder)
    (backup,) = backups(folder / FILE_NAME)
    desk = make_desk()

    await ChatsDesk(desk, folder).open_file()

    sentence = desk.find("recovered.sentence", QLabel).text()
    assert "recovered 1 chat with 1 message" in sentence
    assert "Lost: 1 message" in sentence
    desk.click("recovered.use")
    await desk.until(lambda: desk.has("backup.sentence"))
    assert (folder / CHOSEN_BACKUP).read_text() == backup.path.name
