"""Odd and hostile picture files become a sane size or a clear sentence."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest
from PIL import Image

from qwendesk.core.errors import BadRequest
from qwendesk.core.files import file_stamp
from qwendesk.core.messages import ImagePart
from qwendesk.engine.protocol import Measure
from qwendesk.engine.protocol_lines import decode_request, encode_line
from qwendesk.engine.worker import vision
from tests.decoding.hostile_files import png_claiming, sparse_file


def part(path: Path) -> ImagePart:
    return ImagePart(str(path), hashlib.sha256(path.read_bytes()).hexdigest())


def saved(image: Image.Image, path: Path, **options: object) -> ImagePart:
    image.save(path, **options)
    return part(path)


@pytest.mark.parametrize("suffix", ["png", "jpg", "webp", "gif", "bmp"])
def test_every_supported_format_is_read(tmp_path: Path, suffix: str) -> None:
    image = saved(Image.new("RGB", (40, 30), (200, 30, 30)), tmp_path / f"a.{suffix}")
    pixels = vision.read_picture(image).pixels
    assert pixels.shape == (30, 40, 3)
    assert np.abs(pixels.astype(int) - (200, 30, 30)).max() < 12
    assert vision.picture_size(image) == (40, 30)


def test_picture_without_a_file_is_read_from_its_bytes(tmp_path: Path) -> None:
    image = saved(Image.new("RGB", (40, 30), "red"), tmp_path / "a.png")
    raw = Path(image.path).read_bytes()
    Path(image.path).unlink()
    held = msgspec.structs.replace(image, path="(in memory)/a.png", data=raw)
    request = decode_request(encode_line(Measure(id=1, pictures=(held,))))
    assert isinstance(request, Measure)
    assert vision.read_picture(request.pictures[0]).pixels.shape == (30, 40, 3)


def test_the_size_of_a_picture_is_read_once_while_its_file_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = saved(Image.new("RGB", (40, 30), "red"), tmp_path / "a.png")
    inspect, inspected = vision.inspect_image, []
    monkeypatch.setattr(vision, "inspect_image", lambda *args: inspected.append(args) or inspect(*args))
    sizes = vision.PictureSizes()
    assert [sizes.size(image) for _ in range(3)] == [(40, 30)] * 3
    assert len(inspected) == 1
    Image.new("RGB", (64, 64), "blue").save(image.path)
    with pytest.raises(BadRequest, match="changed since"):
        sizes.size(image)


def test_a_file_is_only_hashed_again_if_its_stamp_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image = saved(Image.new("RGB", (40, 30), "red"), tmp_path / "a.png")
    stamped = msgspec.structs.replace(image, file_stamp=file_stamp(Path(image.path).stat()))
    hashed = []
    monkeypatch.setattr(vision, "hash_image", lambda path, _file: hashed.append(path) or image.sha256)
    assert vision.picture_size(stamped) == (40, 30)
    assert hashed == []
    assert vision.picture_size(image) == (40, 30)
    assert hashed == [Path(image.path)]
    Image.new("RGB", (64, 64), "blue").save(image.path)
    with pytest.raises(BadRequest, match="changed since"):
        vision.read_picture(stamped)


def test_exif_orientation_is_applied(tmp_path: Path) -> None:
    upright = Image.new("RGB", (60, 20), "white")
    upright.paste("red", (0, 0, 20, 20))
    exif = Image.Exif()
    exif[0x0112] = 6
    image = saved(upright, tmp_path / "phone.png", exif=exif)
    pixels = vision.read_picture(image).pixels
    assert pixels.shape == (60, 20, 3)
    assert vision.picture_size(image) == (20, 60)
    assert tuple(pixels[10, 10]) == (255, 0, 0)
    assert tuple(pixels[50, 10]) == (255, 255, 255)


def test_transparency_becomes_white(tmp_path: Path) -> None:
    image = saved(Image.new("RGBA", (8, 8), (0, 0, 0, 0)), tmp_path / "clear.png")
    assert vision.read_picture(image).pixels.min() == 255


def test_a_huge_picture_is_reduced(tmp_path: Path) -> None:
    image = saved(Image.new("L", (10_000, 10_000), 128), tmp_path / "huge.png")
    height, width, _ = vision.read_picture(image).pixels.shape
    assert (width, height) == (4096, 4096)
    assert vision.picture_size(image) == (10_000, 10_000)


def test_picture_of_one_pixel_is_read(tmp_path: Path) -> None:
    assert vision.read_picture(saved(Image.new("RGB", (1, 1)), tmp_path / "dot.png")).pixels.shape == (1, 1, 3)


def test_cache_key_depends_on_pixels_not_on_the_file(tmp_path: Path) -> None:
    image = Image.new("RGB", (9, 5), "blue")
    first, second = saved(image, tmp_path / "a.png"), saved(image, tmp_path / "b.bmp")
    other = saved(Image.new("RGB", (5, 9), "blue"), tmp_path / "c.png")
    assert vision.read_picture(first).key == vision.read_picture(second).key != vision.read_picture(other).key


def cut_in_half(path: Path) -> None:
    noise = np.random.default_rng(1).integers(0, 255, (64, 64, 3), dtype=np.uint8)
    Image.fromarray(noise).save(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def text_named_png(path: Path) -> None:
    path.write_text("hello, I am no picture")


def of_a_phone(path: Path) -> None:
    """The head of a HEIC file, a picture that can't be read here."""
    path.write_bytes(b"\0\0\0\x18ftypheic\0\0\0\0mif1heic" + bytes(1000))


def empty(path: Path) -> None:
    path.write_bytes(b"")


def gigapixel_header(path: Path) -> None:
    Image.new("1", (40_000, 30_000)).save(path)


def deep(path: Path) -> None:
    png_claiming(path, 12_000, 12_000)


def needle(path: Path) -> None:
    Image.new("1", (2_000, 3)).save(path)


@pytest.mark.parametrize(
    ("make", "title"),
    [
        (cut_in_half, "Picture not readable"),
        (text_named_png, "Unknown format"),
        (of_a_phone, "Unknown format"),
        (empty, "Unknown format"),
        (gigapixel_header, "Picture too large"),
        (deep, "Picture too large"),
        (needle, "Picture too narrow"),
    ],
)
def test_bad_files_get_a_clear_sentence(tmp_path: Path, make: Callable[[Path], None], title: str) -> None:
    path = tmp_path / "picture.png"
    make(path)
    with pytest.raises(BadRequest) as caught:
        vision.read_picture(part(path))
    assert caught.value.title == title
    assert "picture.png" in caught.value.sentence


def test_a_huge_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = sparse_file(tmp_path / "sparse.png", 6 << 30)
    with pytest.raises(BadRequest, match=r"6\.0 GB"):
        vision.read_picture(ImagePart(str(path), "0" * 64))


def test_a_missing_or_changed_file_is_named(tmp_path: Path) -> None:
    image = saved(Image.new("RGB", (4, 4)), tmp_path / "a.png")
    Image.new("RGB", (5, 5)).save(tmp_path / "a.png")
    with pytest.raises(BadRequest, match="changed"):
        vision.read_picture(image)
    (tmp_path / "a.png").unlink()
    with pytest.raises(BadRequest, match="could not be found"):
        vision.picture_size(image)
