"""Reads and renders one PDF file with PDFium. Runs in the decoding process only."""

import io
import re
from typing import Any, BinaryIO

import pypdfium2

from qwendesk.decoding.protocol import DecodeRefusal, DocumentText, PngFiles, ReadPdfText, RenderPdfPages


def decode_pdf(
    file: BinaryIO, request: ReadPdfText | RenderPdfPages
) -> tuple[DocumentText | PngFiles | DecodeRefusal, bytes]:
    """Return the reply to `request` and the bytes that follow it."""
    try:
        document = pypdfium2.PdfDocument(file)
    except pypdfium2.PdfiumError as error:
        return DecodeRefusal(reason="locked" if "password" in str(error).lower() else "not_a_pdf"), b""
    try:
        n_pages = len(document)
        missing = [number for number in request.pages if not 1 <= number <= n_pages]
        if missing:
            return DecodeRefusal(reason="no_such_page", detail=str(missing[0]), pages=n_pages), b""
        if isinstance(request, ReadPdfText):
            return _read_text(document, request)
        pages = [_render_page(document[number - 1], request.longest_side) for number in request.pages]
        return PngFiles(tuple(map(len, pages))), b"".join(pages)
    except pypdfium2.PdfiumError as error:
        return DecodeRefusal(reason="damaged", detail=str(error)), b""
    finally:
        document.close()


def _read_text(document: Any, request: ReadPdfText) -> tuple[DocumentText | DecodeRefusal, bytes]:
    n_pages = len(document)
    if n_pages > request.max_pages:
        return DecodeRefusal(reason="too_many_pages", pages=n_pages), b""
    pieces: list[bytes] = []
    damaged: list[int] = []
    length = 0
    for number in request.pages or range(1, n_pages + 1):
        try:
            piece = _page_text(document, number)
        except pypdfium2.PdfiumError:
            damaged.append(len(pieces))
            if len(damaged) == len(request.pages or range(n_pages)):
                raise
            piece = ""
        length += len(piece)
        if length > request.max_characters:
            return DecodeRefusal(reason="too_much_text"), b""
        pieces.append(piece.encode("utf-8", "replace"))
    return DocumentText(tuple(map(len, pieces)), damaged=tuple(damaged)), b"".join(pieces)


def _page_text(document: Any, number: int) -> str:
    page = document[number - 1]
    text_page = page.get_textpage()
    text = text_page.get_text_bounded().replace("\r\n", "\n").replace("\r", "\n")
    text_page.close()
    page.close()
    return _with_whole_words(text).strip()


# PDFium puts one of these for the hyphen at the end of a line, sometimes with the line break, and says no more of it.
_LINE_HYPHEN = re.compile("[\x02\ufffe] ?\n?(?=(\\S?))")


def _with_whole_words(text: str) -> str:
    """Return a text with the words whole that a line break hyphenated.

    Before a capital or a digit the hyphen stays: there it belongs to the word, as in COVID-19.
    """
    return _LINE_HYPHEN.sub(lambda found: "" if found[1].islower() else "-", text)


def _render_page(page: Any, longest_side: int) -> bytes:
    width, height = page.get_size()
    picture = page.render(scale=longest_side / max(width, height, 1.0)).to_pil()
    page.close()
    data = io.BytesIO()
    picture.save(data, "PNG")
    return data.getvalue()
