"""Server: one MCP server that is started when it is needed, watched, and stopped when it is idle."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Literal

import msgspec

from qwendesk.core.translation import tr
from qwendesk.mcp.host_connection import HostConnection, ServerEnded
from qwendesk.mcp.host_protocol import Answered, Ended, Launch, ProgressNote, Question, ServerOffer
from qwendesk.mcp.server_config import ServerConfig

# How long a start may take: npx and uvx download a server the first time.
START_S = 120.0
# How long a server may be silent during a call; its reports of progress count.
CALL_S = 60.0
# A server that is not used this long is stopped, because each takes memory.
_IDLE_S = 15 * 60.0
# How long to wait after a failure, after two in a row, and so on, before the server is started again.
_PAUSES_S = (0.0, 2.0, 10.0, 30.0, 120.0)

Phase = Literal["stopped", "starting", "running", "failed"]


class ServerProblem(Exception):
    """The server can't be used now. The text says why, in the user's language."""


class McpServerState(msgspec.Struct, frozen=True):
    """The state of a server, as the user sees it."""

    config: ServerConfig
    phase: Phase = "stopped"
    problem: str = ""
    """Reason why it doesn't run, and what to do; "" if nothing is wrong."""
    log: tuple[str, ...] = ()
    """The last lines that it wrote before it failed."""


