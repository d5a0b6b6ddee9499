"""HostConnection: the app's side of the process that talks to one MCP server."""

import asyncio
import contextlib
import logging
import os
import subprocess
import sys
from collections.abc import Callable

import msgspec
import psutil

from qwendesk.core.errors import FailureGuard
from qwendesk.core.processes import own_command, with_source_tree
from qwendesk.mcp.host_protocol import (
    LINE_LIMIT_BYTES,
    Answered,
    CancelRequest,
    Ended,
    HostEvent,
    HostRequest,
    Launch,
    Offered,
    ProgressNote,
    Question,
    RequestRefused,
    ServerOffer,
    encode_line,
    event_decoder,
)

_logger = logging.getLogger(__name__)

# How long the process gets to end the server; it waits for the server three times for two seconds.
_END_S = 10.0


class ServerEnded(Exception):
    """There is no connection to the server, or none any more."""

    def __init__(self, ended: Ended) -> None:
        super().__init__(ended.reason)
        self.ended = ended


class McpRefused(Exception):
    """The server did not serve a request. The text is for the model."""


class HostConnection:
    """One process and the server behind it. Methods are called on the event loop's thread."""

    def __init__(
        self, launch: Launch, on_offer: Callable[[ServerOffer], None], on_end: Callable[["HostConnection"], None]
    ) -> None:
        """`on_offer` is called each time that the offer changes, `on_end` when the connection ends unasked."""
        self._launch, self._on_offer, self._on_end = launch, on_offer, on_end
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._answers: dict[int, asyncio.Future[Answered]] = {}
        self._progress: dict[int, Callable[[ProgressNote], None]] = {}
        self._first: asyncio.Future[ServerOffer] = asyncio.get_running_loop().create_future()
        self._servers: list[psutil.Process] = []
        self._next_id = 0
        self._is_stopping = False
        self.ended: Ended | None = None
        """How it ended; None while it runs."""

    async def start(self, limit_s: float) -> ServerOffer:
        """Start the process, connect, and return what the server offers. Raise ServerEnded."""
        if sys.platform == "win32":
            flags = subprocess.CREATE_NO_WINDOW
        else:
            flags = 0
        try:
            self._process = await asyncio.create_subprocess_exec(
                *own_command("--mcp-host"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                limit=LINE_LIMIT_BYTES,
                env=with_source_tree(os.environ),
                creationflags=flags,
                start_new_session=True,
            )
        except OSError as error:
            raise ServerEnded(Ended("not_started", str(error))) from error
        self._reading = asyncio.create_task(self._read())
        self._write(self._launch)
        try:
            async with asyncio.timeout(limit_s):
                offer = await asyncio.shield(self._first)
        except BaseException as error:
            await asyncio.shield(self.stop())
            if isinstance(error, TimeoutError):
                raise ServerEnded(Ended("not_connected", f"no answer within {limit_s:g} s", self._log)) from error
            raise
        self._servers = await asyncio.to_thread(_descendants, self._process.pid)
        return offer

    async def ask(
        self, question: Callable[[int], Question], limit_s: float, on_progress: Callable[[ProgressNote], None]
    ) -> Answered:
        """Send a request and return the answer. `limit_s` begins anew with each progress that the server reports.

        Raise ServerRefused, ServerEnded or TimeoutError. When this is cancelled, the request is cancelled too.
        """
        if self.ended is not None:
            raise ServerEnded(self.ended)
        self._next_id += 1
        request_id = self._next_id
        answer: asyncio.Future[Answered] = asyncio.get_running_loop().create_future()
        self._answers[request_id] = answer
        self._write(question(request_id))
        try:
            async with asyncio.timeout(limit_s) as limit:

                def note(progress: ProgressNote) -> None:
                    if not limit.expired():  # a report may come in the very moment in which the time is over
                        limit.reschedule(asyncio.get_running_loop().time() + limit_s)
                    on_progress(progress)

                self._progress[request_id] = note
                return await answer
        finally:
            if not answer.done() or answer.cancelled():
                self._write(CancelRequest(request_id))
            del self._answers[request_id]
            del self._progress[request_id]

    async def stop(self) -> None:
        """End the server and its process, and return when both are gone."""
        self._is_stopping = True
        process, reading = self._process, self._reading
        if process is None or reading is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        await asyncio.wait({reading}, timeout=_END_S)
        await self._kill()
        await asyncio.wait({reading})

    @property
    def _log(self) -> tuple[str, ...]:
        return () if self.ended is None else self.ended.log

    async def _kill(self) -> None:
        """Kill what is left: the process if it does not end, and the server's if the process could not end them."""
        process = self._process
        assert process is not None
        if process.returncode is None:
            self._servers += await asyncio.to_thread(_descendants, process.pid)
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        for each in self._servers:
            with contextlib.suppress(psutil.Error):
                each.kill()  # psutil checks that it is still the same process

    def _write(self, message: Launch | HostRequest) -> None:
        stdin = self._process.stdin if self._process is not None else None
        if stdin is not None and not stdin.is_closing():
            stdin.write(encode_line(message))

    async def _read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        ended: Ended | None = None
        guard = FailureGuard(_logger, "What an MCP server sent couldn't be used")
        while ended is None:
            try:
                line = await self._process.stdout.readline()
            except ValueError:  # longer than the limit
                ended = Ended("too_large")
                break
            except OSError as error:  # the pipe broke
                ended = Ended("killed", str(error))
                break
            if not line.endswith(b"\n"):
                ended = Ended("killed")
                break
            try:
                event = event_decoder.decode(line)
            except msgspec.DecodeError as error:
                ended = Ended("killed", str(error))
                break
            if isinstance(event, Ended):
                ended = event
            else:
                with guard:
                    self._take(event)
        self._finish(ended)
        await self._wait_for_exit()

    async def _wait_for_exit(self) -> None:
        process = self._process
        assert process is not None
        if process.stdin is not None:
            process.stdin.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_END_S):
                await process.wait()
        await self._kill()
        await process.wait()

    def _take(self, event: HostEvent) -> None:
        match event:
            case Offered(offer=offer):
                if not self._first.done():
                    self._first.set_result(offer)
                self._on_offer(offer)
            case ProgressNote(id=request_id):
                if request_id in self._progress:
                    self._progress[request_id](event)
            case Answered(id=request_id):
                answer = self._answers.get(request_id)
                if answer is not None and not answer.done():
                    answer.set_result(event)
            case RequestRefused(id=request_id, error=error):
                answer = self._answers.get(request_id)
                if answer is not None and not answer.done():
                    answer.set_exception(McpRefused(error))

    def _finish(self, ended: Ended) -> None:
        self.ended = ended
        if not self._first.done():
            self._first.set_exception(ServerEnded(ended))
            self._first.exception()  # it may be that nobody waits for it any more
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(ServerEnded(ended))
        if not self._is_stopping:
            self._on_end(self)


def _descendants(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.Error:
        return []
