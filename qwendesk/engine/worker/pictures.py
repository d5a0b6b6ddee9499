"""Read image files of any size and orientation as RGB pixels. They are decoded in a separate process."""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path

import msgspec
import numpy as np
from PIL import Image

from qwendesk.core.errors import BadRequest
from qwendesk.core.files import file_stamp
from qwendesk.core.messages import ImagePart
from qwendesk.core.translation import mark
from qwendesk.decoding.images import decode_image, hash_image, inspect_image, open_image
from qwendesk.decoding.protocol import ImageFacts, fit_pixels

_KEPT_PIXELS = 16_777_216
"""Larger images are scaled down to this. llama.cpp uses at most 4,096 tokens of 32x32 pixels, a quarter of this."""
_LONGEST_RATIO = 200
"""Qwen's own image processor refuses images whose long side is more than this many times the short side."""

Pixels = np.ndarray[tuple[int, int, int], np.dtype[np.uint8]]


class ImagePixels(msgspec.Struct, frozen=True, eq=False):
    """Decoded pixels (height x width x RGB), and a key that identifies them: a hash of pixels and size."""

    pixels: Pixels
    key: str


def size_of(part: ImagePart) -> tuple[int, int]:
    """Return the width and height in pixels of the upright image, without decoding it.

    Raise BadRequest if the image cannot be read, was changed since it was attached, or is too narrow.
    """
    with _source(part) as source:
        facts = inspect_image(Path(part.path), source)
    _check_shape(part, facts)
    return facts.width, facts.height


def read(part: ImagePart) -> ImagePixels:
    """Return the first frame of the image, upright and on a white background. Raise BadRequest as `size_of` does."""
    with _source(part) as source:
        decoded = decode_image(Path(part.path), source, max_pixels=_KEPT_PIXELS)
    facts = decoded.facts
    _check_shape(part, facts)
    image = Image.frombytes(facts.mode, (facts.pixel_width, facts.pixel_height), decoded.pixels)
    if image.mode == "RGBA":
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB")
    pixels = np.ascontiguousarray(np.asarray(image, dtype=np.uint8))
    digest = hashlib.sha256(pixels.tobytes())
    digest.update(f"{image.width}x{image.height}".encode())
    return ImagePixels(pixels, digest.hexdigest())


def reduced(width: int, height: int) -> tuple[int, int]:
    """Return the size after scaling down to at most 16 megapixels: same aspect ratio, each side at least 1 pixel."""
    return fit_pixels(width, height, _KEPT_PIXELS)


@contextmanager
def _source(part: ImagePart) -> Iterator[FileIO | bytes]:
    """Yield the image's data, or its open file. Raise BadRequest if the file was changed since it was attached."""
    if part.data:
        yield part.data
        return
    with open_image(Path(part.path)) as file:
        if part.file_stamp is not None:
            is_same = file_stamp(os.fstat(file.fileno())) == part.file_stamp
        else:
            is_same = hash_image(Path(part.path), file) == part.sha256
        if not is_same:
            raise BadRequest(
                mark("Picture changed"), mark("{0} has changed since it was attached. Attach it again."), _name(part)
            )
        yield file


def _check_shape(part: ImagePart, facts: ImageFacts) -> None:
    if max(facts.width, facts.height) > _LONGEST_RATIO * min(facts.width, facts.height):
        raise BadRequest(
            mark("Picture too narrow"),
            mark("{0} has {1}×{2} pixels: its long side is more than {3} times its short side. Crop it."),
            _name(part),
            facts.width,
            facts.height,
            _LONGEST_RATIO,
        )


def _name(part: ImagePart) -> str:
    return Path(part.path).name
