"""HostSession: one watched connection to a server, from the launch to the end."""

import asyncio
import collections
import contextlib
import json
import os
import ssl
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from types import TracebackType
from typing import Any, TextIO

import anyio
import httpx2
import mcp_types as types
from anyio.abc import AnyByteReceiveStream, TaskGroup
from anyio.streams.text import TextReceiveStream
from mcp.client import stdio
from mcp.client._transport import ReadStream, TransportStreams
from mcp.client.client import Client
from mcp.client.session import IncomingMessage
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

import qwendesk
from qwendesk.core.errors import causes
from qwendesk.core.json_decoding import with_whole_escapes
from qwendesk.mcp.host.offers import printable, prompt_answer, read_offer, resource_answer, shortened, tool_answer
from qwendesk.mcp.host_protocol import (
    LINE_LIMIT_BYTES,
    MOST_IMAGES_BYTES,
    Answered,
    CallTool,
    CancelRequest,
    Ended,
    EndReason,
    GetPrompt,
    HostEvent,
    HostRequest,
    HttpLaunch,
    Launch,
    Offered,
    ProgressNote,
    Question,
    ReadResource,
    RequestRefused,
    StdioLaunch,
)

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
    """The status of the last HTTP response to a message, which the SDK does not pass on."""

    def __init__(self) -> None:
        self.status = 0

    async def note(self, response: httpx2.Response) -> None:
        if response.request.method == "POST":  # most servers refuse GET, which asks for a stream that they needn't have
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


# How long changes of an offer are collected before it is read again.
_LIST_AGAIN_AFTER_S = 1.0
_PROGRESS_EVERY_S = 0.25
_MOST_ERROR = 2000
_CHANGES = (
    types.ToolListChangedNotification,
    types.ResourceListChangedNotification,
    types.PromptListChangedNotification,
)
# What the SDK says when an HTTP server has forgotten the session, for example after a restart.
_SESSION_GONE = "Session terminated"


