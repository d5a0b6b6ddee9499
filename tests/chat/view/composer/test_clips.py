"""Clips that are dropped: their cards, what is sent, and what happens to those that can't be used."""

import asyncio
import errno
import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from PIL import Image
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog

from qwendesk.chat import clip_parts
from qwendesk.chat.view.composer.attachments import Attachments
from qwendesk.chat.view.composer.clip_card import ClipCard
from qwendesk.core import paths
from qwendesk.core.chats import DraftFile
from qwendesk.core.clips import ClipChoice
from qwendesk.core.number_format import show_count
from qwendesk.decoding import ffmpeg as found_ffmpeg
from tests.decoding.made_clips import NEEDS_FFMPEG, animation, video
from tests.fakes.engine import DEMO_REPORT, PICTURE_TOKENS, FakeEngineClient
from tests.window_desk import Desk, files_mime

ShapePicture = Callable[..., Path]
COLOURS = ("red", "green", "blue", "yellow")


def row(desk: Desk) -> Attachments:
    return desk.window.chat_page.composer.attachments


def card(desk: Desk, number: int = 1) -> ClipCard:
    return desk.find(f"composer.attachment.{number}", ClipCard)


async def counted(desk: Desk, number: int = 1) -> ClipCard:
    """The card, once its frames were read and counted."""
    await desk.until(lambda: desk.has(f"composer.attachment.{number}.cost"))
    # Both at once: a clip that is read again, for the context of a model that was loaded, has neither.
    await desk.until(lambda: 0 < card(desk, number).tokens == PICTURE_TOKENS * len(card(desk, number).parts))
    return card(desk, number)


def clip(path: Path, seconds: int = 4) -> Path:
    """An animation with a colour for each second."""
    return animation(path, [COLOURS[second % 4] for second in range(seconds)], 1000)


@NEEDS_FFMPEG
async def test_a_dropped_video_shows_its_cost_and_its_frames_are_sent_with_their_times(
    desk: Desk, tmp_path: Path
) -> None:
    path = video(tmp_path / "walk.mp4", COLOURS)
    desk.drop(path)
    shown = await counted(desk)
    n_frames = len(shown.parts)
    assert n_frames > 2
    assert shown.cost.text().startswith(f"4.0 s → {n_frames} frames → ")
    await desk.ask("What happens?")
    images = desk.client.asked[0].messages[-1].images
    times = [image.frame.time_s for image in images if image.frame]
    assert len(times) == n_frames
    assert times == sorted(set(times))
    assert {image.frame.clip for image in images if image.frame} == {"walk.mp4"}
    with Image.open(images[0].path) as first, Image.open(images[-1].path) as last:
        assert first.convert("RGB").getpixel((5, 5))[0] > 150
        assert last.convert("RGB").getpixel((5, 5))[1] > 150
    assert row(desk).items == ()
    await desk.until(lambda: desk.is_shown("thread.clip.1"))


@pytest.mark.parametrize("name", ["a.gif", "a.webp", "a.png", "wrong-name.txt"])
async def test_animated_pictures_are_clips(desk: Desk, tmp_path: Path, name: str) -> None:
    ending = "gif" if name.endswith("txt") else name[2:]
    path = clip(tmp_path / f"made.{ending}").rename(tmp_path / name)
    desk.drop(path)
    shown = await counted(desk)
    assert shown.facts is not None
    assert shown.facts.duration_s == pytest.approx(4.0)
    assert desk.is_shown("composer.attachment.1.picture")


async def test_a_still_gif_stays_a_picture(desk: Desk, tmp_path: Path) -> None:
    path = tmp_path / "still.gif"
    Image.new("RGB", (64, 48), "red").save(path)
    desk.drop(path)
    await desk.until(lambda: desk.is_shown("composer.attachment.1.size"))
    assert not isinstance(row(desk).items[0], ClipCard)


async def test_model_without_vision_takes_no_clip(
    make_desk: Callable[[], Desk], client: FakeEngineClient, tmp_path: Path
) -> None:
    client.report = msgspec.structs.replace(DEMO_REPORT, can_see=False)
    desk = make_desk()
    await desk.load_demo()
    desk.drop(clip(tmp_path / "a.gif"))
    await desk.until(lambda: desk.is_shown("composer.notice"))
    assert "can't see pictures" in desk.text_of("composer.notice")
    assert row(desk).items == ()


