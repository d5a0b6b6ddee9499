"""The connection to a server, watched: whether it ends, what it logs, and whether it sends without end."""

import collections
import os
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from types import TracebackType
from typing import Any, TextIO

import anyio
import httpx2
from anyio.abc import AnyByteReceiveStream
from anyio.streams.text import TextReceiveStream
from mcp.client import stdio
from mcp.client._transport import ReadStream, TransportStreams
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage

from qwendesk.core.json_decoding import with_whole_escapes
from qwendesk.mcp.host_protocol import LINE_LIMIT_BYTES, MOST_IMAGES_BYTES, EndReason, HttpLaunch, Launch, StdioLaunch

_MOST_LINES, _LONGEST_LINE = 20, 500
# After each 64 KiB, so that a server that writes without end waits instead of taking a processor.
_PAUSE_S = 0.05


class ServerLog:
    """Reads what is written to `file` on a thread."""

    def __init__(self) -> None:
        self._reading, writing = os.pipe()
        self.file: TextIO = os.fdopen(writing, "w", encoding="utf-8")
        """The server's standard error."""
        self._lines: collections.deque[str] = collections.deque(maxlen=_MOST_LINES)
        threading.Thread(target=self._read, name="server log", daemon=True).start()

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(self._lines)

    def _read(self) -> None:
        rest = b""
        while chunk := os.read(self._reading, 64 * 1024):
            *lines, rest = (rest + chunk).split(b"\n")
            self._lines.extend(line for line in map(_shown, lines[-_MOST_LINES:]) if line)
            rest = rest[:_LONGEST_LINE]
            if len(chunk) == 64 * 1024:
                time.sleep(_PAUSE_S)


def _shown(line: bytes) -> str:
    """Return a line without control characters."""
    text = line[:_LONGEST_LINE].decode("utf-8", "replace").rstrip()
    return "".join(character for character in text if character.isprintable())


# More messages than this, in this time, are a flood.
_MOST_MESSAGES, _WITHIN_S = 2000, 10.0
# The app has time limits of its own for every request; these end what nobody waits for.
_CONNECT_S, _READ_S = 20.0, 600.0


class LastResponse:
    """The status of the last HTTP response, which the SDK does not pass on."""

    def __init__(self) -> None:
        self.status = 0

    async def note(self, response: httpx2.Response) -> None:
        self.status = response.status_code
        if response.headers.get("Content-Encoding", "identity").strip().lower() not in ("", "identity"):
            # Pieces are unpacked as a whole: a megabyte may be a gigabyte.
            raise httpx2.DecodingError("the server compresses its answers unasked", request=response.request)


@asynccontextmanager
async def open_transport(
    launch: Launch, log: ServerLog, last: LastResponse, on_end: Callable[[EndReason], None]
) -> AsyncIterator[TransportStreams]:
    """Connect. `on_end` is called with "closed", "flood" or "too_large" when nothing more is read from the server."""
    # The SDK keeps a line of any length, and copies it with each piece that arrives: a long one takes minutes.
    stdio.TextReceiveStream = partial(_LimitedText, on_end)  # type: ignore[attr-defined, assignment]
    async with _transport(launch, log, last) as (read, write):
        yield _WatchedStream(read, on_end), write


@asynccontextmanager
async def _transport(launch: Launch, log: ServerLog, last: LastResponse) -> AsyncIterator[TransportStreams]:
    if not isinstance(launch, HttpLaunch):
        async with _stdio(launch, log) as streams:
            yield streams
        return
    client = httpx2.AsyncClient(
        headers={**launch.headers, "Accept-Encoding": "identity"},
        proxy=launch.proxy or None,
        trust_env=not launch.is_local,
        timeout=httpx2.Timeout(_READ_S, connect=_CONNECT_S),
        event_hooks={"response": [last.note]},
    )
    async with (
        client,
        streamable_http_client(launch.address, http_client=client, max_sse_event_size=2 * MOST_IMAGES_BYTES) as streams,
    ):
        yield streams


def _stdio(launch: StdioLaunch, log: ServerLog) -> AbstractAsyncContextManager[TransportStreams]:
    parameters = stdio.StdioServerParameters(
        command=launch.command,
        args=list(launch.arguments),
        env=launch.environment,
        cwd=launch.folder or None,
        # A server may print what is not UTF-8; that must not end the connection.
        encoding_error_handler="replace",
    )
    return stdio.stdio_client(parameters, errlog=log.file)


class _LimitedText(TextReceiveStream):
    """The output of a program, in whole lines without half characters. It ends when a line gets too long."""

    def __init__(self, on_end: Callable[[EndReason], None], stream: AnyByteReceiveStream, **options: Any) -> None:
        super().__init__(stream, **options)
        self._end_line, self._begun = on_end, [""]

    async def receive(self) -> str:
        n_characters = len(self._begun[0])
        while n_characters <= LINE_LIMIT_BYTES:
            text = await super().receive()
            lines, end, rest = text.rpartition("\n")
            if end:
                whole = "".join([*self._begun, lines, end])
                self._begun = [rest]
                return with_whole_escapes(whole.encode("utf-8", "replace")).decode()
            self._begun.append(text)
            n_characters += len(text)
        self._end_line("too_large")
        raise anyio.EndOfStream


class _WatchedStream:
    """Passes messages on and counts them."""

    def __init__(self, inner: ReadStream[SessionMessage | Exception], on_end: Callable[[EndReason], None]) -> None:
        self._inner, self._on_end = inner, on_end
        self._n, self._since_s = 0, time.monotonic()

    @property
    def last_context(self) -> Any:
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        try:
            message = await self._inner.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._on_end("closed")
            raise
        self._count()
        return message

    async def aclose(self) -> None:
        await self._inner.aclose()

    def __aiter__(self) -> "_WatchedStream":
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> "_WatchedStream":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def _count(self) -> None:
        now = time.monotonic()
        if now - self._since_s > _WITHIN_S:
            self._n, self._since_s = 0, now
        self._n += 1
        if self._n > _MOST_MESSAGES:
            self._on_end("flood")
            raise anyio.EndOfStream
