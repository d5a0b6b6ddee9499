"""What the search tool asks of a search service, and what it makes of the answer."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from qwendesk.toolbox.tool import ToolError
from qwendesk.toolbox.web.page_encoding import readable

MOST_RESULTS = 8
MOST_QUERY_CHARACTERS = 400
"""Brave's limit; the others have higher ones."""
_MOST_TITLE, _MOST_ADDRESS, _MOST_SNIPPET = 150, 500, 400


class FoundPage(msgspec.Struct, frozen=True):
    """A result of a search, as the service gave it."""

    title: str
    address: str
    snippet: str


class SearchService(Protocol):
    """A service that searches the web."""

    title: str
    """As the user knows it."""
    host: str
    """What the query is sent to."""

    async def search(self, query: str) -> Sequence[FoundPage]:
        """Return the best results, the best first. Raise ToolError if the service can't be used or gives no answer."""


def shown_results(found: Sequence[FoundPage], service: SearchService) -> str:
    """Return results as the model reads them. Raise ToolError if there are none."""
    pages = [page for page in found if page.address.startswith(("https://", "http://"))][:MOST_RESULTS]
    if not pages:
        raise ToolError(f"{service.title} found nothing. Try fewer or other words.")
    return "\n".join(
        f"{number}. {_line(page.title, _MOST_TITLE)}\n{_line(page.address, _MOST_ADDRESS)}\n"
        f"{_line(page.snippet, _MOST_SNIPPET)}"
        for number, page in enumerate(pages, 1)
    )


def _line(text: str, most: int) -> str:
    line = " ".join(readable(text).split())
    return line if len(line) <= most else f"{line[:most]}…"
