"""Picture files and bytes, inspected and decoded in a process with limited memory. Blocking functions."""

import hashlib
from collections.abc import Mapping
from io import FileIO
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import msgspec

from qwendesk.core.errors import BadRequest
from qwendesk.core.input_files import FileTooLarge, open_regular
from qwendesk.core.translation import mark, tr
from qwendesk.core.units import show_bytes
from qwendesk.decoding.process import run_decoder
from qwendesk.decoding.protocol import (
    MAX_DECODED_BYTES,
    MAX_FILE_BYTES,
    MAX_PROCESS_BYTES,
    DecodeImage,
    DecodeRefusal,
    DecodeReply,
    ImageFacts,
    InspectImage,
)

ImageErrorKind = Literal[
    "missing", "unreadable", "file_too_large", "not_an_image", "too_many_pixels", "damaged", "out_of_memory", "failed"
]
# Title and sentence.
_TEXTS: Mapping[ImageErrorKind, tuple[str, str]] = MappingProxyType(
    {
        "missing": (mark("File not found"), mark('"{0}" could not be found. Attach it again.')),
        "unreadable": (mark("Picture not readable"), mark('"{0}" can\'t be read: {1}. Attach it again.')),
        "file_too_large": (
            mark("Picture too large"),
            mark('"{0}" is {1}, but picture files can be at most {2}. Choose a smaller file.'),
        ),
        "not_an_image": (
            mark("Unknown format"),
            mark(
                "QwenDesk can't open \"{0}\": it isn't a PNG, JPEG, WebP, AVIF, GIF, TIFF or BMP picture. "
                "Save it as one."
            ),
        ),
        "too_many_pixels": (
            mark("Picture too large"),
            mark('"{0}" has {1} pixels and needs {2} of memory, but the limit is {3}. Choose a smaller picture.'),
        ),
        "damaged": (
            mark("Picture not readable"),
            mark('"{0}" is damaged: {1}. Choose another picture.'),
        ),
        "out_of_memory": (
            mark("Picture too large"),
            mark('Opening "{0}" needs more than {1} of memory. Choose a smaller picture.'),
        ),
        "failed": (
            mark("Picture not readable"),
            mark('"{0}" couldn\'t be opened: {1}. Choose another picture.'),
        ),
    }
)


class ImageError(BadRequest):
    """A picture that can't be used."""

    def __init__(self, kind: ImageErrorKind, name: str, *details: str) -> None:
        title, sentence = _TEXTS[kind]
        super().__init__(tr(title), tr(sentence, name, *details))
        self.kind = kind


class DecodedImage(msgspec.Struct, frozen=True):
    """A picture with its pixels: `facts.mode`, rows from the top without gaps."""

    facts: ImageFacts
    pixels: bytes


def open_image(path: Path) -> FileIO:
    """Open a picture file for reading. Raises ImageError if it is missing, unreadable or too large."""
    try:
        return open_regular(path, MAX_FILE_BYTES)
    except FileNotFoundError as error:
        raise ImageError("missing", path.name) from error
    except FileTooLarge as error:
        raise too_large_file(path.name, error.size_bytes) from error
    except OSError as error:
        raise ImageError("unreadable", path.name, error.strerror or str(error)) from error


def hash_image(path: Path, file: FileIO) -> str:
    """Return the SHA-256 of an open picture file as hex digits. Raises ImageError."""
    try:
        return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ImageError("unreadable", path.name, error.strerror or str(error)) from error


def too_large_file(name: str, size_bytes: int) -> ImageError:
    """Return the error for a file of this size."""
    return ImageError("file_too_large", name, show_bytes(size_bytes), show_bytes(MAX_FILE_BYTES))


def inspect_image(path: Path, source: FileIO | bytes | None = None) -> ImageFacts:
    """Return the facts of a picture. Raises ImageError.

    Read from `source`, an open file or the bytes of one, if given; then `path` only names it.
    """
    reply, _ = _run_decoder(path, source, InspectImage())
    return reply


def decode_image(
    path: Path, source: FileIO | bytes | None = None, *, longest_side: int = 0, max_pixels: int = 0
) -> DecodedImage:
    """Return a picture upright, its first frame, reduced to both limits (0: none). Raises ImageError.

    `source` as for `inspect_image`.
    """
    return DecodedImage(*_run_decoder(path, source, DecodeImage(longest_side, max_pixels)))


def _run_decoder(
    path: Path, source: FileIO | bytes | None, request: InspectImage | DecodeImage
) -> tuple[ImageFacts, bytes]:
    if isinstance(source, bytes) and len(source) > MAX_FILE_BYTES:
        raise too_large_file(path.name, len(source))
    if source is None:
        with open_image(path) as file:
            reply, pixels = run_decoder(file, request)
    else:
        reply, pixels = run_decoder(source, request)
    if isinstance(reply, ImageFacts):
        return reply, pixels
    raise _error_for(path.name, reply)


def _error_for(name: str, reply: DecodeReply) -> ImageError:
    if not isinstance(reply, DecodeRefusal):
        return ImageError("failed", name, tr("unexpected answer"))
    match reply.reason:
        case "not_an_image":
            return ImageError("not_an_image", name)
        case "too_many_pixels":
            size, needed, limit = f"{reply.width}x{reply.height}", reply.decoded_bytes, MAX_DECODED_BYTES
            return ImageError("too_many_pixels", name, size, show_bytes(needed), show_bytes(limit))
        case "out_of_memory":
            return ImageError("out_of_memory", name, show_bytes(MAX_PROCESS_BYTES))
        case "damaged":
            return ImageError("damaged", name, reply.detail)
        case reason:
            return ImageError("failed", name, reply.detail or reason)
