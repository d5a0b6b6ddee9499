"""HostSession: one connection to a server, from the launch to the end."""

import asyncio
import contextlib
import json
from collections.abc import Callable

import anyio
import httpx2
import mcp_types as types
from anyio.abc import TaskGroup
from mcp.client.client import Client
from mcp.client.session import IncomingMessage
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

import qwendesk
from qwendesk.mcp.host.offers import prompt_answer, read_offer, resource_answer, shortened, tool_answer
from qwendesk.mcp.host.transport import LastResponse, ServerLog, open_transport
from qwendesk.mcp.host_protocol import (
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
)

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
        self._send(Ended(self._end_reason, shortened(detail, _MOST_ERROR), self._log.lines))

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
                answer = RequestRefused(request.id, shortened(self._detail(error), _MOST_ERROR))
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
        """Return what went wrong, of the errors that one led to the others."""
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        if isinstance(error, OSError) and not self._is_connected:
            self._end_reason = "not_started"
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
            self._send(ProgressNote(self._id, fraction, shortened(message, 200)))


async def _accept(name: str, result: types.CallToolResult) -> None:
    """Take a result as it is."""
