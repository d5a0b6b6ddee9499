"""Requests to a decoding process, its replies, and the limits of what it reads.

The request is the last command-line argument; the file is standard input. The reply is one line of JSON on standard
output, followed by the bytes that it announces.
"""

from typing import Literal

import msgspec

from qwendesk.core.units import MIB


class InspectImage(msgspec.Struct, frozen=True, tag="inspect_image"):
    """Asks for the facts of a picture, without its pixels."""


class DecodeImage(msgspec.Struct, frozen=True, tag="decode_image"):
    """Asks for a picture's first frame, upright and reduced to both limits (0: no limit)."""

    longest_side: int = 0
    max_pixels: int = 0


class ReadPdfText(msgspec.Struct, frozen=True, tag="read_pdf_text"):
    """Asks for the text of these pages (from 1), or of all."""

    pages: tuple[int, ...] = ()
    max_pages: int = 0
    max_characters: int = 0


class ReadOfficeText(msgspec.Struct, frozen=True, tag="read_office_text"):
    """Asks for the text of a document of this format: a file extension without its dot."""

    format: str
    max_characters: int


class ReadPage(msgspec.Struct, frozen=True, tag="read_page"):
    """Asks for title and text of a web page in UTF-8."""

    max_characters: int


class RenderPdfPages(msgspec.Struct, frozen=True, tag="render_pdf_pages"):
    """Asks for these pages (from 1) as PNG files whose longer side has `longest_side` pixels."""

    pages: tuple[int, ...]
    longest_side: int


DecodeRequest = InspectImage | DecodeImage | ReadPdfText | ReadOfficeText | ReadPage | RenderPdfPages


class ImageFacts(msgspec.Struct, frozen=True, tag="image"):
    """A picture. Its pixels follow, unless it was only inspected: `mode` "RGB" or "RGBA", rows from the top."""

    format: str
    """Pillow's name, such as "PNG"."""
    width: int
    """Of the upright picture in the file, in pixels."""
    height: int
    mode: str = ""
    pixel_width: int = 0
    pixel_height: int = 0


class DocumentText(msgspec.Struct, frozen=True, tag="document_text"):
    """Texts of these lengths in bytes follow as UTF-8, one for each page, slide, sheet or chapter."""

    lengths: tuple[int, ...]
    names: tuple[str, ...] = ()
    """Of each part, "" if it has none; empty if no part has one."""


class PageText(msgspec.Struct, frozen=True, tag="page_text"):
    """A web page, whose text follows as UTF-8."""

    title: str


class PdfPages(msgspec.Struct, frozen=True, tag="pdf_pages"):
    """PNG files of these lengths follow, one after the other."""

    lengths: tuple[int, ...]


RefusalReason = Literal[
    "not_an_image", "too_many_pixels", "damaged", "out_of_memory", "no_such_page", "too_many_pages", "too_much_text",
    "locked", "not_a_pdf", "not_a_document", "time_limit", "crashed", "failed",
]  # fmt: skip


class DecodeRefusal(msgspec.Struct, frozen=True, tag="refusal", kw_only=True):
    """Why a file was not decoded."""

    reason: RefusalReason
    detail: str = ""
    width: int = 0
    height: int = 0
    decoded_bytes: int = 0
    pages: int = 0


DecodeReply = ImageFacts | DocumentText | PageText | PdfPages | DecodeRefusal


# Larger picture and PDF files are refused before they are read.
MAX_FILE_BYTES = 256 * MIB
# Larger pictures are refused before decoding: above 134 megapixels of 4 bytes, or 67 of 16-bit RGBA.
MAX_DECODED_BYTES = 512 * MIB
# Memory of the decoding process. A picture at the limit takes two to three times its size.
MAX_PROCESS_BYTES = 2048 * MIB
# Memory of a decoding process that reads texts. A PDF of 2,000 pages takes less than 300 MB.
MAX_TEXT_PROCESS_BYTES = 1024 * MIB
# A PDF of 2,000 pages takes about 20 s.
TIME_LIMIT_S = 120.0


def memory_limit(request: DecodeRequest) -> int:
    """Return how many bytes of memory the process may have that serves a request."""
    is_text = isinstance(request, ReadPdfText | ReadOfficeText | ReadPage)
    return MAX_TEXT_PROCESS_BYTES if is_text else MAX_PROCESS_BYTES


def fit_longest_side(width: int, height: int, longest_side: int) -> tuple[int, int]:
    """Return the size of the same shape with at most `longest_side` pixels a side, and no side less than 1."""
    scale = longest_side / max(width, height)
    return (width, height) if scale >= 1 else (max(1, round(width * scale)), max(1, round(height * scale)))


def fit_pixels(width: int, height: int, max_pixels: int) -> tuple[int, int]:
    """Return the size of the same shape with at most `max_pixels` pixels, and no side less than 1."""
    scale = (max_pixels / (width * height)) ** 0.5
    return (width, height) if scale >= 1 else (max(1, int(width * scale)), max(1, int(height * scale)))
