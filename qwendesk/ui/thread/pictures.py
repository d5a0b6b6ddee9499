"""Pictures on their way into a question: are they pictures, what do they look like small. Blocking functions.

The engine reads the file itself; this is only for showing it, and for refusing what is no picture at once.
"""

import hashlib
import io
import warnings
from pathlib import Path
from typing import Final

import msgspec
from PIL import Image, ImageOps, UnidentifiedImageError
from PySide6.QtGui import QImage

from qwendesk.core.errors import BadRequest
from qwendesk.core.files import write_whole
from qwendesk.core.paths import cache_folder
from qwendesk.services.chat.held import HeldPictures
from qwendesk.ui.kit.text import tr

FORMATS: Final = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
SUFFIXES: Final = ("png", "jpg", "jpeg", "webp", "gif", "bmp")
THUMBNAIL_SIDE: Final = 440
"""Longest side of a thumbnail in pixels: sharp at 220 logical pixels on a doubled screen."""
_MOST_PIXELS: Final = 60_000_000
"""Larger pictures are sent, but no thumbnail is made of them."""


class Picture(msgspec.Struct, frozen=True):
    """A picture file that was looked at. Size in pixels as it is seen (orientation applied)."""

    path: Path
    width: int
    height: int
    thumbnail: QImage | None
    """None for one too large to draw quickly."""
    data: bytes = b""
    """Of a picture that is no file: `path` only stands for it."""


def look_at(path: Path, data: bytes | None = None) -> Picture:
    """Open a picture file, or the bytes of one.

    Raises BadRequest, with a sentence to show, when it is not one of the five formats.
    """
    try:
        with warnings.catch_warnings(), Image.open(_source(path, data), formats=FORMATS) as image:
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            width, height = image.size
            if image.getexif().get(0x0112, 1) in (5, 6, 7, 8):
                width, height = height, width
            small = _thumbnail(image) if width * height <= _MOST_PIXELS else None
            return Picture(path, width, height, small, data or b"")
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise _unreadable(path, error) from error


def keep_pasted(image: QImage, held: HeldPictures | None = None) -> Path:
    """Save a picture from the clipboard as PNG in the app's cache, under its content hash; or in memory, by `held`.

    Raises BadRequest when it cannot be saved.
    """
    return keep_data(_png(image), held)


def keep_data(data: bytes, held: HeldPictures | None = None) -> Path:
    """Save a picture file that came as bytes in the app's cache, under its content hash, with an ending that fits.

    With `held` it is put there and no file is made. Raises BadRequest when it cannot be saved, or is no picture.
    """
    try:
        with warnings.catch_warnings(), Image.open(io.BytesIO(data), formats=FORMATS) as image:
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            ending = str(image.format).lower()
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise BadRequest(tr("Not a picture"), tr("What was pasted is not a picture that can be read.")) from error
    if held is not None:
        return held.hold(data, f"pasted.{ending}")
    path = cache_folder() / "pasted" / f"{hashlib.sha256(data).hexdigest()}.{ending}"
    try:
        if not path.exists():
            write_whole(path, data)
    except OSError as error:
        raise BadRequest(tr("Picture not saved"), tr("The pasted picture cannot be saved: {0}", error)) from error
    return path


def _png(image: QImage) -> bytes:
    opaque = image.convertToFormat(QImage.Format.Format_RGBA8888)
    data = io.BytesIO()
    size = (opaque.width(), opaque.height())
    Image.frombuffer("RGBA", size, bytes(opaque.constBits()), "raw", "RGBA", opaque.bytesPerLine(), 1).save(data, "PNG")
    return data.getvalue()


def load_full(path: Path, longest_side: int, data: bytes | None = None) -> tuple[QImage, int, int]:
    """The picture for the viewer, reduced to `longest_side` pixels if larger, and the file's own width and height.

    Raises BadRequest as `look_at` does.
    """
    try:
        with warnings.catch_warnings(), Image.open(_source(path, data), formats=FORMATS) as image:
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            width, height = image.size
            if image.getexif().get(0x0112, 1) in (5, 6, 7, 8):
                width, height = height, width
            return _reduced(image, longest_side), width, height
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> BadRequest:
    if isinstance(error, FileNotFoundError):
        return BadRequest(tr("File not found"), tr('"{0}" is not there any more.', path.name))
    if isinstance(error, UnidentifiedImageError | Image.DecompressionBombError):
        sentence = tr('"{0}" is not a picture that can be read. PNG, JPEG, WebP, GIF and BMP can.', path.name)
        return BadRequest(tr("Not a picture"), sentence)
    return BadRequest(tr("Picture not readable"), tr('"{0}" is damaged or cannot be read: {1}', path.name, error))


def _source(path: Path, data: bytes | None) -> Path | io.BytesIO:
    return path if data is None else io.BytesIO(data)


def _thumbnail(image: Image.Image) -> QImage:
    return _reduced(image, THUMBNAIL_SIDE)


def _reduced(image: Image.Image, longest_side: int) -> QImage:
    image.draft("RGB", (longest_side, longest_side))
    upright = ImageOps.exif_transpose(image)
    upright.thumbnail((longest_side, longest_side), Image.Resampling.LANCZOS)
    pixels = upright.convert("RGBA")
    data = pixels.tobytes()
    return QImage(data, pixels.width, pixels.height, 4 * pixels.width, QImage.Format.Format_RGBA8888).copy()
