"""Decodes one picture with Pillow. Runs in the decoding process only."""

import os
import struct
import warnings
from typing import BinaryIO, cast

from PIL import Image, ImageFile, UnidentifiedImageError
from PIL.PngImagePlugin import PngImageFile

from qwendesk.decoding.protocol import (
    MAX_DECODED_BYTES,
    DecodeImage,
    DecodeRefusal,
    ImageFacts,
    InspectImage,
    fit_longest_side,
    fit_pixels,
)

FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF", "AVIF")
_ORIENTATION = 0x0112
# Bytes before the first chunk of a PNG file.
_PNG_BEGIN = 8
# The operation that makes a picture upright, by its EXIF orientation.
_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_SIDES_SWAPPED = (5, 6, 7, 8)


def decode_image(file: BinaryIO, request: InspectImage | DecodeImage) -> tuple[ImageFacts | DecodeRefusal, bytes]:
    """Return the facts of a picture and, if requested, its pixels. Raises what Pillow raises for damaged files."""
    Image.MAX_IMAGE_PIXELS = None  # our own limit counts bytes
    warnings.simplefilter("ignore")
    try:
        opened = Image.open(file, formats=FORMATS)
    except UnidentifiedImageError:
        return DecodeRefusal(reason="not_an_image"), b""
    image: Image.Image = opened
    width, height = image.size
    if not width * height:
        return DecodeRefusal(reason="damaged", detail="it has no pixels"), b""
    decoded_bytes = width * height * _bytes_per_pixel(opened)
    if decoded_bytes > MAX_DECODED_BYTES:
        refusal = DecodeRefusal(reason="too_many_pixels", width=width, height=height, decoded_bytes=decoded_bytes)
        return refusal, b""
    kind = str(opened.format)
    exif = _exif_without_pixels(opened, file) if isinstance(request, InspectImage) else image.getexif()
    # Pillow itself turns TIFF files, and states their size as they stand upright.
    orientation = 1 if kind == "TIFF" else exif.get(_ORIENTATION, 1)
    upright = (height, width) if orientation in _SIDES_SWAPPED else (width, height)
    if isinstance(request, InspectImage):
        return ImageFacts(kind, *upright), b""
    image = _reduce(image, request)
    if orientation in _UPRIGHT:
        image = image.transpose(_UPRIGHT[orientation])
    return ImageFacts(kind, *upright, image.mode, *image.size), image.tobytes()


def _exif_without_pixels(image: ImageFile.ImageFile, file: BinaryIO) -> Image.Exif:
    """Return the EXIF data. Where that of a PNG file may follow the pixels, Pillow would decode them all first."""
    if not isinstance(image, PngImageFile):
        return image.getexif()
    if "exif" not in image.info:
        file.seek(_PNG_BEGIN)
        while len(head := file.read(8)) == 8:
            length, kind = struct.unpack(">I4s", head)
            if kind == b"eXIf":
                image.info["exif"] = file.read(length)
                break
            file.seek(length + 4, os.SEEK_CUR)
    return Image.Image.getexif(image)


def _bytes_per_pixel(image: ImageFile.ImageFile) -> int:
    """Return the bytes of a pixel in the file or in memory, whichever is more."""
    arguments: object = image.tile[0][3] if image.tile else ""
    raw_mode = str(arguments[0] if isinstance(arguments, tuple) else arguments)
    in_file = len(image.getbands()) * (2 if "16" in raw_mode else 1)
    # Pillow keeps these modes and uses 4 bytes for all others, palettes included.
    in_memory = {"1": 1, "L": 1, "I;16": 2}.get(image.mode, 4)
    return max(in_file, in_memory)


def _reduce(image: Image.Image, request: DecodeImage) -> Image.Image:
    """Return the picture as RGB, or RGBA if it may be transparent, within the limits of `request`.

    Most pictures are reduced before they are converted, to avoid a second picture of the full size. One that only has
    to keep `max_pixels` is reduced quickly: the engine reduces it to a quarter of that, or less.
    """
    wanted = image.size
    if request.longest_side:
        wanted = fit_longest_side(*wanted, request.longest_side)
    if request.max_pixels:
        wanted = fit_pixels(*wanted, request.max_pixels)
    gap = 2 if request.longest_side else 1
    image.draft("RGB", (gap * wanted[0], gap * wanted[1]))
    image.load()
    mode = "RGBA" if image.has_transparency_data else "RGB"
    if image.mode == "1":
        image = image.convert("L")
    elif image.mode in ("P", "PA") or (mode == "RGBA" and image.mode not in ("RGBA", "LA")):
        image = image.convert(mode)
    if image.size != wanted:
        reducing_gap = None if image.mode.startswith("I;16") else float(gap)  # which Pillow cannot reduce in two steps
        image = image.resize(wanted, Image.Resampling.LANCZOS, reducing_gap=reducing_gap)
    if image.mode.startswith("I;16"):
        # Pillow's own conversion cuts values off at 255 instead of scaling the 16 bits.
        image = image.convert("I").point(lambda value: value * (1 / 256)).convert("L")
    elif image.mode in ("I", "F"):
        image = _stretched(image)
    return image.convert(mode)


def _stretched(image: Image.Image) -> Image.Image:
    """Return measurements, numbers of 32 bits in any range, as shades from the least to the most."""
    least, most = (float(each) for each in cast("tuple[float, float]", image.getextrema()))
    scale = 255 / (most - least) if most > least else 0.0
    return image.convert("F").point(lambda value: value * scale - least * scale).convert("L")