class RunningMcpServer:
    """Methods are called on the event loop's thread."""

    def __init__(
        self,
        config: ServerConfig,
        launch: Callable[[ServerConfig], Awaitable[Launch]],
        changed: Callable[["RunningMcpServer"], None],
        *,
        clock: Callable[[], float] = time.monotonic,
        start_s: float = START_S,
        call_s: float = CALL_S,
    ) -> None:
        """`launch` returns how to start it, with its secrets. `changed` is called when `state` or the offer changed."""
        self.state = McpServerState(config)
        self._launch, self._changed, self._clock = launch, changed, clock
        self._start_s, self._call_s = start_s, call_s
        self._connection: HostConnection | None = None
        self._opening: HostConnection | None = None
        """One that is being started."""
        self._ending: asyncio.Task[None] | None = None
        """Waits until the process of a connection that ended is gone."""
        self._starting = asyncio.Lock()
        self._n_failures, self._failed_s = 0, 0.0
        self._n_running = 0
        self._is_closed = False
        self._idle: asyncio.TimerHandle | None = None

    async def start(self, *, by_user: bool = False) -> ServerOffer:
        """Start it unless it runs, and return what it offers. Raise ServerProblem.

        After failures in a row, it is left alone for a while, unless the user asks.
        """
        async with self._starting:
            if self._is_closed:
                raise ServerProblem(self._name_sentence)
            if self._connection is not None:
                return self.state.config.offer
            wait_s = self._wait_s
            if wait_s > 0 and not by_user:
                raise ServerProblem(
                    tr("{0} Next try in {1} s.", self.state.problem or self._name_sentence, f"{wait_s:.0f}")
                )
            self._show(phase="starting", problem="", log=())
            try:
                await self._wait_for_ending()
                launch = await self._launch(self.state.config)
                if self._is_closed:
                    raise ServerProblem(self._name_sentence)
                connection = self._opening = HostConnection(launch, self._on_offer, self._on_end)
                await connection.start(self._start_s)
            except ServerEnded as error:
                raise ServerProblem(self._fail(error.ended)) from error
            except ServerProblem as error:
                self._show(phase="failed", problem=str(error))
                raise
            except BaseException:
                self._show(phase="stopped")
                raise
            finally:
                self._opening = None
            if connection.ended is not None:  # it has ended since it answered
                await connection.stop()
                raise ServerProblem(self._fail(connection.ended))
            self._connection = connection
            self._n_failures = 0
            self._show(phase="running")
            self._stop_when_idle()
            return self.state.config.offer

    async def ask(self, question: Callable[[int], Question], on_progress: Callable[[ProgressNote], None]) -> Answered:
        """Ask the server, which is started if it doesn't run. Raise ServerProblem, ServerRefused or TimeoutError.

        A question that a server did not survive is not asked again: it may have had its effect.
        """
        await self.start()
        connection = self._connection
        if connection is None:
            raise ServerProblem(self.state.problem or self._name_sentence)
        self._n_running += 1
        try:
            return await connection.ask(question, self._call_s, on_progress)
        except ServerEnded as error:
            raise ServerProblem(end_sentence(self.state.config, error.ended)) from error
        finally:
            self._n_running -= 1
            self._stop_when_idle()

    async def stop(self) -> None:
        """Stop it, and return when its process is gone."""
        if self._idle is not None:
            self._idle.cancel()
        if self._opening is not None:
            await self._opening.stop()
        async with self._starting:
            connection, self._connection = self._connection, None
            if connection is not None:
                await connection.stop()
            await self._wait_for_ending()
            self._show(phase="stopped", problem="", log=())

    async def close(self) -> None:
        """Stop it for good: it was removed or replaced, or the app ends."""
        self._is_closed = True
        await self.stop()

    def set_config(self, config: ServerConfig) -> None:
        """Take changed settings. They count when it is started next."""
        self.state = msgspec.structs.replace(self.state, config=config)

    @property
    def _name_sentence(self) -> str:
        return tr("{0} isn't running.", self.state.config.name)

    @property
    def _wait_s(self) -> float:
        pause_s = _PAUSES_S[min(self._n_failures, len(_PAUSES_S)) - 1] if self._n_failures else 0.0
        return self._failed_s + pause_s - self._clock()

    def _fail(self, ended: Ended) -> str:
        self._n_failures += 1
        self._failed_s = self._clock()
        sentence = end_sentence(self.state.config, ended)
        self._show(phase="failed", problem=sentence, log=ended.log)
        return sentence

    def _on_offer(self, offer: ServerOffer) -> None:
        if offer != self.state.config.offer:
            self.set_config(msgspec.structs.replace(self.state.config, offer=offer))
            self._changed(self)

    def _on_end(self, connection: HostConnection) -> None:
        if connection is self._connection and connection.ended is not None:
            self._end_soon(connection)
            self._fail(connection.ended)

    def _stop_when_idle(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        if self._connection is not None:
            self._idle = asyncio.get_running_loop().call_later(_IDLE_S, self._on_idle)

    def _on_idle(self) -> None:
        if self._n_running == 0 and self._connection is not None:
            self._end_soon(self._connection)
            self._show(phase="stopped")

    def _end_soon(self, connection: HostConnection) -> None:
        self._connection = None
        self._ending = asyncio.create_task(connection.stop())

    async def _wait_for_ending(self) -> None:
        if self._ending is not None:
            await asyncio.wait({self._ending})  # unlike a plain await, it never cancels the task

    def _show(self, **changes: object) -> None:
        state = msgspec.structs.replace(self.state, **changes)
        if state != self.state:
            self.state = state
            self._changed(self)


_NO_PROGRAM = ("FileNotFoundError", "NotADirectoryError")
_REFUSING = ("HTTP 401", "HTTP 403")


def end_sentence(server: ServerConfig, ended: Ended) -> str:
    """Return what happened to a server and what to do."""
    match ended.reason:
        case "not_started":
            return _not_started(server, ended.detail)
        case "not_trusted":
            wrong = ended.detail.rstrip(".")
            return tr("The certificate of {0} isn't accepted: {1}. Nothing was sent there.", server.address, wrong)
        case "not_connected" if server.address:
            return _not_reached(server, ended.detail)
        case "not_connected" if not ended.detail:
            return tr(
                "{0} was started, but ended without answering as an MCP server. Check its arguments and variables.",
                server.command,
            )
        case "not_connected":
            return tr(
                "{0} was started, but didn't answer as an MCP server ({1}). Check its arguments and variables.",
                server.command,
                ended.detail,
            )
        case "flood":
            return tr("{0} sent messages without end, so QwenDesk stopped it.", server.name)
        case "too_large":
            return tr("{0} sent more than QwenDesk accepts, so it was stopped.", server.name)
        case "killed":
            return tr("The connection to {0} was stopped from outside.", server.name)
        case "closed":
            return tr("{0} ended unexpectedly.", server.name)


def _not_started(server: ServerConfig, detail: str) -> str:
    if server.address:
        return tr("{0} isn't an address that QwenDesk can connect to ({1}).", server.address, detail)
    if detail.startswith(_NO_PROGRAM):
        # Windows doesn't say in its error which of the two is missing.
        if server.folder and not Path(server.folder).is_dir():
            return tr("The folder {0} doesn't exist. Choose another.", server.folder)
        return tr(
            "The program {0} was not found. Install it (npx comes with Node.js, uvx with uv), or enter its whole path.",
            server.command,
        )
    return tr("{0} couldn't be started: {1}.", server.command, detail)


def _not_reached(server: ServerConfig, detail: str) -> str:
    if any(status in detail for status in _REFUSING):
        return tr(
            "{0} refuses access ({1}). Enter the header that it asks for, usually Authorization.",
            server.address,
            next(status for status in _REFUSING if status in detail),
        )
    if not detail:
        return tr(
            "{0} closed the connection without answering as an MCP server. Check the address; it often ends with /mcp.",
            server.address,
        )
    return tr(
        "{0} didn't answer as an MCP server ({1}). Check the address; it often ends with /mcp.", server.address, detail
    )
