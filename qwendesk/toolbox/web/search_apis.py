"""Searching by the JSON APIs of Brave Search, with the user's key, and of a SearXNG server that the user names."""

import asyncio
import html
import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any

import httpx2
import msgspec

from qwendesk.core.json_decoding import decode_json
from qwendesk.core.units import MIB
from qwendesk.hub.access_tokens import SEARCH_HOST, load_token
from qwendesk.toolbox.tool import ToolError
from qwendesk.toolbox.web.search_service import MOST_RESULTS, FoundPage

_MOST_BYTES = MIB
"""Of an answer, which is decoded at once; ten results have some kilobytes."""
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
