"""HTTP to one server: its key, its certificate, limits on every answer, and errors in words."""

import asyncio
import socket
import ssl
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any, Final
from urllib.request import getproxies

import httpx2
import msgspec

from qwendesk.core.json_decoding import decode_json, json_bytes
from qwendesk.core.translation import tr
from qwendesk.remote.addresses import is_private_address
from qwendesk.remote.errors import ServerError, not_understood, status_error, transport_error
from qwendesk.remote.servers import RemoteServer

# Limit of an answer that isn't streamed. The list of a thousand models is far below 1 MiB.
MOST_ANSWER_BYTES: Final = 8 * 1024**2
# Limit of one event of a stream.
MOST_EVENT_BYTES: Final = 4 * 1024**2
# From this size on JSON is decoded on a thread: a megabyte would stop the window for a moment.
LARGE_BYTES: Final = 128 * 1024
# Silence after which a stream is given up, before its first text and afterwards. A long prompt takes its time; but a
# server that hangs keeps its connections, so that nothing else would end the answer.
FIRST_SILENCE_S, SILENCE_S = 1800.0, 300.0
_MOST_STREAM_BYTES: Final = 256 * 1024**2
_MOST_STREAM_S: Final = 24 * 3600.0
_CONNECT_S, _ASK_S, _WRITE_S = 5.0, 15.0, 60.0
# Limit of a request that isn't streamed, against answers that come byte by byte.
_WHOLE_ASK_S: Final = 60.0
# What is read of the body of an error.
_MOST_REFUSAL_BYTES: Final = 64 * 1024
_UNCOMPRESSED: Final = ("", "identity")


class EndlessAnswer(Exception):
    """A server sends more than any model means."""


class ServerCompressed(httpx2.DecodingError):
    """A server compresses although it was asked not to. A megabyte may unpack to a gigabyte."""


def _keepalive() -> list[tuple[int, int, int]]:
    """Return socket options that find a dead connection in about a minute, long before silence tells of it."""
    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, name):
            options.append((socket.IPPROTO_TCP, getattr(socket, name), value))
    return options


class Connection:
    """Asks one server. Redirects aren't followed, because a request holds the user's chat and the server's key."""

    def __init__(self, server: RemoteServer, key: str = "", *, ask_s: float = _ASK_S) -> None:
        self.server = server
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        headers["Accept-Encoding"] = "identity"
        # A proxy is for the internet: it can't reach the house.
        is_public = not is_private_address(server.address)
        uses_proxy = is_public and any(scheme != "no" for scheme in getproxies())
        transport = None
        if not uses_proxy:
            # Reading the system's authorities takes 50 ms of the window's time.
            verify = server.address.startswith("https:") and _verify(server)
            transport = httpx2.AsyncHTTPTransport(verify=verify, trust_env=is_public, socket_options=_keepalive())
        self._client = httpx2.AsyncClient(
            base_url=f"{server.address}/",
            headers=headers,
            timeout=httpx2.Timeout(ask_s, connect=min(_CONNECT_S, ask_s)),
            trust_env=uses_proxy,
            transport=transport,
            verify=_verify(server),
            event_hooks={"response": [_refuse_compressed]},
        )

    async def close(self) -> None:
        await self._client.aclose()

    async def get(self, path: str) -> Any:
        """Return the JSON at a path below the address. Raises ServerError."""
        return await self._ask("GET", path, None)

    async def post(self, path: str, body: Any) -> Any:
        """Return the JSON that answers `body`. Raises ServerError."""
        return await self._ask("POST", path, body)

    async def find(self, path: str, body: Any = None) -> dict[str, Any] | None:
        """Return the JSON object at a path; None if the server has none there. Raises ServerError if none answers."""
        try:
            found = await self._ask("GET" if body is None else "POST", path, body)
        except ServerRefused:
            return None
        return found if isinstance(found, dict) else None

    @asynccontextmanager
    async def stream(self, path: str, body: Any) -> AsyncIterator[httpx2.Response]:
        """Yield a streamed answer, once its headers are here. Raises httpx2's errors."""
        timeout = httpx2.Timeout(FIRST_SILENCE_S, connect=_CONNECT_S, write=_WRITE_S)
        content = json_bytes(body)
        headers = {"Content-Type": "application/json", "Accept": "text/event-stream"}
        asking = self._client.stream("POST", path.lstrip("/"), content=content, headers=headers, timeout=timeout)
        async with AsyncExitStack() as stack:
            with _read_timeout():
                async with asyncio.timeout(FIRST_SILENCE_S):  # that of httpx2 begins anew with each byte
                    answer = await stack.enter_async_context(asking)
            yield answer

    async def _ask(self, method: str, path: str, body: Any) -> Any:
        content = None if body is None else json_bytes(body)
        headers = {} if body is None else {"Content-Type": "application/json"}
        title = self.server.title
        try:
            with _read_timeout():
                async with (
                    asyncio.timeout(_WHOLE_ASK_S),
                    self._client.stream(method, path.lstrip("/"), content=content, headers=headers) as answer,
                ):
                    data = await read_limited(answer)
        except httpx2.RequestError as error:
            raise transport_error(title, error) from error
        if data is None:
            raise not_understood(title)
        if not answer.is_success:
            refused = status_error(title, answer.status_code, data, retry_after=answer.headers.get("Retry-After", ""))
            raise ServerRefused(refused.title, refused.sentence, answer.status_code)
        try:
            return await asyncio.to_thread(decode_json, data) if len(data) > LARGE_BYTES else decode_json(data)
        except msgspec.DecodeError as error:
            unclear = not_understood(title)
            raise ServerRefused(unclear.title, unclear.sentence, answer.status_code) from error