async def test_without_ffmpeg_a_notice_says_how_to_install_it(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(found_ffmpeg, "_UNIX_FOLDERS", ())
    path = tmp_path / "a.mp4"
    path.write_bytes(b"\0\0\0\x18ftypmp42\0\0\0\0" + bytes(2000))
    desk.drop(path)
    await desk.until(lambda: desk.is_shown("composer.notice"))
    assert "ffmpeg" in desk.text_of("composer.notice")
    assert row(desk).items == ()


async def test_a_clip_can_be_removed_while_it_is_read_and_is_not_sent_before(desk: Desk, tmp_path: Path) -> None:
    desk.drop(clip(tmp_path / "a.gif"))
    await desk.until(lambda: bool(row(desk).items))
    reading = card(desk)
    assert reading.cost.text() == "Reading the clip…"
    desk.send("What happens?")
    assert "still being read" in desk.text_of("composer.notice")
    assert desk.client.asked == []
    desk.click("composer.attachment.1.remove")
    assert reading.reading.is_set()
    assert row(desk).items == ()
    other = clip(tmp_path / "b.gif")
    desk.drop(other)
    await counted(desk, 2)
    assert row(desk).paths == [other]


async def test_a_clip_is_pasted_and_chosen_in_the_dialog(desk: Desk, tmp_path: Path) -> None:
    desk.paste(files_mime(clip(tmp_path / "a.gif")))
    await counted(desk, 1)
    desk.composer_text.setFocus()
    desk.press(Qt.Key.Key_O, Qt.KeyboardModifier.ControlModifier)
    dialog = desk.window.findChild(QFileDialog)
    assert dialog is not None
    assert "*.mp4" in dialog.nameFilters()[0]
    dialog.filesSelected.emit([str(clip(tmp_path / "b.gif", 2))])
    dialog.close()
    await counted(desk, 2)
    assert [path.name for path in row(desk).paths] == ["a.gif", "b.gif"]


async def test_two_clips_and_a_picture_keep_their_order_and_share_the_context(
    desk: Desk, tmp_path: Path, shape_picture: ShapePicture
) -> None:
    desk.drop(clip(tmp_path / "one.gif"))
    first = await counted(desk, 1)
    desk.drop(shape_picture("red", "circle"), clip(tmp_path / "two.gif", 3))
    second = await counted(desk, 3)
    images = row(desk).pictures
    assert images[: len(first.parts)] == list(first.parts)
    assert images[len(first.parts)].frame is None
    assert images[len(first.parts) + 1 :] == list(second.parts)
    await desk.ask("What are these?")
    assert len(desk.client.asked[0].messages[-1].images) == len(images)
    await desk.until(lambda: desk.is_shown("thread.clip.2"))


async def test_the_same_clip_is_attached_once(desk: Desk, tmp_path: Path) -> None:
    path = clip(tmp_path / "a.gif")
    desk.drop(path)
    await counted(desk)
    desk.drop(path)
    other = tmp_path / "note.txt"
    other.write_text("words")
    desk.drop(other)
    await desk.until(lambda: len(row(desk).items) == 2)
    assert row(desk).paths == [path, other]


async def test_frames_are_made_once_and_in_the_size_of_the_plan(desk: Desk, tmp_path: Path) -> None:
    desk.drop(clip(tmp_path / "a.gif"))
    shown = await counted(desk)
    files = {Path(part.path) for part in shown.parts}
    assert {file.parent.parent for file in files} == {paths.cache_folder() / "clips"}
    before = {file: file.stat().st_mtime_ns for file in files}
    row(desk).clear()
    desk.drop(tmp_path / "a.gif")
    assert (await counted(desk, 2)).parts == shown.parts
    assert {file: file.stat().st_mtime_ns for file in files} == before


async def test_a_draft_keeps_the_clip_and_its_choices(desk: Desk, tmp_path: Path) -> None:
    path = clip(tmp_path / "a.gif")
    file = DraftFile(str(path), clip=ClipChoice(2, 1.0, 3.0))
    desk.window.chat_page.attachments.restore([file])
    shown = await counted(desk)
    assert row(desk).drafts == [file]
    times = [part.frame.time_s for part in shown.parts if part.frame]
    assert len(times) == 2
    assert 1.0 <= times[0] < times[1] <= 3.0


async def test_a_clip_dropped_before_the_model_is_loaded_is_counted_afterwards(
    make_desk: Callable[[], Desk], tmp_path: Path
) -> None:
    desk = make_desk()
    desk.drop(clip(tmp_path / "a.gif"))
    await desk.until(lambda: desk.has("composer.attachment.1.cost"))
    await desk.until(lambda: "frames" in card(desk).cost.text())
    assert "tokens" not in card(desk).cost.text()
    await desk.load_demo()
    shown = await counted(desk)
    assert f"{show_count(shown.tokens)} tokens" in shown.cost.text()


@pytest.mark.parametrize(("in_pairs", "n_frames"), [(False, 8), (True, 12)])
async def test_a_clip_takes_a_quarter_of_what_is_free_at_most(
    make_desk: Callable[[], Desk], client: FakeEngineClient, tmp_path: Path, in_pairs: bool, n_frames: int
) -> None:
    client.report = msgspec.structs.replace(DEMO_REPORT, n_ctx=1024, pairs_frames=in_pairs)
    desk = make_desk()
    await desk.load_demo()
    desk.drop(clip(tmp_path / "a.gif", 12))
    shown = await counted(desk)
    assert shown.plan is not None
    assert shown.plan.tokens <= 1024 / 4
    assert len(shown.parts) == n_frames


async def test_a_clip_read_for_one_chat_is_not_attached_in_the_next(desk: Desk, tmp_path: Path) -> None:
    desk.drop(clip(tmp_path / "a.gif"))
    desk.parts.chat.new_chat()
    other = tmp_path / "note.txt"
    other.write_text("words")
    desk.drop(other)
    await desk.until(lambda: bool(row(desk).items))
    await asyncio.sleep(0)
    assert row(desk).paths == [other]


async def test_on_a_full_disk_the_card_says_so_and_the_clip_can_be_attached_again(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    path = clip(tmp_path / "a.gif", 6)
    with monkeypatch.context() as full:
        full.setattr(clip_parts, "write_whole", refuse)
        desk.drop(path)
        await desk.until(lambda: bool(row(desk).items) and card(desk).cost.text() == "Clip not saved")
        desk.send("What happens?")
        assert "Free some disk space" in desk.text_of("composer.notice")
        assert desk.client.asked == []
    desk.click("composer.attachment.1.remove")
    desk.drop(path)
    assert len((await counted(desk, 2)).parts) == 6


async def test_frames_of_an_incognito_chat_are_in_memory_only(desk: Desk, tmp_path: Path) -> None:
    desk.parts.chats.services.chat_list.new(incognito=True)
    folder = paths.cache_folder() / "clips"
    before = set(folder.rglob("*"))
    desk.drop(clip(tmp_path / "a.gif", 10))
    shown = await counted(desk)
    assert len(shown.parts) == 10
    assert not any(map(os.path.exists, (part.path for part in shown.parts)))
    assert set(folder.rglob("*")) == before
