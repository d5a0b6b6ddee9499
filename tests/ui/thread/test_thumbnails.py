"""Pictures shown small: one that cannot be read any more says so in its place."""

import asyncio
from pathlib import Path

import pytest
from PySide6.QtCore import QSize
from PySide6.QtWidgets import QApplication

from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.thread.thumbnails import PictureShelf, Thumbnail


@pytest.mark.parametrize(("content", "words"), [(None, "not there any more"), (b"no picture", "not a picture")])
def test_a_picture_that_cannot_be_read_says_so(
    keeper: ThemeKeeper, app: QApplication, tmp_path: Path, content: bytes | None, words: str
) -> None:
    path = tmp_path / "holiday.png"
    if content is not None:
        path.write_bytes(content)
    thumbnail = Thumbnail(keeper, path, QSize(184, 132))
    while_reading = thumbnail.grab().toImage()

    asyncio.run(thumbnail.fill(PictureShelf()))

    assert words in thumbnail.accessibleDescription()
    assert thumbnail.grab().toImage().copy(0, 40, 100, 40) != while_reading.copy(0, 40, 100, 40)
    thumbnail.deleteLater()
