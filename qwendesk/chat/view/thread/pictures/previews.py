"""Checks and previews pictures before they are attached. The functions block.

The engine reads the file itself. These functions only show it, and refuse unusable files at once.
"""

import hashlib
import io
from pathlib import Path
from typing import Final

import msgspec
from PySide6.QtGui import QImage

from qwendesk.chat.chat_state import IncognitoImages
from qwendesk.core.errors import BadRequest
from qwendesk.core.files import file_stamp, write_whole
from qwendesk.core.messages import ImagePart
from qwendesk.core.paths import cache_folder
from qwendesk.core.translation import tr
from qwendesk.decoding.images import DecodedImage, ImageError, decode_image, inspect_image

SUFFIXES: Final = ("png", "jpg", "jpeg", "webp", "gif", "bmp")
# Longest side of a thumbnail in pixels, which is sharp at 220 logical pixels on a screen with scale 2.
THUMBNAIL_SIDE: Final = 440


class ImagePreview(msgspec.Struct, frozen=True):
    """A picture file that was checked. Width and height are in pixels, after applying the orientation."""

    path: Path
    width: int
    height: int
    thumbnail: QImage
    data: bytes = b""
    """The bytes of a picture without a file; `path` is only its name then."""


def load_preview(path: Path, data: bytes | None = None) -> ImagePreview:
    """Check a picture file or its bytes, and return a preview.

    Raise BadRequest with a message if it has none of the five formats or is too large.
    """
    image, width, height = load_full(path, THUMBNAIL_SIDE, data)
    return ImagePreview(path, width, height, image, data or b"")


def store_pasted_image(image: QImage, incognito_images: IncognitoImages | None) -> ImagePart:
    """Save a picture from the clipboard as PNG, named by its hash, in the app's cache or in `incognito_images`.

    Raise BadRequest if it cannot be saved.
    """
    return store_image_data(_png(image), incognito_images)


def store_image_data(data: bytes, incognito_images: IncognitoImages | None) -> ImagePart:
    """Save the bytes of a picture file, named by its hash, in the app's cache or in `incognito_images`.

    Raise BadRequest if it isn't a picture or cannot be saved.
    """
    try:
        ending = inspect_image(Path(tr("Pasted picture")), data).format.lower()
    except ImageError as error:
        if error.kind == "not_an_image":
            sentence = tr(
                "QwenDesk can't read the pasted picture. Copy it again, or save it as a PNG file and attach that."
            )
            raise BadRequest(tr("Unknown picture format"), sentence) from error
        raise
    if incognito_images is not None:
        return incognito_images.add(data, f"pasted.{ending}")
    sha256 = hashlib.sha256(data).hexdigest()
    path = cache_folder() / "pasted" / f"{sha256}.{ending}"
    try:
        if not path.exists():
            write_whole(path, data)
        stamp = file_stamp(path.stat())
    except OSError as error:
        raise BadRequest(tr("Picture not saved"), tr("Couldn't save the pasted picture: {0}", error)) from error
    return ImagePart(str(path), sha256, file_stamp=stamp)


def _png(image: QImage) -> bytes:
    from PIL import Image

    opaque = image.convertToFormat(QImage.Format.Format_RGBA8888)
    data = io.BytesIO()
    size = (opaque.width(), opaque.height())
    Image.frombuffer("RGBA", size, bytes(opaque.constBits()), "raw", "RGBA", opaque.bytesPerLine(), 1).save(data, "PNG")
    return data.getvalue()


def load_full(path: Path, longest_side: int, data: bytes | None = None) -> tuple[QImage, int, int]:
    """Return the picture, reduced to `longest_side` pixels if larger, and the file's width and height.

    Raise BadRequest as `load_preview` does.
    """
    decoded = decode_image(path, data, longest_side=longest_side)
    return _qimage(decoded), decoded.facts.width, decoded.facts.height


def _qimage(decoded: DecodedImage) -> QImage:
    facts = decoded.facts
    has_alpha = facts.mode == "RGBA"
    layout = QImage.Format.Format_RGBA8888 if has_alpha else QImage.Format.Format_RGB888
    row_bytes = facts.pixel_width * (4 if has_alpha else 3)
    image = QImage(decoded.pixels, facts.pixel_width, facts.pixel_height, row_bytes, layout)
    # A copy, because the image doesn't keep the bytes alive, with 4 bytes per pixel, which Qt draws fastest.
    return image.convertToFormat(QImage.Format.Format_RGBA8888) if not has_alpha else image.copy()
