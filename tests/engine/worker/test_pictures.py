"""Odd and hostile picture files become a sane size or a clear sentence."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest
from PIL import Image

from qwendesk.core.errors import BadRequest
from qwendesk.core.messages import ImagePart
from qwendesk.engine.protocol import Measure, decode_request, encode_line
from qwendesk.engine.worker import pictures


def part(path: Path) -> ImagePart:
    return ImagePart(str(path), hashlib.sha256(path.read_bytes()).hexdigest())


def saved(image: Image.Image, path: Path, **options: object) -> ImagePart:
    image.save(path, **options)
    return part(path)


@pytest.mark.parametrize("suffix", ["png", "jpg", "webp", "gif", "bmp"])
def test_reads_every_promised_format(tmp_path: Path, suffix: str) -> None:
    image = saved(Image.new("RGB", (40, 30), (200, 30, 30)), tmp_path / f"a.{suffix}")
    pixels = pictures.read(image).pixels
    assert pixels.shape == (30, 40, 3)
    assert np.abs(pixels.astype(int) - (200, 30, 30)).max() < 12
    assert pictures.size_of(image) == (40, 30)


def test_a_picture_that_is_no_file_comes_as_its_bytes(tmp_path: Path) -> None:
    image = saved(Image.new("RGB", (40, 30), "red"), tmp_path / "a.png")
    raw = Path(image.path).read_bytes()
    Path(image.path).unlink()
    held = msgspec.structs.replace(image, path="(in memory)/a.png", data=raw)
    request = decode_request(encode_line(Measure(id=1, pictures=(held,))))
    assert isinstance(request, Measure)
    assert pictures.read(request.pictures[0]).pixels.shape == (30, 40, 3)
    changed = msgspec.structs.replace(held, data=raw + b"0")
    with pytest.raises(BadRequest, match="changed since"):
        pictures.read(changed)


def test_honours_the_orientation_a_phone_writes(tmp_path: Path) -> None:
    upright = Image.new("RGB", (60, 20), "white")
    upright.paste("red", (0, 0, 20, 20))
    exif = Image.Exif()
    exif[0x0112] = 6
    image = saved(upright, tmp_path / "phone.png", exif=exif)
    pixels = pictures.read(image).pixels
    assert pixels.shape == (60, 20, 3)
    assert pictures.size_of(image) == (20, 60)
    assert tuple(pixels[10, 10]) == (255, 0, 0)
    assert tuple(pixels[50, 10]) == (255, 255, 255)


def test_transparency_becomes_white(tmp_path: Path) -> None:
    image = saved(Image.new("RGBA", (8, 8), (0, 0, 0, 0)), tmp_path / "clear.png")
    assert pictures.read(image).pixels.min() == 255


def test_a_huge_picture_is_reduced(tmp_path: Path) -> None:
    image = saved(Image.new("L", (10_000, 10_000), 128), tmp_path / "huge.png")
    height, width, _ = pictures.read(image).pixels.shape
    assert (width, height) == (4096, 4096)
    assert pictures.size_of(image) == (10_000, 10_000)


def test_one_pixel_is_a_picture(tmp_path: Path) -> None:
    assert pictures.read(saved(Image.new("RGB", (1, 1)), tmp_path / "dot.png")).pixels.shape == (1, 1, 3)


def test_the_key_names_the_pixels_not_the_file(tmp_path: Path) -> None:
    image = Image.new("RGB", (9, 5), "blue")
    first, second = saved(image, tmp_path / "a.png"), saved(image, tmp_path / "b.bmp")
    other = saved(Image.new("RGB", (5, 9), "blue"), tmp_path / "c.png")
    assert pictures.read(first).key == pictures.read(second).key != pictures.read(other).key


def cut_in_half(path: Path) -> None:
    noise = np.random.default_rng(1).integers(0, 255, (64, 64, 3), dtype=np.uint8)
    Image.fromarray(noise).save(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def text_named_png(path: Path) -> None:
    path.write_text("hello, I am no picture")


def empty(path: Path) -> None:
    path.write_bytes(b"")


def gigapixel_header(path: Path) -> None:
    Image.new("1", (40_000, 30_000)).save(path)


def needle(path: Path) -> None:
    Image.new("1", (2_000, 3)).save(path)


@pytest.mark.parametrize(
    ("make", "title"),
    [
        (cut_in_half, "Unreadable picture"),
        (text_named_png, "Not a picture"),
        (empty, "Not a picture"),
        (gigapixel_header, "Picture too large"),
        (needle, "Picture too narrow"),
    ],
)
def test_bad_files_get_a_clear_sentence(tmp_path: Path, make: Callable[[Path], None], title: str) -> None:
    path = tmp_path / "picture.png"
    make(path)
    with pytest.raises(BadRequest) as caught:
        pictures.read(part(path))
    assert caught.value.title == title
    assert "picture.png" in caught.value.sentence


def test_a_missing_or_changed_file_is_named(tmp_path: Path) -> None:
    image = saved(Image.new("RGB", (4, 4)), tmp_path / "a.png")
    Image.new("RGB", (5, 5)).save(tmp_path / "a.png")
    with pytest.raises(BadRequest, match="changed"):
        pictures.read(image)
    (tmp_path / "a.png").unlink()
    with pytest.raises(BadRequest, match="cannot be read"):
        pictures.size_of(image)
