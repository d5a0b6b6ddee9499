"""Clips in the conversation: one strip for each, and a viewer that walks the frames with their times."""

from pathlib import Path

import pytest
from PIL import Image
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QWidget

from qwendesk.chat.image_parts import image_part
from qwendesk.chat.view.thread.pictures.picture_viewer import PictureViewer
from qwendesk.core.messages import ClipFrame, ImagePart
from tests.window_desk import Desk


@pytest.fixture
def frames(tmp_path: Path) -> list[ImagePart]:
    """Of a clip of 24 seconds, a frame each second. The first two are the same picture."""
    made = []
    for second in range(24):
        path = tmp_path / f"{max(1, second)}.png"
        Image.new("RGB", (320, 180), (10 * max(1, second), 60, 120)).save(path)
        made.append(ImagePart(str(path), image_part(path).sha256, frame=ClipFrame("walk.mp4", "sha", second, 24.0)))
    return made


def n_shown(desk: Desk, clip: int) -> int:
    return next(number for number in range(1, 99) if not desk.has(f"thread.clip.{clip}.frame.{number}")) - 1


async def test_frames_of_a_clip_are_two_rows_with_times_and_the_rest_is_a_button(
    desk: Desk, frames: list[ImagePart]
) -> None:
    await desk.parts.chat.send("What happens?", frames)
    await desk.until(lambda: desk.is_shown("thread.clip.1"))
    strip = desk.find("thread.clip.1", QWidget)
    assert desk.text_of("thread.clip.1.title") == "walk.mp4 · 24 s"
    assert strip.accessibleName() == "Clip walk.mp4 · 24 s"
    await desk.until(lambda: desk.is_shown("thread.clip.1.more"))
    shown = n_shown(desk, 1)
    assert 3 <= shown < 24
    assert desk.text_of("thread.clip.1.more") == f"+ {24 - shown} more"
    assert len({desk.find(f"thread.clip.1.frame.{n + 1}", QWidget).parentWidget().y() for n in range(shown)}) == 2
    assert "0:01" in [label.text() for label in strip.findChildren(QLabel)]
    assert desk.find("thread.clip.1.frame.3", QWidget).accessibleName() == "Picture walk.mp4, 0:02"


async def test_the_viewer_walks_the_frames_with_their_times(desk: Desk, frames: list[ImagePart]) -> None:
    await desk.parts.chat.send("What happens?", frames)
    await desk.until(lambda: desk.is_shown("thread.clip.1.frame.2"))
    desk.click("thread.clip.1.frame.2")
    viewer = desk.window.findChild(PictureViewer)
    assert viewer is not None
    await desk.until(viewer.has_picture)
    assert desk.text_of("picture.place") == "2 of 24 · walk.mp4, 0:01"
    QTest.keyClick(viewer.canvas, Qt.Key.Key_Right)
    assert viewer.windowTitle() == "walk.mp4, 0:02"
    viewer.close()


async def test_the_rest_of_the_frames_opens_where_the_strip_ends(desk: Desk, frames: list[ImagePart]) -> None:
    await desk.parts.chat.send("What happens?", frames)
    await desk.until(lambda: desk.is_shown("thread.clip.1.more"))
    shown = n_shown(desk, 1)
    desk.click("thread.clip.1.more")
    viewer = desk.window.findChild(PictureViewer)
    assert viewer is not None
    assert viewer.windowTitle() == f"walk.mp4, 0:{shown:02}"
    viewer.close()


async def test_pictures_and_two_clips_are_shown_apart(desk: Desk, frames: list[ImagePart], tmp_path: Path) -> None:
    picture = image_part(tmp_path / "5.png")
    other = [
        ImagePart(each.path, each.sha256, frame=ClipFrame("run.webm", "other", float(at), 3.0))
        for at, each in enumerate(frames[:3])
    ]
    await desk.parts.chat.send("What is this?", [picture, *other, *frames[:2]])
    await desk.until(lambda: desk.is_shown("thread.clip.2"))
    assert desk.is_shown("thread.picture.1")
    assert not desk.has("thread.picture.2")
    assert (n_shown(desk, 1), n_shown(desk, 2)) == (3, 2)
    assert not desk.is_shown("thread.clip.1.more")
    assert desk.text_of("thread.clip.1.title").startswith("run.webm")


async def test_an_edited_question_keeps_its_clip(desk: Desk, frames: list[ImagePart]) -> None:
    await desk.parts.chat.send("What happens?", frames[:4])
    turn = desk.parts.chat.conversation.turns[0]
    await desk.parts.chat.edit_question(turn.id, "And why?")
    assert [image.frame for image in desk.client.asked[-1].messages[-1].images] == [each.frame for each in frames[:4]]
    await desk.until(lambda: desk.is_shown("thread.clip.1.frame.4"))


async def test_another_answer_is_asked_with_the_same_frames(desk: Desk, frames: list[ImagePart]) -> None:
    await desk.parts.chat.send("What happens?", frames[:4])
    await desk.until(lambda: desk.is_shown("thread.regenerate.1"))
    desk.click("thread.regenerate.1")
    await desk.until(lambda: len(desk.client.asked) == 2)
    first, again = (asked.messages[-1].images for asked in desk.client.asked)
    assert [image.frame for image in again] == [each.frame for each in frames[:4]]
    assert again == first
    await desk.until(lambda: desk.is_shown("thread.version.1"))
    assert n_shown(desk, 1) == 4
