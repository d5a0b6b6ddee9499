"""The tool that searches the web, with DuckDuckGo, Brave Search or a SearXNG server as the user chooses."""

import asyncio
import html
import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import httpx2
import msgspec

from qwendesk.core.app_options import AppOptions
from qwendesk.core.json_decoding import decode_json
from qwendesk.core.tool_context import CallContext
from qwendesk.core.translation import tr
from qwendesk.core.units import MIB
from qwendesk.hub.access_tokens import SEARCH_HOST, load_token
from qwendesk.toolbox.tool import Arguments, ToolError
from qwendesk.toolbox.web.page_text import readable

MOST_RESULTS = 8
# Brave's limit; the others have higher ones.
MOST_QUERY_CHARACTERS = 400
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
    """Service that the query is sent to."""

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


def chosen_service(options: AppOptions) -> SearchService:
    """Return the search service of the settings. Raise ToolError if none can be used."""
    if options.offline:
        raise ToolError("QwenDesk is set to offline, so nothing can be searched. The user can change that in Settings.")
    match options.search_service:
        case "brave":
            return BraveSearch(options.proxy)
        case "searxng":
            if not options.searxng_address:
                raise ToolError("The user has to enter the address of a SearXNG server in Settings first.")
            return SearXng(options.searxng_address, options.proxy)
        case "duckduckgo":
            return DuckDuckGo(options.proxy)


def preview(arguments: Arguments, service: SearchService) -> str:
    """Return what the user sees before consent. Raise ToolError for a search that can't be."""
    query = _query(arguments)
    return "\n".join((tr("Sends a search to {0} ({1}).", service.title, service.host), tr("Search: {0}", query)))


async def run(arguments: Arguments, context: CallContext, service: SearchService) -> str:
    """Search, and return what was found. Raise ToolError if nothing was, or if the user saw something else."""
    if context.confirmed != preview(arguments, service):
        raise ToolError("The user has chosen another search service meanwhile. Search again.")
    return shown_results(await service.search(_query(arguments)), service)


def _query(arguments: Arguments) -> str:
    """Return the query on one line, as it is shown and sent. Raise ToolError for one that is too short or long."""
    query = " ".join(str(arguments["query"]).split())
    if not query:
        raise ToolError("Give at least one word to search for.")
    if len(query) > MOST_QUERY_CHARACTERS:
        raise ToolError(f"A search has at most {MOST_QUERY_CHARACTERS} characters. Use fewer words.")
    return query


# Of an answer, which is decoded at once; ten results have some kilobytes.
_MOST_BYTES = MIB
_LIMIT_S = 20.0


class BraveSearch:
    """Brave's own index: https://api-dashboard.search.brave.com/documentation."""

    title, host = "Brave Search", SEARCH_HOST

    def __init__(self, proxy: str, address: str = f"https://{SEARCH_HOST}") -> None:
        self._proxy, self._address = proxy, address

    async def search(self, query: str) -> Sequence[FoundPage]:
        key = await asyncio.to_thread(load_token, SEARCH_HOST)
        if not key:
            raise ToolError("Brave Search needs a key. The user can enter theirs in Settings, under Search key.")
        answer = await _ask(
            self.title,
            f"{self._address}/res/v1/web/search",
            {"q": query, "count": str(MOST_RESULTS), "text_decorations": "false"},
            {"X-Subscription-Token": key},
            self._proxy,
        )
        if answer.status in (401, 402, 403, 422):
            raise ToolError(
                f"Brave Search does not accept the user's key, or its plan is used up ({answer.status}). They can "
                "change the key in Settings."
            )
        web = answer.json(self.title).get("web")
        return _pages(web.get("results") if isinstance(web, dict) else [], "description")


class SearXng:
    """A server that asks other search engines: https://docs.searxng.org/dev/search_api."""

    title = "SearXNG"

    def __init__(self, address: str, proxy: str) -> None:
        """`address` is what the user entered; it may be on this PC or in a private network."""
        self._address = address.rstrip("/")
        try:
            self.host = httpx2.URL(self._address).netloc.decode("ascii")
        except httpx2.InvalidURL:
            raise ToolError("The address of the SearXNG server in Settings is not valid.") from None
        self._proxy = "" if _is_nearby(self._address) else proxy

    async def search(self, query: str) -> Sequence[FoundPage]:
        answer = await _ask(
            self.title, f"{self._address}/search", {"q": query, "format": "json"}, {}, self._proxy,
            trusts_system=not _is_nearby(self._address),
        )  # fmt: skip
        if answer.status == 403:
            raise ToolError(
                f"The SearXNG server {self.host} gives no answers to programs. Whoever runs it can allow that: "
                "search.formats in its settings.yml must contain json."
            )
        return _pages(answer.json(self.title).get("results"), "content")