class HostSession:
    """Serves the app's requests until there are no more or the server ends."""

    def __init__(
        self, launch: Launch, requests: "asyncio.Queue[HostRequest | None]", send: Callable[[HostEvent], None]
    ) -> None:
        """`requests` ends with None. `send` passes an event to the app."""
        self._launch, self._requests, self._send = launch, requests, send
        self._log, self._last = ServerLog(), LastResponse()
        self._running: dict[int, anyio.CancelScope] = {}
        self._changed = anyio.Event()
        self._end_reason: EndReason = "not_connected"
        self._whole = anyio.CancelScope()
        self._is_connected = False

    async def run(self) -> None:
        """Connect, serve, and send Ended. Closing the connection ends the server's process."""
        detail = ""
        # The SDK needs its own kind of cancellation, or it could leave the server's process behind.
        with self._whole:
            try:
                await self._connect_and_serve()
            except Exception as error:  # noqa: BLE001 - libraries and servers raise anything
                detail = self._detail(error)
        self._send(Ended(self._end_reason, detail, self._log.lines))

    async def _connect_and_serve(self) -> None:
        transport = open_transport(self._launch, self._log, self._last, self._on_end)
        client = Client(
            transport,
            message_handler=self._on_message,
            client_info=types.Implementation(name="QwenDesk", version=qwendesk.__version__),
            cache=None,
        )
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._serve, tasks, ready := _Ready())
            async with client:
                # The app can do without this check, in which a server's schema could keep the process busy for ever;
                # and a result that is not as promised is still a result.
                client.session.validate_tool_result = _accept  # type: ignore[method-assign]
                self._send(Offered(await read_offer(client)))
                self._is_connected, self._end_reason = True, "closed"
                ready.set(client)
                tasks.start_soon(self._follow_changes, client)
                await self._listen(client)
                await anyio.sleep_forever()

    async def _serve(self, tasks: TaskGroup, ready: "_Ready") -> None:
        """Take requests, from the beginning on: the app may go while the server still starts."""
        while (request := await self._requests.get()) is not None:
            if isinstance(request, CancelRequest):
                scope = self._running.get(request.id)
                if scope is not None:
                    scope.cancel()
            else:
                client = await ready.client()
                scope = self._running[request.id] = anyio.CancelScope()  # the next request may cancel this one
                tasks.start_soon(self._answer, client, request, scope)
        self._end_reason = "closed"
        self._whole.cancel()

    async def _answer(self, client: Client, request: Question, scope: anyio.CancelScope) -> None:
        with scope:
            try:
                answer: Answered | RequestRefused = await self._ask(client, request)
            except Exception as error:  # noqa: BLE001 - libraries and servers raise anything
                answer = RequestRefused(request.id, self._detail(error))
            self._send(answer)
            if isinstance(answer, RequestRefused) and answer.error.startswith(_SESSION_GONE):
                self._on_end("closed")
        del self._running[request.id]

    async def _ask(self, client: Client, request: Question) -> Answered:
        match request:
            case CallTool(id=request_id, name=name, arguments=arguments):
                report = _ProgressReport(request_id, self._send)
                result = await client.call_tool(name, arguments, progress_callback=report.note)
                return tool_answer(request_id, result)
            case ReadResource(id=request_id, uri=uri):
                return resource_answer(request_id, await client.read_resource(uri, cache_mode="bypass"))
            case GetPrompt(id=request_id, name=name, arguments=values):
                return prompt_answer(request_id, await client.get_prompt(name, values))

    async def _on_message(self, message: IncomingMessage) -> None:
        if isinstance(message, _CHANGES):
            self._changed.set()

    async def _listen(self, client: Client) -> None:
        """Follow changes in the way of newer versions of the protocol; older ones send them unasked."""
        with contextlib.suppress(ListenNotSupportedError, SubscriptionLost, MCPError, TimeoutError):
            changes = client.listen(tools_list_changed=True, prompts_list_changed=True, resources_list_changed=True)
            async with changes as events:
                async for _event in events:
                    self._changed.set()

    async def _follow_changes(self, client: Client) -> None:
        while True:
            await self._changed.wait()
            await anyio.sleep(_LIST_AGAIN_AFTER_S)
            self._changed = anyio.Event()
            with contextlib.suppress(MCPError, ValidationError):  # what can't be read changes nothing
                self._send(Offered(await read_offer(client)))

    def _on_end(self, reason: EndReason) -> None:
        """The server has ended, or is cut off. Whoever waits for an answer is told by the last event."""
        if reason != "closed" or self._is_connected:
            self._end_reason = reason
            self._whole.cancel()

    def _detail(self, error: BaseException) -> str:
        """Return what went wrong, without control characters: most of it is text of others, for a window."""
        return shortened(printable(self._words(error)), _MOST_ERROR)

    def _words(self, error: BaseException) -> str:
        """Return what went wrong, of the errors that one led to the others."""
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, OSError) and not self._is_connected:
            self._end_reason = "not_started"
        wrong = next((each for each in causes(error) if isinstance(each, ssl.SSLCertVerificationError)), None)
        if wrong is not None and not self._is_connected:
            self._end_reason = "not_trusted"
            return wrong.verify_message
        if isinstance(error, MCPError):
            data = f" {json.dumps(error.data, ensure_ascii=False)}" if error.data else ""
            status = f" (HTTP {self._last.status})" if self._last.status >= 400 else ""
            return f"{error.message}{data}{status}"
        if isinstance(error, ValidationError):  # an answer that is not as the protocol says
            first = error.errors(include_url=False)[0]
            return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        if isinstance(error, httpx2.TransportError) and isinstance(self._launch, HttpLaunch):
            return str(error) or type(error).__name__
        return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


class _Ready:
    """The client, once it is connected."""

    def __init__(self) -> None:
        self._event = anyio.Event()
        self._client: Client | None = None

    def set(self, client: Client) -> None:
        self._client = client
        self._event.set()

    async def client(self) -> Client:
        await self._event.wait()
        assert self._client is not None
        return self._client


class _ProgressReport:
    """Passes on how far a call is, a few times a second."""

    def __init__(self, request_id: int, send: Callable[[HostEvent], None]) -> None:
        self._id, self._send = request_id, send
        self._last_s = -_PROGRESS_EVERY_S

    async def note(self, progress: float, total: float | None, message: str | None) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._last_s >= _PROGRESS_EVERY_S:
            self._last_s = now
            fraction = min(1.0, max(0.0, progress / total)) if total else None
            self._send(ProgressNote(self._id, fraction, shortened(printable(message or ""), 200)))


async def _accept(name: str, result: types.CallToolResult) -> None:
    """Take a result as it is."""
