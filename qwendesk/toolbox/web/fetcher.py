"""Fetches one page of the Internet, with limits on everything that a server can make large or long.

It uses the layer below httpx2, which has none of what must not happen here: no cookies, no proxies, no redirects that
are followed unseen, and nothing is decompressed without a limit.
"""

import asyncio
import ssl
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing

import httpcore2
import httpx2
import msgspec

from qwendesk.core.certificate_errors import certificate_problem
from qwendesk.core.errors import causes
from qwendesk.core.units import MIB
from qwendesk.toolbox.tool import ToolError
from qwendesk.toolbox.web.address import checked_address

# Of a page, decompressed.
MOST_BYTES = 10 * MIB
MOST_REDIRECTS = 5
# For everything until the last byte is here.
LIMIT_S = 30.0
_HEADERS = (
    (b"Accept", b"text/html, application/xhtml+xml, text/plain, application/json, application/pdf, */*;q=0.1"),
    (b"Accept-Encoding", b"gzip"),
    (b"User-Agent", b"Mozilla/5.0 (compatible; QwenDesk)"),
)
_REDIRECTS = (301, 302, 303, 307, 308)


class Fetched(msgspec.Struct, frozen=True):
    address: str
    """After all redirects."""
    content_type: str
    """As the server gave it; "" if it did not."""
    content: bytes


async def fetch(
    address: httpx2.URL,
    connections: httpcore2.AsyncNetworkBackend,
    *,
    ssl_context: ssl.SSLContext | None = None,
    limit_s: float = LIMIT_S,
) -> Fetched:
    """Return what is at an address that `checked_address` has taken. Raise ToolError if it can't be had.

    `connections` judges the IP addresses. Redirects are judged like the address itself, and never leave HTTPS.
    """
    try:
        async with (
            asyncio.timeout(limit_s),
            httpcore2.AsyncConnectionPool(ssl_context, network_backend=connections, keepalive_expiry=0) as pool,
        ):
            for _ in range(MOST_REDIRECTS + 1):
                found = await _fetch_one(address, pool)
                if isinstance(found, Fetched):
                    return found
                address = found
    except TimeoutError:
        raise ToolError(f"{address.host} took longer than {limit_s:g} s.") from None
    except (httpcore2.NetworkError, httpcore2.TimeoutException, httpcore2.ProtocolError) as error:
        raise _connection_error(address, error) from error
    raise ToolError(f"The address redirects more than {MOST_REDIRECTS} times.")


async def _fetch_one(address: httpx2.URL, pool: httpcore2.AsyncConnectionPool) -> Fetched | httpx2.URL:
    """Return what is at an address, or the address that it redirects to."""
    async with pool.stream("GET", str(address), headers=_HEADERS) as answer:
        if answer.status in _REDIRECTS:
            return _target(address, _header(answer, b"location"))
        if answer.status != 200:
            raise _status_error(address, answer.status)
        content = bytearray()
        async with aclosing(_decompressed(answer.aiter_stream(), _header(answer, b"content-encoding"))) as pieces:
            async for piece in pieces:
                content += piece
                if len(content) > MOST_BYTES:
                    raise ToolError(f"The page is larger than {MOST_BYTES // MIB} MB, which is more than is read.")
        return Fetched(str(address), _header(answer, b"content-type"), bytes(content))


async def _decompressed(pieces: AsyncIterator[bytes], encoding: str) -> AsyncGenerator[bytes]:
    """Yield the content in pieces of limited size, however much a compressed one holds."""
    if encoding in ("", "identity"):
        async for piece in pieces:
            yield piece
        return
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise ToolError(f"The page is compressed in a way that is not read ({encoding}).")
    inflate = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)  # either header: of gzip or of zlib
    try:
        async for piece in pieces:
            for part in _inflated(inflate, piece):
                yield part
        yield inflate.flush()  # at most the end of one repetition: what was read is unpacked
    except zlib.error:
        raise ToolError("The page is damaged: it can't be decompressed.") from None


def _inflated(inflate: "zlib._Decompress", piece: bytes) -> Iterator[bytes]:
    while piece and not inflate.eof:
        yield inflate.decompress(piece, MIB)
        piece = inflate.unconsumed_tail


def _target(address: httpx2.URL, location: str) -> httpx2.URL:
    """Return where a redirect leads. Raise ToolError if it is not taken."""
    if not location:
        raise ToolError(f"{address.host} redirects to nowhere.")
    target = checked_address(location, base=address)
    if address.scheme == "https" and target.scheme != "https":
        raise ToolError(f"{address.host} redirects from https:// to http://, which is not followed.")
    return target


def _header(answer: httpcore2.Response, name: bytes) -> str:
    value = next((value for key, value in answer.headers if key.lower() == name), b"")
    return value.decode("latin-1").strip()


def _status_error(address: httpx2.URL, status: int) -> ToolError:
    host = address.host
    match status:
        case 401 | 402 | 403 | 451:
            return ToolError(f"{host} does not show this page to programs, or without signing in ({status}).")
        case 404 | 410:
            return ToolError(f"{host} has no such page ({status}).")
        case 429:
            return ToolError(f"{host} limits how often it can be asked ({status}). Try another page.")
        case _ if status >= 500:
            return ToolError(f"{host} has a problem right now ({status}). Try again later, or another page.")
        case _:
            return ToolError(f"{host} gave no page (status {status}).")


def _connection_error(address: httpx2.URL, error: Exception) -> ToolError:
    if problem := certificate_problem(address.host, error):
        return ToolError(f"{problem} Nothing was read.")
    if any(isinstance(each, ssl.SSLCertVerificationError) for each in causes(error)):
        return ToolError(f"The certificate of {address.host} isn't trusted, so nothing was read.")
    if isinstance(error, httpcore2.ConnectError | httpcore2.ConnectTimeout):
        return ToolError(f"No connection to {address.host}. It may be down, or this PC has no connection.")
    return ToolError(f"{address.host} ended the connection, or does not answer as a web server does.")
