"""Text and page images of PDF files, read by PDFium in a process of its own, and page ranges as users write them."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from qwendesk.core.errors import BadRequest
from qwendesk.core.permissions import create_own, make_folder
from qwendesk.core.translation import tr, tr_n
from qwendesk.decoding.documents import read_pieces, render_pages

# Limit of pages rendered at once; each takes about a thousand tokens.
MAX_PAGE_IMAGES = 20
# Longer side of a rendered page, at which small print on an A4 page is still readable.
_PAGE_PIXELS = 1_400


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
    pages = read_pieces(path, numbers)
    return "\n\n".join(page.text for page in pages if page.text), len(pages)


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
    yield from render_pages(path, pages, _PAGE_PIXELS)


_PIECE = re.compile(r"(?P<one>\d{1,6})|(?P<first>\d{1,6})?\s*[-–]\s*(?P<last>\d{1,6})?")


def parse_pages(text: str, n_pages: int) -> tuple[int, ...]:
    """Return page numbers, counted from 1, in the given order and each once; all pages for an empty text.

    "3-" includes the last page. Raises BadRequest if the text is no page range or a page doesn't exist.
    """
    if not text.strip():
        return tuple(range(1, n_pages + 1))
    pages: dict[int, None] = {}
    for piece in re.split(r"[,;]", text):
        pages.update(dict.fromkeys(_numbers(piece.strip(), n_pages)))
    return tuple(pages)


def show_pages(pages: Sequence[int]) -> str:
    """Return the shortest text from which `parse_pages` returns these pages."""
    runs: list[list[int]] = []
    for page in pages:
        if runs and page == runs[-1][1] + 1:
            runs[-1][1] = page
        else:
            runs.append([page, page])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def _numbers(piece: str, n_pages: int) -> range:
    match = _PIECE.fullmatch(piece)
    if match is None or not any(match.groups()):
        raise BadRequest(tr("Not a page range"), tr("“{0}” is not a page range. Write pages like 1-3, 7.", piece))
    first = int(match["one"] or match["first"] or 1)
    last = int(match["one"] or match["last"] or n_pages)
    if not 1 <= first <= last:
        raise BadRequest(tr("Not a page range"), tr("“{0}” runs backwards. Write pages like 1-3, 7.", piece))
    if last > n_pages:
        sentence = tr_n(
            "The document has {0} page, so there's no page {1}.",
            "The document has {0} pages, so there's no page {1}.",
            n_pages,
            last,
        )
        raise BadRequest(tr("Page not found"), sentence)
    return range(first, last + 1)
