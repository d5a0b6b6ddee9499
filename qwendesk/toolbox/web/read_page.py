"""The tool that reads one page of the Internet."""

import asyncio
import ssl
import threading
from collections.abc import Callable, Mapping
from urllib.request import getproxies

import httpcore2
import httpx2
import msgspec

from qwendesk.core.app_options import AppOptions
from qwendesk.core.tool_context import CallContext
from qwendesk.core.translation import tr
from qwendesk.toolbox.tool import Arguments, ToolError
from qwendesk.toolbox.web.address import PublicConnections, checked_address, shown_host
from qwendesk.toolbox.web.fetcher import Fetched, fetch
from qwendesk.toolbox.web.page_text import PageContent, read_content

# For the text of a page that is here. Pages made to be slow would take minutes; a PDF of 2,000 pages takes about 20 s.
READING_S = 20.0
# Characters that are kept free for the note on which part this is.
_ROOM_FOR_NOTE = 120
_LEAST_TEXT = 500
# Characters of the final address in the result.
_MOST_ADDRESS = 300


class Internet(msgspec.Struct, frozen=True):
    """How pages are reached."""

    connections: httpcore2.AsyncNetworkBackend
    """Judges IP addresses and connects to them."""
    ssl_context: ssl.SSLContext | None = None
    """Trusted certificates; None for those that the system trusts."""
    proxies: Callable[[], Mapping[str, str]] = getproxies
    """Returns the system's proxies, by scheme."""


def internet() -> Internet:
    return Internet(PublicConnections())


def preview(arguments: Arguments, options: AppOptions, internet: Internet) -> str:
    """Return what the user sees before consent. Looks nothing up. Raise ToolError for what is never read."""
    address = _address(arguments, options, internet)
    return "\n".join((tr("Reads a page of {0}.", shown_host(address)), tr("Address: {0}", str(address))))


async def run(arguments: Arguments, context: CallContext, options: AppOptions, internet: Internet) -> str:
    """Return title, address and text of a page, or the part of a long one that begins at the argument `offset`."""
    address = _address(arguments, options, internet)
    page = await fetch(address, internet.connections, ssl_context=internet.ssl_context)
    content = await _read(page)
    return _part(content, page.address, int(arguments.get("offset", 0)), context.most_characters)


async def _read(page: Fetched) -> PageContent:
    """Return what a page says. When it takes too long or the call is stopped, nothing goes on in the background."""
    is_over = threading.Event()
    try:
        async with asyncio.timeout(READING_S):
            return await asyncio.to_thread(read_content, page, is_over.is_set)
    except TimeoutError:
        raise ToolError("The text of this page can't be found in time. Try another page.") from None
    finally:
        is_over.set()


def _address(arguments: Arguments, options: AppOptions, internet: Internet) -> httpx2.URL:
    if options.offline:
        raise ToolError("QwenDesk is set to offline, so no page can be read. The user can change that in Settings.")
    if options.proxy or _has_proxy(internet.proxies()):
        raise ToolError(
            "Pages can't be read through a proxy, because only the proxy would know which computer it connects to. "
            "One is set in QwenDesk's settings or in the system."
        )
    return checked_address(str(arguments["url"]))


def _has_proxy(proxies: Mapping[str, str]) -> bool:
    is_off = proxies.get("no", "").strip() == "*"
    return not is_off and any(proxies.get(scheme) for scheme in ("http", "https", "all", "socks"))


def _part(content: PageContent, address: str, offset: int, most: int) -> str:
    """Return title, address, and the text from `offset` on, as much as fits into `most` characters."""
    shown = address if len(address) <= _MOST_ADDRESS else f"{address[:_MOST_ADDRESS]}…"
    head = "\n".join(filter(None, (content.title, shown, "\n")))
    n_all = len(content.text)
    if offset and offset >= n_all:
        raise ToolError(f"The page has {n_all:,} characters.")
    end = min(n_all, offset + max(_LEAST_TEXT, most - len(head) - _ROOM_FOR_NOTE))
    text = content.text[offset:end]
    if not offset and end == n_all:
        return f"{head}{text}"
    more = f"; read on with offset {end}" if end < n_all else ""
    return f"{head}{text}\n(characters {offset} to {end} of {n_all}{more})"
