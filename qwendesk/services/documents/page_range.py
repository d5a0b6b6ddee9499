"""Which pages of a document: "1-3, 7", as people write it."""

import re
from collections.abc import Sequence

from qwendesk.core.errors import BadRequest

_PIECE = re.compile(r"(?P<one>\d{1,6})|(?P<first>\d{1,6})?\s*[-–]\s*(?P<last>\d{1,6})?")


def parse_pages(text: str, n_pages: int) -> tuple[int, ...]:
    """The numbers from 1, in their order, each once; all for an empty text. "3-" goes on to the last page.

    Raises BadRequest with a sentence for what is no such list, and for a page that is not there.
    """
    if not text.strip():
        return tuple(range(1, n_pages + 1))
    pages: dict[int, None] = {}
    for piece in re.split(r"[,;]", text):
        pages.update(dict.fromkeys(_numbers(piece.strip(), n_pages)))
    return tuple(pages)


def show_pages(pages: Sequence[int]) -> str:
    """What `parse_pages` reads, as short as it gets."""
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
        raise BadRequest("Not pages", f'"{piece}" is no page. Write pages as 1-3, 7.')
    first = int(match["one"] or match["first"] or 1)
    last = int(match["one"] or match["last"] or n_pages)
    if not 1 <= first <= last:
        raise BadRequest("Not pages", f'"{piece}" goes backwards. Write pages as 1-3, 7.')
    if last > n_pages:
        raise BadRequest("No such page", f"There is no page {last}: the document has {n_pages}.")
    return range(first, last + 1)
