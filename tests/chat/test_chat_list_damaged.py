"""A damaged or missing chats file: pictures are kept, and backups are made."""

from collections.abc import Callable
from pathlib import Path

import pytest

from qwendesk.store.attachments import REMOVED, own_files
from qwendesk.store.opening import ATTACHMENTS, FILE_NAME
from tests.chat.chats_kit import ChatsKit
from tests.store.attachment_files import make_old, picture, question

PICTURES = [b"0", b"1", b"2"]


async def folder_with_pictures(tmp_path: Path) -> Path:
    """A data folder with one chat with three pictures."""
    kit = await ChatsKit(tmp_path / "data").start()
    for content in PICTURES:
        image = picture(tmp_path / f"{content.decode()}.png", content)
        await kit.say("c", question(image, f"q{content.decode()}"))
    await kit.chat_list.close()
    for path in own_files(kit.folder / ATTACHMENTS):
        make_old(path)
    return kit.folder


def contents(folder: Path) -> list[bytes]:
    return sorted(path.read_bytes() for path in folder.rglob("*") if path.is_file())


async def start_and_close(folder: Path) -> None:
    kit = await ChatsKit(folder).start()
    await kit.chat_list.close()


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda path: path.unlink(), id="missing"),
        pytest.param(lambda path: path.write_bytes(b""), id="empty"),
        pytest.param(lambda path: path.write_bytes(b"\xff" * 9999), id="overwritten"),
    ],
)
async def test_pictures_survive_a_lost_chats_file(tmp_path: Path, damage: Callable[[Path], object]) -> None:
    folder = await folder_with_pictures(tmp_path)
    database = folder / FILE_NAME
    copy = database.read_bytes()
    damage(database)

    await start_and_close(folder)
    assert contents(folder / ATTACHMENTS) == PICTURES, "the first start removes nothing"
    for _ in range(2):
        await start_and_close(folder)
    assert sorted(contents(folder / ATTACHMENTS) + contents(folder / REMOVED)) == PICTURES

    # What the message asks people to do with a copy of their own.
    database.write_bytes(copy)
    await start_and_close(folder)
    assert contents(folder / ATTACHMENTS) == PICTURES
