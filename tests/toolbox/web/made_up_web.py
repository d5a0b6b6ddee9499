"""A made-up Internet: names lead to made-up addresses, and all of these to one small server on this PC."""
# ruff: noqa: ASYNC109 - timeouts are arguments in the library's interface

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import Any

import httpcore2

from qwendesk.toolbox.web.address import PublicConnections

PUBLIC = "93.184.215.14"
"""An address on the Internet; nothing connects to it."""
Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]] | bytes
"""What the server writes: bytes, or whatever a function does with the connection."""


class MadeUpWeb(httpcore2.AsyncNetworkBackend):
    """Answers by host and path. Connects every address to the server, whatever it is."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        """By host and path, such as "page.example/boats"."""
        self.names: dict[str, Sequence[str]] = {}
        """Addresses by name, in place of PUBLIC."""
        self.lookups: list[str] = []
        self.connected: list[str] = []
        self.lands_at: dict[str, str] = {}
        """Where a connection to an address really ends."""
        self.dead: set[str] = set()
        """Addresses that do not answer."""
        self.requests: list[tuple[str, dict[str, str]]] = []
        """Host with path and query, and the headers in lower case."""
        self.port = 0
        self.serving: list[asyncio.Future[None]] = []

    @property
    def connections(self) -> PublicConnections:
        return PublicConnections(self.resolve, self, lambda: ())

    async def resolve(self, host: str, _port: int) -> Sequence[str]:
        self.lookups.append(host)
        if host.startswith("nowhere."):
            raise OSError("no such name")
        return self.names.get(host, (host if host[0].isdigit() or ":" in host else PUBLIC,))

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        self.connected.append(host)
        if host in self.dead:
            raise httpcore2.ConnectError("dead")
        stream = await httpcore2.AnyIOBackend().connect_tcp("127.0.0.1", self.port, timeout)
        return _Stream(stream, (self.lands_at.get(host, host), port))

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.serving.append(asyncio.ensure_future(self._serve(reader, writer)))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            first, *lines = head.strip().split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
            asked = headers["host"] + first.split()[1]
            self.requests.append((asked, headers))
            path = asked if asked in self.answers else asked.partition("?")[0]
            answer = self.answers.get(path, plain("gone", status=404))
            if isinstance(answer, bytes):
                writer.write(answer)
            else:
                await answer(reader, writer)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client hung up, which is what some tests are about
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


class _Stream(httpcore2.AsyncNetworkStream):
    """A connection that says it ends at a made-up address."""

    def __init__(self, stream: httpcore2.AsyncNetworkStream, server: tuple[str, int]) -> None:
        self._stream, self._server = stream, server

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return await self._stream.read(max_bytes, timeout)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.AsyncNetworkStream:
        return _Stream(await self._stream.start_tls(ssl_context, server_hostname, timeout), self._server)

    def get_extra_info(self, info: str) -> Any:
        return self._server if info == "server_addr" else self._stream.get_extra_info(info)


# Turns of the event loop from an accepted connection to its task in `serving`, which alone closes it.
_TURNS_TO_SERVE = 5


@contextlib.asynccontextmanager
async def running_web(ssl_context: Any = None) -> AsyncIterator[MadeUpWeb]:
    web = MadeUpWeb()
    server = await asyncio.start_server(web.accept, "127.0.0.1", 0, ssl=ssl_context)
    web.port = server.sockets[0].getsockname()[1]
    try:
        yield web
    finally:
        server.close()
        for _ in range(_TURNS_TO_SERVE):
            await asyncio.sleep(0)
        for task in web.serving:
            task.cancel()
        await asyncio.gather(*web.serving, return_exceptions=True)
        await server.wait_closed()


async def dawdle() -> None:
    """Wait as a slow server does between two bytes."""
    await asyncio.sleep(0.01)


def answer(body: bytes, kind: str = "text/html; charset=utf-8", *, status: int = 200, **headers: str) -> bytes:
    """Return a whole answer. Names of `headers` are written with "_" for "-"."""
    more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    head = f"HTTP/1.1 {status} Made Up\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n{more}\r\n"
    return head.encode() + body


def plain(text: str, *, status: int = 200) -> bytes:
    return answer(text.encode(), "text/plain; charset=utf-8", status=status)


def redirect(target: str, status: int = 302) -> bytes:
    return answer(b"", status=status, Location=target)
