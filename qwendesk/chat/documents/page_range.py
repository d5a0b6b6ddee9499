"""Page ranges as users write them: "1-3, 7"."""

import re
from collections.abc import Sequence

from qwendesk.core.errors import BadRequest
from qwendesk.core.translation import tr, tr_n

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
