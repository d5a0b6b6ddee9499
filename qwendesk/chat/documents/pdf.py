"""Text and page images of PDF files, read by PDFium in a process of its own. All functions block."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from qwendesk.core.errors import BadRequest
from qwendesk.core.permissions import make_folder
from qwendesk.core.safe_open import create_own
from qwendesk.core.translation import tr
from qwendesk.decoding.documents import read_pieces, render_pages

MAX_PAGE_IMAGES = 20
"""Limit of pages rendered at once; each takes about a thousand tokens."""
_PAGE_PIXELS = 1_400
"""Longer side of a rendered page, at which small print on an A4 page is still readable."""


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
