"""Text and page images of PDF files, read by PDFium in a process of its own. All functions block."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from qwendesk.core.errors import BadRequest
from qwendesk.core.input_files import open_regular
from qwendesk.core.number_format import show_count
from qwendesk.core.permissions import make_folder
from qwendesk.core.safe_open import create_own
from qwendesk.core.translation import tr
from qwendesk.core.units import show_bytes
from qwendesk.decoding.limits import MAX_FILE_BYTES, MAX_PROCESS_BYTES
from qwendesk.decoding.process import run_decoder
from qwendesk.decoding.protocol import DecodeRefusal, DecodeReply, PdfPages, PdfText, ReadPdfText, RenderPdfPages

MAX_PAGES = 2_000
MAX_PAGE_IMAGES = 20
"""Limit of pages rendered at once; each takes about a thousand tokens."""
_PAGE_PIXELS = 1_400
"""Longer side of a rendered page, at which small print on an A4 page is still readable."""
_MAX_CHARACTERS = 16_000_000


class PdfFacts(msgspec.Struct, frozen=True):
    pages: int
    characters: int
    """Length of the text; close to 0 for a scanned document."""

    @property
    def looks_scanned(self) -> bool:
        return self.characters < 20 * self.pages


def pdf_facts(path: Path) -> PdfFacts:
    """Return the numbers of pages and characters. Raises BadRequest if the file can't be read."""
    text, pages = pdf_text(path)
    return PdfFacts(pages, len(text.strip()))


def pdf_text(path: Path, numbers: Sequence[int] = ()) -> tuple[str, int]:
    """Return the text of the pages with these numbers (from 1; all if none is given), and how many pages these are.

    Raises BadRequest if the file can't be read or a page doesn't exist.
    """
    reply, text = _decoded(path, ReadPdfText(tuple(numbers), MAX_PAGES, _MAX_CHARACTERS))
    if not isinstance(reply, PdfText):
        raise _refusal(path.name, reply)
    return text.decode("utf-8", "replace"), reply.pages


def pdf_pictures(path: Path, folder: Path, pages: tuple[int, ...]) -> tuple[Path, ...]:
    """Render the pages with these numbers (from 1) as PNG files in `folder` and return their paths in order.

    Raises BadRequest as `draw_pages` does.
    """
    make_folder(folder)
    drawn = []
    for number, data in zip(pages, draw_pages(path, pages), strict=True):
        target = folder / f"{path.stem}-{number}.png"
        with create_own(target) as file:
            file.write(data)
        drawn.append(target)
    return tuple(drawn)


def draw_pages(path: Path, pages: tuple[int, ...]) -> Iterator[bytes]:
    """Yield the pages with these numbers (from 1) as the contents of PNG files.

    Raises BadRequest if the file can't be read, a page doesn't exist, or there are too many pages.
    """
    if len(pages) > MAX_PAGE_IMAGES:
        sentence = tr("You can attach up to {0} pages as pictures at once.", MAX_PAGE_IMAGES)
        raise BadRequest(tr("Too many pages"), sentence)
    reply, content = _decoded(path, RenderPdfPages(pages, _PAGE_PIXELS))
    if not isinstance(reply, PdfPages):
        raise _refusal(path.name, reply)
    start = 0
    for length in reply.lengths:
        yield content[start : start + length]
        start += length


def _decoded(path: Path, request: ReadPdfText | RenderPdfPages) -> tuple[DecodeReply, bytes]:
    try:
        with open_regular(path, MAX_FILE_BYTES) as file:
            return run_decoder(file, request)
    except FileNotFoundError as error:
        raise BadRequest(tr("File not found"), tr("{0} could not be found.", path.name)) from error
    except OSError as error:
        sentence = tr("{0} can't be read: {1}.", path.name, error.strerror or error)
        raise BadRequest(tr("File not readable"), sentence) from error


def _refusal(name: str, reply: DecodeReply) -> BadRequest:
    refusal = reply if isinstance(reply, DecodeRefusal) else DecodeRefusal(reason="failed", detail="unexpected answer")
    match refusal.reason:
        case "locked":
            return BadRequest(tr("PDF not readable"), tr("{0} is protected by a password.", name))
        case "not_a_pdf":
            return BadRequest(tr("PDF not readable"), tr("{0} is damaged or not a PDF.", name))
        case "no_such_page":
            sentence = tr("{0} has no page {1}; the last one is page {2}.", name, refusal.detail, refusal.pages)
            return BadRequest(tr("Page not found"), sentence)
        case "too_many_pages":
            found, limit = show_count(refusal.pages), show_count(MAX_PAGES)
            sentence = tr("{0} has {1} pages. QwenDesk can read up to {2}.", name, found, limit)
            return BadRequest(tr("Too many pages"), sentence)
        case "too_much_text":
            return BadRequest(tr("Too much text"), tr("{0} has more text than any model can read.", name))
        case "out_of_memory":
            sentence = tr("Reading {0} needs more than {1} of memory.", name, show_bytes(MAX_PROCESS_BYTES))
            return BadRequest(tr("PDF too large"), sentence)
        case reason:
            return BadRequest(tr("PDF not readable"), tr("{0} is damaged: {1}.", name, refusal.detail or reason))
