"""Animated pictures give the frames that browsers show, without ffmpeg."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from qwendesk.decoding.clips import ClipError, clip_facts, clip_frames
from tests.decoding.made_clips import (
    COLOURS,
    animation,
    colour_at,
    colours_of,
    picture,
)

FOUR = ("red", "green", "blue", "yellow")


@pytest.mark.parametrize("ending", ["gif", "webp", "png"])
def test_transparent_animations_are_shown_on_white(tmp_path: Path, ending: str) -> None:
    frames = []
    for left in (0, 16, 32):
        frame = Image.new("RGBA", (48, 16), (0, 0, 0, 0))
        frame.paste(Image.new("RGBA", (16, 16), (*COLOURS["blue"], 255)), (left, 0))
        frame.putpixel((left, 0), (0, 0, 0, 0))
        frames.append(frame)
    made = tmp_path / f"clip.{ending}"
    disposal = {"png": {"disposal": 1}, "gif": {"disposal": 2}, "webp": {}}[ending]
    frames[0].save(made, save_all=True, append_images=frames[1:], duration=100, loop=0, lossless=True, **disposal)

    shown = [picture(png) for png in clip_frames(made, (0.05, 0.15, 0.25), 48, None)]

    seen = [[colour_at(image, x) for x in (1 / 6, 3 / 6, 5 / 6)] for image in shown]
    assert seen == [["blue" if column == number else "white" for column in range(3)] for number in range(3)]


def test_an_animated_png_has_a_picture_for_other_programs(tmp_path: Path) -> None:
    """The picture is not part of the animation."""
    made = tmp_path / "clip.png"
    frames = [Image.new("RGB", (64, 48), COLOURS[colour]) for colour in ("black", "red", "green")]
    frames[0].save(made, save_all=True, append_images=frames[1:], duration=100, default_image=True)

    assert clip_facts(made, None).n_frames == 2
    assert colours_of(clip_frames(made, (0.05, 0.15), 32, None)) == ["red", "green"]


@pytest.mark.parametrize("delay_ms", [0, 10])
def test_frames_without_a_delay_stay_as_long_as_in_browsers(tmp_path: Path, delay_ms: int) -> None:
    made = animation(tmp_path / "clip.gif", FOUR, delay_ms)
    facts = clip_facts(made, None)
    assert (facts.duration_s, facts.frames_per_s) == (pytest.approx(0.4), pytest.approx(10))
    assert colours_of(clip_frames(made, (0.05, 0.15, 0.25, 0.35), 32, None)) == list(FOUR)


def test_ten_thousand_tiny_frames(tmp_path: Path) -> None:
    first, second = Image.new("L", (2, 2), 240), Image.new("L", (2, 2), 15)
    made = tmp_path / "many.gif"
    first.save(made, save_all=True, append_images=[second, first] * 4_999 + [second], duration=100, loop=0)
    facts = clip_facts(made, None)
    assert (facts.n_frames, facts.duration_s) == (10_000, pytest.approx(1_000))
    assert colours_of(clip_frames(made, (500.05, 500.15, 999.95), 2, None)) == ["white", "black", "black"]


def test_a_still_picture_is_a_clip_of_one_frame(tmp_path: Path) -> None:
    Image.new("RGB", (64, 48), COLOURS["red"]).save(tmp_path / "still.png")
    facts = clip_facts(tmp_path / "still.png", None)
    assert (facts.n_frames, facts.duration_s, facts.frames_per_s) == (1, 0, 0)
    assert colours_of(clip_frames(tmp_path / "still.png", (0.0, 4.0), 32, None)) == ["red", "red"]


@pytest.mark.parametrize("ending", ["gif", "webp", "png"])
def test_an_animation_that_was_cut_off(tmp_path: Path, ending: str) -> None:
    rng = np.random.default_rng(1)
    noise = [Image.fromarray(rng.integers(0, 255, (64, 64, 3), dtype=np.uint8)) for _ in range(8)]
    whole = tmp_path / f"whole.{ending}"
    noise[0].save(whole, save_all=True, append_images=noise[1:], duration=100, loop=0)
    made = tmp_path / f"cut.{ending}"
    made.write_bytes(whole.read_bytes()[: whole.stat().st_size // 2])
    if ending == "webp":  # libwebp checks the whole file first
        with pytest.raises(ClipError, match=r'"cut\.webp" is damaged: .*\. Choose another clip\.'):
            clip_facts(made, None)
        return
    facts = clip_facts(made, None)
    assert 2 <= facts.n_frames <= 5
    assert len(clip_frames(made, (0.05, 0.75), 32, None)) == 2


@pytest.mark.parametrize("head", [b"GIF89a", b"\x89PNG\r\n\x1a\n", b"RIFF\0\0\1\0WEBPVP8X", b"\0\0\0\x1cftypavis"])
def test_an_animation_that_is_only_a_beginning(tmp_path: Path, head: bytes) -> None:
    made = tmp_path / "clip.gif"
    made.write_bytes(head + bytes(40))
    with pytest.raises(ClipError, match=r'"clip\.gif" is damaged'):
        clip_facts(made, None)