class _Answer:
    def __init__(self, status: int, content: bytes) -> None:
        self.status, self._content = status, content

    def json(self, title: str) -> dict[str, Any]:
        """Return the answer's JSON. Raise ToolError if it is none, or tells a problem."""
        if self.status == 429:
            raise ToolError(f"{title} limits how often it can be searched. Wait a minute, or answer without searching.")
        if 300 <= self.status < 400:
            raise ToolError(f"{title} has moved, so the address in Settings is no longer right.")
        if self.status >= 500:
            raise ToolError(f"{title} has a problem right now ({self.status}). Try again later.")
        try:
            found = decode_json(self._content)
        except msgspec.DecodeError:
            found = None
        if self.status != 200 or not isinstance(found, dict):
            raise ToolError(f"{title} gave an answer that is no search result (status {self.status}).")
        return found


async def _ask(
    title: str,
    address: str,
    query: Mapping[str, str],
    headers: Mapping[str, str],
    proxy: str,
    *,
    trusts_system: bool = True,
) -> _Answer:
    """Return the answer of a service, whose redirects are not followed. Raise ToolError if there is none."""
    wanted = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "QwenDesk", **headers}
    try:
        async with (
            asyncio.timeout(_LIMIT_S),
            httpx2.AsyncClient(proxy=proxy or None, trust_env=trusts_system, timeout=_LIMIT_S) as client,
            client.stream("GET", address, params=query, headers=wanted, follow_redirects=False) as answer,
        ):
            content = bytearray()
            async for piece in answer.aiter_raw():
                content += piece
                if len(content) > _MOST_BYTES:
                    raise ToolError(f"{title} gave an answer that is too large.")
            return _Answer(answer.status_code, bytes(content))
    except (TimeoutError, httpx2.TimeoutException):
        raise ToolError(f"{title} did not answer in time. Try again later.") from None
    except (httpx2.TransportError, httpx2.InvalidURL) as error:
        raise ToolError(f"No connection to {title}. It may be down, or this PC has no connection.") from error


def _pages(results: object, snippet: str) -> list[FoundPage]:
    """Return the results of an answer, without those that have not the right form."""
    rows = [row for row in results if isinstance(row, dict)] if isinstance(results, list) else []
    return [
        FoundPage(*(html.unescape(str(row.get(name) or "")) for name in ("title", "url", snippet)))
        for row in rows
    ]  # fmt: skip


def _is_nearby(address: str) -> bool:
    """Return whether an address is one of this PC or its network, to which no proxy leads."""
    host = httpx2.URL(address).host
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return "." not in host or host.endswith((".local", ".lan", ".localhost"))


_LIBRARY_LIMIT_S = 15
# DuckDuckGo's word for results of no particular country.
_EVERYWHERE = "wt-wt"


def _search_by_library(query: str, proxy: str) -> list[dict[str, Any]]:
    """Search, and return the results as the library gives them. Blocks. Raises DDGSException."""
    from ddgs import DDGS  # noqa: PLC0415 - it loads 15 MB, which only a search needs

    # Of the search engines that the library knows, this one alone gets the query.
    return DDGS(proxy=proxy or None, timeout=_LIBRARY_LIMIT_S).text(
        query, region=_EVERYWHERE, safesearch="moderate", max_results=MOST_RESULTS, backend="duckduckgo"
    )


class DuckDuckGo:
    """The service. It limits how often one address may search, and does not say so in a way that could be told."""

    title, host = "DuckDuckGo", "html.duckduckgo.com"

    def __init__(self, proxy: str) -> None:
        self._proxy = proxy

    async def search(self, query: str) -> Sequence[FoundPage]:
        from ddgs.exceptions import DDGSException, RatelimitException, TimeoutException  # noqa: PLC0415

        try:
            found = await asyncio.to_thread(_search_by_library, query, self._proxy)
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
