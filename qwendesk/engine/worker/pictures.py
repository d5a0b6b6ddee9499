"""Picture files to RGB pixels: any size, any orientation, no surprises. Pure Pillow, no engine."""

import hashlib
import io
import warnings
from pathlib import Path

import msgspec
import numpy as np
from PIL import Image, ImageOps

from qwendesk.core.errors import BadRequest
from qwendesk.core.messages import ImagePart

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")

MOST_PIXELS = 150_000_000
"""Larger files are refused before they are decoded: 150 megapixels fill 450 MB as RGB."""
_KEPT_PIXELS = 16_777_216
"""Larger pictures are reduced here: llama.cpp reads at most 4,096 tokens of 32x32 pixels, a quarter of this."""
_LONGEST_RATIO = 200
"""The ratio of sides above which Qwen's own picture processor refuses."""

Pixels = np.ndarray[tuple[int, int, int], np.dtype[np.uint8]]


class Picture(msgspec.Struct, frozen=True, eq=False):
    """Decoded pixels (height x width x RGB) and a key that names exactly them."""

    pixels: Pixels
    key: str


def size_of(part: ImagePart) -> tuple[int, int]:
    """Width and height of the upright picture in pixels, without decoding it."""
    with _opened(part, _read(part)) as image:
        width, height = image.size
        if image.getexif().get(0x0112, 1) >= 5:
            width, height = height, width
    return width, height


def read(part: ImagePart) -> Picture:
    """The picture upright, first frame, on white where it is transparent. Raises BadRequest."""
    raw = _read(part)
    with _opened(part, raw) as image:
        try:
            image.draft("RGB", reduced(*image.size))
            upright = ImageOps.exif_transpose(image)
            rgb = _on_white(upright)
        except (OSError, SyntaxError, ValueError, MemoryError) as error:
            raise BadRequest(
                "Unreadable picture", f"{_name(part)} is damaged: {error}. Save it again or use another."
            ) from error
    wanted = reduced(*rgb.size)
    if wanted != rgb.size:
        rgb = rgb.resize(wanted, Image.Resampling.BICUBIC, reducing_gap=2.0)
    pixels = np.ascontiguousarray(np.asarray(rgb, dtype=np.uint8))
    digest = hashlib.sha256(pixels.tobytes())
    digest.update(f"{rgb.width}x{rgb.height}".encode())
    return Picture(pixels, digest.hexdigest())


def _read(part: ImagePart) -> bytes:
    try:
        raw = part.data or Path(part.path).read_bytes()
    except OSError as error:
        raise BadRequest(
            "Picture not found", f"{_name(part)} cannot be read: {error.strerror}. Attach it again."
        ) from error
    if hashlib.sha256(raw).hexdigest() != part.sha256:
        raise BadRequest("Picture changed", f"{_name(part)} changed since it was attached. Attach it again.")
    return raw


def _opened(part: ImagePart, raw: bytes) -> Image.Image:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            image = Image.open(io.BytesIO(raw), formats=FORMATS)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        too_large = isinstance(error, Image.DecompressionBombError)
        raise (_too_large(part) if too_large else _no_picture(part)) from error
    width, height = image.size
    if width * height > MOST_PIXELS:
        raise _too_large(part)
    if max(width, height) > _LONGEST_RATIO * min(width, height):
        raise BadRequest(
            "Picture too narrow",
            f"{_name(part)} is {width}x{height}: more than {_LONGEST_RATIO} times as long as wide.",
        )
    return image


def _no_picture(part: ImagePart) -> BadRequest:
    return BadRequest(
        "Not a picture", f"{_name(part)} is no PNG, JPEG, WebP, GIF or BMP picture, whatever its name says."
    )


def _too_large(part: ImagePart) -> BadRequest:
    return BadRequest(
        "Picture too large",
        f"{_name(part)} has more than {MOST_PIXELS // 1_000_000} megapixels. Make it smaller first.",
    )


def _on_white(image: Image.Image) -> Image.Image:
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        rgba = image.convert("RGBA")
        white = Image.new("RGBA", rgba.size, "white")
        return Image.alpha_composite(white, rgba).convert("RGB")
    return image.convert("RGB")


def reduced(width: int, height: int) -> tuple[int, int]:
    """The size the model gets: with at most 16 megapixels, same shape, no side below 1."""
    scale = (_KEPT_PIXELS / (width * height)) ** 0.5
    return (width, height) if scale >= 1 else (max(1, int(width * scale)), max(1, int(height * scale)))


def _name(part: ImagePart) -> str:
    return Path(part.path).name
