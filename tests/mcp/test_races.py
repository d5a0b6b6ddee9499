"""Things that happen in the same moment: a call that is cancelled at once, a server that is closed while it starts."""

import asyncio
import os
import subprocess
import sys
from typing import Any

import anyio
import psutil
import pytest

from qwendesk.mcp.host import main
from qwendesk.mcp.host.session import HostSession, _Ready
from qwendesk.mcp.host_connection import HostConnection, ServerEnded
from qwendesk.mcp.host_protocol import CallTool, CancelRequest, Ended, HostEvent, HostRequest, Launch, ProgressNote
from qwendesk.mcp.server import RunningMcpServer, ServerProblem
from qwendesk.mcp.server_config import ServerConfig
from tests.mcp.servers import hostile, no_progress


async def test_call_that_is_cancelled_before_it_begins_is_not_made() -> None:
    class Client:
        async def call_tool(self, *_arguments: object, **_options: object) -> None:
            await anyio.sleep_forever()

    requests: asyncio.Queue[HostRequest | None] = asyncio.Queue()
    for request in (CallTool(1, "go", {}), CancelRequest(1), None):
        requests.put_nowait(request)
    sent: list[HostEvent] = []
    ready = _Ready()
    ready.set(Client())  # type: ignore[arg-type]
    async with anyio.create_task_group() as tasks:
        await HostSession(hostile("never").config.launch({}), requests, sent.append)._serve(tasks, ready)
    assert not sent


async def test_progress_in_the_moment_in_which_the_time_is_over_ends_nothing_else() -> None:
    connection = HostConnection(hostile("never").config.launch({}), lambda _offer: None, lambda _connection: None)
    asking = asyncio.create_task(connection.ask(lambda number: CallTool(number, "go", {}), 0.0, no_progress))
    for _ in range(2):
        await asyncio.sleep(0)  # the limit was reached, and the call is about to be told
    connection._take(ProgressNote(1, 0.5, ""))
    with pytest.raises(TimeoutError):
        await asking


async def test_call_ends_when_the_pipe_breaks() -> None:
    class Process:
        stdout, stdin, returncode = asyncio.StreamReader(), None, 0

        async def wait(self) -> int:
            return 0

    has_ended: list[HostConnection] = []
    connection = HostConnection(hostile("never").config.launch({}), lambda _offer: None, has_ended.append)
    asking = asyncio.create_task(connection.ask(lambda number: CallTool(number, "go", {}), 600.0, no_progress))
    await asyncio.sleep(0)
    Process.stdout.set_exception(ConnectionResetError("broken"))
    connection._process = Process()  # type: ignore[assignment]
    await connection._read()
    with pytest.raises(ServerEnded):
        await asking
    assert has_ended == [connection]


async def test_server_that_is_closed_while_its_secrets_are_read_is_not_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    is_asked, may_go_on = asyncio.Event(), asyncio.Event()

    async def launch(config: ServerConfig) -> Launch:
        is_asked.set()
        await may_go_on.wait()
        return config.launch({})

    def connect(*_arguments: object) -> Any:
        raise AssertionError("it was started")

    monkeypatch.setattr("qwendesk.mcp.server.HostConnection", connect)
    server = RunningMcpServer(hostile("never").config, launch, lambda _server: None)
    starting = asyncio.create_task(server.start())
    await is_asked.wait()
    closing = asyncio.create_task(server.close())
    await asyncio.sleep(0)
    may_go_on.set()
    with pytest.raises(ServerProblem):
        await starting
    await closing
    assert server.state.phase == "stopped"


def test_too_much_memory_ends_the_process_also_if_a_server_has_just_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    class Exited(Exception):
        pass

    def leave(_status: int) -> None:
        raise Exited

    class Output:
        def __init__(self) -> None:
            self.sent: list[HostEvent] = []

        def send(self, event: HostEvent) -> None:
            self.sent.append(event)

    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        ended = psutil.Process(child.pid)
    monkeypatch.setattr(main, "_MOST_BYTES", 0)
    monkeypatch.setattr(psutil.Process, "children", lambda _process, *, recursive: [ended])
    monkeypatch.setattr(os, "_exit", leave)
    output = Output()
    with pytest.raises(Exited):
        main._watch_memory(output)  # type: ignore[arg-type]
    assert output.sent == [Ended("too_large")]
