"""PDF files: their text, or their pages as pictures. By pypdfium2; blocks, so call it on another thread.

PDFium is not safe for several threads: all calls go through one lock.
"""

import io
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from qwendesk.core.errors import BadRequest

MOST_PAGES = 2_000
MOST_PICTURES = 20
"""Pages drawn at once; each fills about a thousand tokens."""
_PAGE_PIXELS = 1_400
"""The longer side of a drawn page: small print of an A4 page can still be read."""
_MOST_CHARACTERS = 16_000_000

_one_at_a_time = threading.Lock()


class PdfFacts(msgspec.Struct, frozen=True):
    pages: int
    characters: int
    """Of its text; next to none means that it was scanned."""

    @property
    def looks_scanned(self) -> bool:
        return self.characters < 20 * self.pages


def pdf_facts(path: Path) -> PdfFacts:
    """How many pages and how much text there is. Raises BadRequest when the file cannot be read."""
    text, pages = pdf_text(path)
    return PdfFacts(pages, len(text.strip()))


def pdf_text(path: Path, numbers: Sequence[int] = ()) -> tuple[str, int]:
    """The text of the pages with these numbers (from 1; none: all), page after page, and how many pages that is.

    Raises BadRequest when the file cannot be read or a page is not there.
    """
    pieces, length = [], 0
    with _opened(path) as document:
        pages = len(document)
        if pages > MOST_PAGES:
            raise BadRequest("Too many pages", f"{path.name} has {pages} pages, and at most {MOST_PAGES} can be read.")
        if numbers and not 1 <= min(numbers) <= max(numbers) <= pages:
            raise BadRequest("No such page", f"{path.name} has {pages} pages, and not all that were asked for.")
        for number in numbers or range(1, pages + 1):
            page = document[number - 1]
            text_page = page.get_textpage()
            piece = text_page.get_text_bounded().replace("\r\n", "\n").replace("\r", "\n").strip()
            text_page.close()
            page.close()
            length += len(piece)
            if length > _MOST_CHARACTERS:
                raise BadRequest("Too much text", f"{path.name} has more text than any model can read.")
            pieces.append(piece)
    return "\n\n".join(piece for piece in pieces if piece), len(numbers) or pages


def pdf_pictures(path: Path, folder: Path, pages: tuple[int, ...]) -> tuple[Path, ...]:
    """Draws the pages with these numbers (from 1) as PNG files into `folder`, and returns them in order.

    Raises BadRequest as `draw_pages` does.
    """
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    for number, data in zip(pages, draw_pages(path, pages), strict=True):
        target = folder / f"{path.stem}-{number}.png"
        target.write_bytes(data)
        drawn.append(target)
    return tuple(drawn)


def draw_pages(path: Path, pages: tuple[int, ...]) -> Iterator[bytes]:
    """The pages with these numbers (from 1), each as the bytes of a PNG file, one after the other.

    Raises BadRequest when the file cannot be read, a page is not there, or they are too many at once.
    """
    if len(pages) > MOST_PICTURES:
        raise BadRequest("Too many pages", f"At most {MOST_PICTURES} pages can be attached as pictures at once.")
    with _opened(path) as document:
        for number in pages:
            if not 1 <= number <= len(document):
                raise BadRequest("No such page", f"{path.name} has no page {number}.")
            page = document[number - 1]
            width, height = page.get_size()
            picture = page.render(scale=_PAGE_PIXELS / max(width, height, 1.0)).to_pil()
            page.close()
            data = io.BytesIO()
            picture.save(data, "PNG")
            yield data.getvalue()


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    import pypdfium2

    with _one_at_a_time:
        try:
            document = pypdfium2.PdfDocument(path)
        except FileNotFoundError as error:
            raise BadRequest("File not readable", f"{path.name} is not there any more.") from error
        except pypdfium2.PdfiumError as error:
            locked = "password" in str(error).lower()
            why = "is protected by a password" if locked else "is damaged or no PDF"
            raise BadRequest("PDF not readable", f"{path.name} {why}, so it cannot be read.") from error
        try:
            yield document
        except pypdfium2.PdfiumError as error:
            raise BadRequest("PDF not readable", f"{path.name} is damaged: {error}.") from error
        finally:
            document.close()
