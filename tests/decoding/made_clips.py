"""Clips for tests: a colour for each second, made by ffmpeg or Pillow when they are needed."""

import io
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from qwendesk.decoding.clips import ClipError, clip_facts, clip_frames
from qwendesk.decoding.ffmpeg import Ffmpeg, find_ffmpeg

FFMPEG = find_ffmpeg()
NEEDS_FFMPEG = pytest.mark.skipif(FFMPEG is None, reason="ffmpeg and ffprobe aren't installed")
COLOURS = {
    "red": (220, 30, 30),
    "green": (30, 180, 30),
    "blue": (30, 30, 220),
    "yellow": (220, 220, 30),
    "purple": (180, 30, 180),
    "white": (240, 240, 240),
    "black": (15, 15, 15),
}
H264 = ("-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p")


def ffmpeg() -> Ffmpeg:
    assert FFMPEG is not None
    return FFMPEG


def run_ffmpeg(*arguments: str | Path, given: bytes = b"") -> None:
    command = [str(ffmpeg().ffmpeg), "-v", "error", "-y", *map(str, arguments)]
    done = subprocess.run(command, input=given, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode("utf-8", "replace")


def video(
    path: Path,
    colours: Sequence[str],
    *options: str,
    size: tuple[int, int] = (64, 48),
    rate: int = 10,
    codec: Sequence[str] = H264,
    before: Sequence[str] = (),
) -> Path:
    """A video file with one second of each colour. `options` are for the output, `before` for the input."""
    raw = b"".join(bytes(COLOURS[colour]) * (size[0] * size[1]) * rate for colour in colours)
    shape = ("-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{size[0]}x{size[1]}", "-r", str(rate))
    run_ffmpeg(*shape, *before, "-i", "pipe:0", *codec, *options, path, given=raw)
    return path


def quarters(path: Path, *options: str, size: tuple[int, int] = (64, 48)) -> Path:
    """A video of one second: upper left red, upper right green, lower left blue, lower right yellow."""
    frame = np.zeros((size[1], size[0], 3), dtype=np.uint8)
    middle_y, middle_x = size[1] // 2, size[0] // 2
    frame[:middle_y, :middle_x], frame[:middle_y, middle_x:] = COLOURS["red"], COLOURS["green"]
    frame[middle_y:, :middle_x], frame[middle_y:, middle_x:] = COLOURS["blue"], COLOURS["yellow"]
    shape = ("-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{size[0]}x{size[1]}", "-r", "10")
    run_ffmpeg(*shape, "-i", "pipe:0", *H264, "-qp", "0", *options, path, given=frame.tobytes() * 10)
    return path


def animation(path: Path, colours: Sequence[str], durations_ms: Sequence[int] | int, **options: object) -> Path:
    """An animated picture of Pillow with these colours."""
    frames = [Image.new("RGB", (64, 48), COLOURS[colour]) for colour in colours]
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=durations_ms, loop=0, **options)
    return path


def picture(png: bytes) -> Image.Image:
    with Image.open(io.BytesIO(png), formats=["PNG"]) as image:
        assert image.mode == "RGB"
        return image.copy()


def colour_at(image: Image.Image, x: float = 0.5, y: float = 0.5) -> str:
    """The name of the colour at a place, in shares of the picture's sides; "" if none is near."""
    pixel = np.array(image.getpixel((int(x * image.width), int(y * image.height))), dtype=int)
    name, distance = min(
        ((name, int(np.abs(pixel - colour).max())) for name, colour in COLOURS.items()), key=lambda each: each[1]
    )
    return name if distance <= 40 else ""


def colours_of(pngs: Sequence[bytes]) -> list[str]:
    """The colour in the middle of each frame."""
    return [colour_at(picture(png)) for png in pngs]


def corners(image: Image.Image) -> list[str]:
    """The colours of the four quarters, row by row."""
    return [colour_at(image, x, y) for y in (0.25, 0.75) for x in (0.25, 0.75)]


def refused(path: Path, kind: str) -> str:
    """The sentence with which a file is refused, the same for its facts and its frames."""
    with pytest.raises(ClipError) as of_facts:
        clip_facts(path, ffmpeg())
    with pytest.raises(ClipError) as of_frames:
        clip_frames(path, (0.5, 1.5), 32, ffmpeg())
    assert of_facts.value.kind == of_frames.value.kind == kind
    assert of_facts.value.sentence == of_frames.value.sentence
    return of_frames.value.sentence


def wrapped(folder: Path, **scripts: str) -> Ffmpeg:
    """Programs that run a script of the shell; those not given are the real ones. $REAL is the real one in a script."""
    found = {"ffmpeg": ffmpeg().ffmpeg, "ffprobe": ffmpeg().ffprobe}
    for name, script in scripts.items():
        path = folder / name
        path.write_text(f"#!/bin/sh\nREAL={found[name]}\n{script}\n")
        path.chmod(0o755)
        found[name] = path
    return Ffmpeg(**found)