class ServerRefused(ServerError):
    """A server that answers, but not to this request."""

    def __init__(self, title: str, sentence: str, status: int) -> None:
        super().__init__(title, sentence)
        self.status = status


@contextmanager
def _read_timeout() -> Iterator[None]:
    """Raise httpx2's error for a limit of time that was reached."""
    try:
        yield
    except TimeoutError as error:
        raise httpx2.ReadTimeout("the answer doesn't end") from error


async def read_beginning(answer: httpx2.Response) -> bytes:
    """Return the content of an answer that isn't streamed, the beginning of a refusal. Raises httpx2's errors.

    Of what is too large, return nothing.
    """
    with _read_timeout():
        async with asyncio.timeout(_WHOLE_ASK_S):
            return await read_limited(answer) or b""


async def read_limited(answer: httpx2.Response) -> bytes | None:
    """Return the content of an answer; None if it is too large. Of a refusal, return the beginning."""
    content = bytearray()
    async for piece in answer.aiter_raw():
        content += piece
        if not answer.is_success and len(content) > _MOST_REFUSAL_BYTES:
            return bytes(content[:_MOST_REFUSAL_BYTES])
        if len(content) > MOST_ANSWER_BYTES:
            return None
    return bytes(content)


async def _refuse_compressed(answer: httpx2.Response) -> None:
    if answer.headers.get("Content-Encoding", "").strip().lower() not in _UNCOMPRESSED:
        raise ServerCompressed("the answer is compressed", request=answer.request)


class WatchedStream(httpx2.AsyncByteStream):
    """The bytes of a streamed answer. It ends with ReadTimeout when nothing comes, and with EndlessAnswer.

    Whatever comes counts, also the comments with which servers keep a connection open.
    """

    def __init__(self, inner: httpx2.AsyncByteStream, silence_s: float) -> None:
        self._inner = inner
        self.silence_s = silence_s
        """How long nothing may come."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pieces, n_bytes, end_s = aiter(self._inner), 0, time.monotonic() + _MOST_STREAM_S
        while True:
            try:
                async with asyncio.timeout(self.silence_s):
                    piece = await anext(pieces)
            except StopAsyncIteration:
                return
            except TimeoutError as error:
                raise httpx2.ReadTimeout("nothing comes") from error
            n_bytes += len(piece)
            if n_bytes > _MOST_STREAM_BYTES or time.monotonic() > end_s:
                raise EndlessAnswer
            yield piece

    async def aclose(self) -> None:
        await self._inner.aclose()


def _verify(server: RemoteServer) -> ssl.SSLContext | bool:
    """Return how certificates are checked: by the system's authorities, or by the one certificate that is trusted."""
    if not server.certificate:
        return True
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # The user compared this very certificate, so the name in it doesn't matter. Nothing else is trusted.
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.load_verify_locations(cadata=server.certificate)
    return context


async def fetch_certificate(address: str) -> str:
    """Return the certificate of an https address in PEM, without trusting it. Raises ServerError."""
    url = httpx2.URL(address)
    try:
        async with asyncio.timeout(_ASK_S):
            return await asyncio.to_thread(ssl.get_server_certificate, (url.host, url.port or 443), timeout=_CONNECT_S)
    except (OSError, TimeoutError, ValueError) as error:
        raise ServerError(tr("No certificate"), tr("{0} sent no certificate. Check its address.", address)) from error
