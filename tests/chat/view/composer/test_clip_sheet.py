"""The sheet of a clip: the number of frames, a part of the clip, and what they cost."""

from collections.abc import Callable
from pathlib import Path

import msgspec
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QLineEdit, QScrollArea, QSlider, QWidget

from qwendesk.chat.view.composer.clip_card import ClipCard
from qwendesk.core.chats import DraftFile
from qwendesk.core.clips import ClipChoice
from tests.chat.view.composer.test_clips import COLOURS, card, clip, counted, row
from tests.decoding.made_clips import NEEDS_FFMPEG, run_ffmpeg, video
from tests.fakes.engine import DEMO_REPORT, FakeEngineClient
from tests.window_desk import Desk


async def opened(desk: Desk, path: Path) -> ClipCard:
    desk.drop(path)
    shown = await counted(desk)
    desk.click("composer.attachment.1.frames")
    await desk.until(lambda: desk.is_shown("clip.sheet"))
    return shown


def times(shown: ClipCard) -> list[float]:
    return [part.frame.time_s for part in shown.parts if part.frame]


async def test_the_slider_changes_frames_and_cost_and_use_makes_them_again(desk: Desk, tmp_path: Path) -> None:
    shown = await opened(desk, clip(tmp_path / "a.gif", 12))
    before = len(shown.parts)
    slider, cost = desk.find("clip.frames", QSlider), desk.text_of("clip.cost")
    assert f"{before} frames" in cost
    assert not desk.find("clip.automatic", QAbstractButton).isEnabled()
    QTest.keyClick(slider, Qt.Key.Key_Home)
    assert "2 frames" in desk.text_of("clip.cost")
    assert slider.accessibleDescription() == desk.text_of("clip.cost") != cost
    await desk.until(lambda: not desk.is_shown("clip.frame.3"))
    desk.click("clip.use")
    await desk.until(lambda: len(shown.parts) == 2)
    assert row(desk).drafts == [DraftFile(str(tmp_path / "a.gif"), clip=ClipChoice(2))]

    desk.click("composer.attachment.1.frames")
    await desk.until(lambda: desk.is_shown("clip.sheet"))
    desk.click("clip.automatic")
    desk.click("clip.use")
    await desk.until(lambda: len(shown.parts) == before)
    assert row(desk).drafts == [str(tmp_path / "a.gif")]


async def test_a_part_is_chosen_by_its_begin_and_end(desk: Desk, tmp_path: Path) -> None:
    shown = await opened(desk, clip(tmp_path / "a.gif", 12))
    begin, end = desk.find("clip.begin", QLineEdit), desk.find("clip.end", QLineEdit)
    assert (begin.text(), end.text()) == ("0:00", "0:12")
    end.setText("0:0x")
    assert "minutes and seconds" in desk.text_of("clip.problem")
    assert not desk.find("clip.use", QAbstractButton).isEnabled()
    end.setText("0:07")
    begin.setText("0:09")
    assert "before it ends" in desk.text_of("clip.problem")
    begin.setText("0:03")
    assert not desk.is_shown("clip.problem")
    desk.click("clip.use")
    await desk.until(lambda: bool(shown.parts) and times(shown)[0] >= 3)
    assert times(shown)[-1] <= 7
    assert shown.choice == ClipChoice(0, 3.0, 7.0)
    await desk.until(lambda: "tokens" in shown.cost.text())
    assert shown.cost.text().startswith("4.0 s → ")


async def test_the_strip_shows_the_frames_with_their_times(desk: Desk, tmp_path: Path) -> None:
    shown = await opened(desk, clip(tmp_path / "a.gif", 4))
    strip = desk.find("clip.strip", QScrollArea)
    assert strip.accessibleName() == "Frames at 0:00, 0:01, 0:02, 0:03"

    def colour(number: int) -> tuple[int, int, int]:
        image = desk.find(f"clip.frame.{number}", QWidget).grab().toImage()
        return image.pixelColor(image.rect().center()).getRgb()[:3]  # type: ignore[return-value]

    await desk.until(lambda: colour(1)[0] > 150 and colour(2)[1] > 150 and colour(3)[2] > 150)
    QTest.keyClick(desk.find("clip.frames", QWidget), Qt.Key.Key_Escape)
    await desk.until(lambda: not desk.is_shown("clip.sheet"))
    assert times(shown) == [0.5, 1.5, 2.5, 3.5]
    assert shown.choice == ClipChoice()


@NEEDS_FFMPEG
async def test_only_of_a_clip_with_sound_it_is_said_that_the_sound_is_not_used(desk: Desk, tmp_path: Path) -> None:
    silent, loud = video(tmp_path / "silent.mp4", COLOURS), tmp_path / "loud.mp4"
    run_ffmpeg("-i", silent, "-f", "lavfi", "-i", "sine=duration=4", "-c:v", "copy", loud)
    await opened(desk, loud)
    assert "sound isn't used" in desk.text_of("clip.about")
    desk.click("clip.cancel")
    row(desk).clear()
    desk.drop(silent)
    await counted(desk, 2)
    desk.click("composer.attachment.2.frames")
    await desk.until(lambda: desk.is_shown("clip.sheet"))
    assert "sound" not in desk.text_of("clip.about")
    assert card(desk, 2).facts is not None


async def test_more_frames_take_half_of_what_is_free_at_most(
    make_desk: Callable[[], Desk], client: FakeEngineClient, tmp_path: Path
) -> None:
    client.report = msgspec.structs.replace(DEMO_REPORT, n_ctx=1024, pairs_frames=False)
    desk = make_desk()
    await desk.load_demo()
    shown = await opened(desk, clip(tmp_path / "a.gif", 40))
    assert shown.plan is not None
    automatic = shown.plan
    assert automatic.tokens <= 1024 / 4
    QTest.keyClick(desk.find("clip.frames", QSlider), Qt.Key.Key_End)
    desk.click("clip.use")
    await desk.until(lambda: shown.choice != ClipChoice() and len(shown.parts) > len(automatic.times))
    assert 1024 / 4 < shown.plan.tokens <= 1024 / 2
