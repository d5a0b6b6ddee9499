"""The text of PDF files, Office documents and e-books, read in a process of its own. All functions block."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePath
from types import MappingProxyType
from typing import Final

import msgspec

from qwendesk.core.citations import Unit
from qwendesk.core.errors import BadRequest
from qwendesk.core.input_files import OpenFile, open_regular
from qwendesk.core.number_format import show_count
from qwendesk.core.translation import tr
from qwendesk.core.units import show_bytes
from qwendesk.decoding.process import run_decoder
from qwendesk.decoding.protocol import (
    MAX_FILE_BYTES,
    DecodeRefusal,
    DecodeReply,
    DocumentText,
    PngFiles,
    ReadOfficeText,
    ReadPdfText,
    RenderPdfPages,
    memory_limit,
)

MAX_PAGES = 2_000
_MAX_CHARACTERS = 16_000_000
# What the documents of each format are made of, by file extension in lower case and without the dot.
UNITS: Final[Mapping[str, Unit]] = MappingProxyType(
    {
        "pdf": "page", "docx": "", "odt": "", "rtf": "", "pptx": "slide", "odp": "slide",
        "xlsx": "sheet", "xls": "sheet", "ods": "sheet", "epub": "chapter",
    }
)  # fmt: skip


class DocumentPiece(msgspec.Struct, frozen=True):
    """A page, slide, sheet or chapter, or all of a document that has no such parts."""

    text: str
    name: str = ""
    """Of a sheet."""


def document_format(name: str) -> str:
    """Return the format of a document by the name of its file; "" if it is none that can be read."""
    ending = PurePath(name).suffix.lower().lstrip(".")
    return ending if ending in UNITS else ""


def read_pieces(
    path: Path,
    pages: Sequence[int] = (),
    is_cancelled: Callable[[], bool] = lambda: False,
    open_file: OpenFile = open_regular,
) -> tuple[DocumentPiece, ...]:
    """Return the text of a document. For a PDF, `pages` are the numbers (from 1) of the pages to read; all if empty.

    A damaged page is one sentence that says so. Raises BadRequest if the file can't be read or has only such pages, if
    a page doesn't exist, or if it was cancelled.
    """
    kind = document_format(path.name)
    request = (
        ReadPdfText(tuple(pages), MAX_PAGES, _MAX_CHARACTERS)
        if kind == "pdf"
        else ReadOfficeText(kind, _MAX_CHARACTERS)
    )
    reply, content = _decoded(path, request, is_cancelled, open_file)
    if not isinstance(reply, DocumentText):
        raise _refusal(path.name, reply, memory_limit(request))
    texts = reply.split(content)
    damaged = tr("[This page is damaged and can't be read.]")
    return tuple(
        DocumentPiece(damaged if text is None else text, name)
        for text, name in zip(texts, reply.names or ("",) * len(texts), strict=True)
    )


def render_pages(path: Path, pages: tuple[int, ...], longest_side: int) -> tuple[bytes, ...]:
    """Return the pages of a PDF with these numbers (from 1) as the contents of PNG files. Raises BadRequest."""
    request = RenderPdfPages(pages, longest_side)
    reply, content = _decoded(path, request)
    if not isinstance(reply, PngFiles):
        raise _refusal(path.name, reply, memory_limit(request))
    return reply.split(content)


def _decoded(
    path: Path,
    request: ReadPdfText | ReadOfficeText | RenderPdfPages,
    is_cancelled: Callable[[], bool] = lambda: False,
    open_file: OpenFile = open_regular,
) -> tuple[DecodeReply, bytes]:
    try:
        with open_file(path, MAX_FILE_BYTES) as file:
            return run_decoder(file, request, is_cancelled)
    except FileNotFoundError as error:
        raise BadRequest(tr("File not found"), tr("{0} could not be found.", path.name)) from error
    except OSError as error:
        sentence = tr("{0} can't be read: {1}.", path.name, error.strerror or error)
        raise BadRequest(tr("File not readable"), sentence) from error


def _refusal(name: str, reply: DecodeReply, limit_bytes: int) -> BadRequest:
    refusal = reply if isinstance(reply, DecodeRefusal) else DecodeRefusal(reason="failed", detail="unexpected answer")
    title = tr("Document not readable")
    match refusal.reason:
        case "locked":
            return BadRequest(title, tr("{0} is protected by a password.", name))
        case "not_a_pdf":
            return BadRequest(title, tr("{0} is damaged, empty or not a PDF.", name))
        case "no_such_page":
            sentence = tr("{0} has no page {1}; the last one is page {2}.", name, refusal.detail, refusal.pages)
            return BadRequest(tr("Page not found"), sentence)
        case "too_many_pages":
            found, limit = show_count(refusal.pages), show_count(MAX_PAGES)
            sentence = tr("{0} has {1} pages. QwenDesk can read up to {2}.", name, found, limit)
            return BadRequest(tr("Too many pages"), sentence)
        case "too_much_text":
            return BadRequest(tr("Too much text"), tr("{0} has more text than any model can read.", name))
        case "too_large":
            return BadRequest(tr("Document too large"), tr("{0} can't be read: {1}.", name, refusal.detail))
        case "out_of_memory":
            sentence = tr("Reading {0} needs more than {1} of memory.", name, show_bytes(limit_bytes))
            return BadRequest(tr("Document too large"), sentence)
        case "crashed":
            sentence = tr("{0} can't be read: it is damaged, or needs more than {1} of memory.", name,
                          show_bytes(limit_bytes))  # fmt: skip
            return BadRequest(title, sentence)
        case "time_limit":
            return BadRequest(title, tr("Reading {0} takes too long.", name))
        case reason:
            return BadRequest(title, tr("{0} is damaged: {1}.", name, refusal.detail.rstrip(".") or reason))
