"""Thumbnails of pictures."""

import asyncio
from pathlib import Path

import pytest
from PySide6.QtCore import QSize
from PySide6.QtWidgets import QApplication

from qwendesk.chat.view.thread.pictures.thumbnails import PreviewCache, Thumbnail
from qwendesk.widgets.theme_keeper import ThemeKeeper


@pytest.mark.parametrize(("content", "words"), [(None, "could not be found"), (b"no picture", "can't open")])
def test_unreadable_picture_shows_an_error_in_its_place(
    keeper: ThemeKeeper, app: QApplication, tmp_path: Path, content: bytes | None, words: str
) -> None:
    path = tmp_path / "holiday.png"
    if content is not None:
        path.write_bytes(content)
    thumbnail = Thumbnail(path, QSize(184, 132))
    while_reading = thumbnail.grab().toImage()

    asyncio.run(thumbnail.fill(PreviewCache()))

    assert words in thumbnail.accessibleDescription()
    assert thumbnail.grab().toImage().copy(0, 40, 100, 40) != while_reading.copy(0, 40, 100, 40)
    thumbnail.deleteLater()
