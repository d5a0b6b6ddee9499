"""Searching with DuckDuckGo, whose result pages the library ddgs reads: there is no API and no key."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from qwendesk.toolbox.tool import ToolError
from qwendesk.toolbox.web.search_service import MOST_RESULTS, FoundPage

_LIMIT_S = 15
_EVERYWHERE = "wt-wt"
"""DuckDuckGo's word for results of no particular country."""


def _search_by_library(query: str, proxy: str) -> list[dict[str, Any]]:
    """Search, and return the results as the library gives them. Blocks. Raises DDGSException."""
    from ddgs import DDGS  # noqa: PLC0415 - it loads 15 MB, which only a search needs

    # Of the search engines that the library knows, this one alone gets the query.
    return DDGS(proxy=proxy or None, timeout=_LIMIT_S).text(
        query, region=_EVERYWHERE, safesearch="moderate", max_results=MOST_RESULTS, backend="duckduckgo"
    )


class DuckDuckGo:
    """The service. It limits how often one address may search, and does not say so in a way that could be told."""

    title, host = "DuckDuckGo", "html.duckduckgo.com"

    def __init__(
        self, proxy: str, search_by_library: Callable[[str, str], list[dict[str, Any]]] = _search_by_library
    ) -> None:
        self._proxy, self._search_by_library = proxy, search_by_library

    async def search(self, query: str) -> Sequence[FoundPage]:
        from ddgs.exceptions import DDGSException, RatelimitException, TimeoutException  # noqa: PLC0415

        try:
            found = await asyncio.to_thread(self._search_by_library, query, self._proxy)
        except TimeoutException:
            raise ToolError("DuckDuckGo did not answer in time. Try again later.") from None
        except RatelimitException:
            raise _limited() from None
        except DDGSException as error:
            raise _no_results() if "No results" in str(error) else _no_connection() from error
        return [FoundPage(str(each["title"]), str(each["href"]), str(each["body"])) for each in found]


def _limited() -> ToolError:
    return ToolError("DuckDuckGo limits how often it can be searched. Wait a few minutes, or answer without searching.")


def _no_results() -> ToolError:
    return ToolError(
        "DuckDuckGo gave no results. Either it found nothing, so try other words once; or it limits how often it can "
        "be searched, so wait a few minutes. The user can choose another search service in Settings."
    )


def _no_connection() -> ToolError:
    return ToolError("No connection to DuckDuckGo. This PC may have none to the Internet.")
