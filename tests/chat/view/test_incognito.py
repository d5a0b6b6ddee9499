"""An incognito chat in the real window, while every file that is opened for writing is watched."""

import os
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData
from PySide6.QtGui import QAction, QImage

from qwendesk.core import paths
from qwendesk.core.paths import cache_folder
from tests.decoding.made_clips import animation
from tests.window_desk import Desk

SECRET = "the colour of my secret pelican"
DOCUMENT = "a line that only this private document has"


class _Writes:
    """Paths that were opened for writing while `on`. A hook can never be taken away again, so there is one."""

    def __init__(self) -> None:
        self.on = False
        self.paths: set[Path] = set()
        sys.addaudithook(self._hear)

    def _hear(self, event: str, args: tuple[object, ...]) -> None:
        if self.on and event == "open":
            path, mode, flags = args
            writes = bool(set(mode) & set("wax+")) if isinstance(mode, str) else False
            writes = writes or (isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR)))
            if writes and isinstance(path, str | bytes | os.PathLike):
                self.paths.add(Path(os.fsdecode(path)))


@pytest.fixture(scope="module")
def hook() -> _Writes:
    return _Writes()


@pytest.fixture
def writes(hook: _Writes) -> Iterator[_Writes]:
    hook.paths.clear()
    hook.on = True
    yield hook
    hook.on = False


def noise(side: int) -> QMimeData:
    """A picture of its own: no two have a run of bytes in common."""
    image = QImage(random.Random(side).randbytes(4 * side * side), side, side, QImage.Format.Format_RGB32).copy()
    mime = QMimeData()
    mime.setImageData(image)
    return mime


def pictures_in_the_cache() -> set[Path]:
    return {path for folder in ("pasted", "scaled", "pages", "clips") for path in (cache_folder() / folder).rglob("*")}


async def test_incognito_chat_writes_no_file(make_desk: Callable[[], Desk], writes: _Writes, tmp_path: Path) -> None:
    document = tmp_path / "notes.txt"
    document.write_text(DOCUMENT)
    clip = tmp_path / "walk.gif"
    before = pictures_in_the_cache()
    desk = make_desk()
    desk.parts.chats.start()
    await desk.parts.chats.opened()
    await desk.load_demo()
    desk.parts.chats.services.chat_list.new(incognito=True)
    composer = desk.window.chat_page.composer

    desk.paste(noise(700))
    await desk.until(lambda: len(composer.attachments.items) == 1)
    name = composer.attachments.items[0].name
    desk.find(f"{name}.size.small", QAction).trigger()
    desk.drop(document)
    desk.drop(animation(clip, ("red", "blue", "green"), 1000))
    await desk.until(
        lambda: len(composer.attachments.items) == 3 and all(each.tokens for each in composer.attachments.items)
    )
    await desk.ask(SECRET)
    turn = desk.parts.chat.conversation.turns[0].id
    desk.parts.chat.branch(turn)  # a branch of it is as private as it is
    await desk.ask(SECRET + " again")

    asked = desk.client.asked
    picture, *frames = asked[-1].messages[0].images
    assert [frame.frame.clip for frame in frames if frame.frame] == [clip.name] * len(frames) != []
    assert all(frame.data.startswith(b"\x89PNG") for frame in frames)
    assert picture.data.startswith(b"\x89PNG")  # the engine got the smaller copy, as bytes
    original, *_ = [
        desk.parts.chat.incognito_images.get(Path(part.path))
        for part in desk.parts.chat.conversation.turns[0].question.images
    ]
    assert original is not None
    await desk.parts.chats.services.chat_list.wait_for_writes()
    assert desk.parts.chats.services.chat_list.chats.summaries == {}

    desk.parts.chats.services.chat_list.new(incognito=True)
    assert desk.parts.chat.incognito_images.get(Path(picture.path)) is None, "the picture outlives its chat"
    secrets = (SECRET.encode(), DOCUMENT.encode(), original[2000:2064], picture.data[2000:2064], clip.name.encode())
    places = {path for folder in (*paths.own_folders(),) for path in folder.rglob("*") if path.is_file()}
    for path in places | {path for path in writes.paths if path.is_file()} - {document, clip}:
        content = path.read_bytes()
        assert not any(secret in content for secret in secrets), path
    # Files that are renamed into place, and locks, which are empty.
    gone = {path for path in writes.paths if not path.exists() and path.suffix not in (".new", ".unfinished", ".lock")}
    assert not gone, "written and taken away again"
    assert pictures_in_the_cache() == before
