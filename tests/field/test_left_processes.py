"""Processes that belong to a tool, and what a tool's server says of its errors."""

import asyncio
import sys
from pathlib import Path

import psutil
import pytest

from qwendesk.mcp.host_protocol import ProgressNote
from qwendesk.mcp.service import CallFailed, McpService
from tests.field.grid import SERVER, Kind, Way, case
from tests.mcp.conftest import no_keyring, service
from tests.mcp.servers import added, call, host_of, hostile, kill_app, no_progress, problem, start_app, tool_of

__all__ = ["no_keyring", "service"]

LEFT = Kind(
    "A process that an MCP server has started goes on when the server has ended",
    {
        Way.WINDOW: "of its tools only scripts run programs: test_confined_scripts.py",
        Way.CLI: "of its tools only scripts run programs: test_confined_scripts.py",
        **dict.fromkeys(SERVER, "the server's clients run their tools themselves"),
        Way.IMPORT: "an import runs nothing",
    },
)
ERRORS = Kind(
    "The error of a tool's server controls a terminal or turns a line of the window around",
    {
        Way.WINDOW: "the window and the command line show what the way MCP lets through",
        Way.CLI: "the window and the command line show what the way MCP lets through",
        **dict.fromkeys(SERVER, "the server's clients run their tools themselves"),
        Way.IMPORT: "an import asks no server",
    },
)
FOUND = "found by attack"
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells who left a process behind")


@on_linux
@case(LEFT, Way.MCP, report=FOUND, before="failed")
async def test_a_daemon_of_a_server_ends_with_the_server(service: McpService) -> None:
    server = await added(service, hostile("daemon"))
    pids = [int(await call(service, "go")) for _ in range(3)]
    await service.set_on(server.id, on=False)
    assert not any(map(runs, pids))


@on_linux
@case(LEFT, Way.MCP, report=FOUND, before="failed")
async def test_a_daemon_ends_when_its_server_ends_unasked(service: McpService) -> None:
    await added(service, hostile("daemon"))
    pid = int(await call(service, "go"))
    host = host_of(pid)
    [server] = [each for each in host.children() if each.pid != pid]

    server.kill()

    await asyncio.to_thread(host.wait)
    assert not runs(pid)


@on_linux
@case(LEFT, Way.MCP, report=FOUND, before="failed")
def test_a_daemon_ends_when_the_app_is_killed(tmp_path: Path) -> None:
    app, pid = start_app(tmp_path, "daemon")

    kill_app(app, psutil.Process(app.pid).children())

    assert not runs(pid)


@case(ERRORS, Way.MCP, report=FOUND, before="failed")
async def test_the_error_of_a_call_has_no_control_characters(service: McpService) -> None:
    await added(service, hostile("colours"))
    with pytest.raises(CallFailed) as caught:
        await call(service, "go")
    said = str(caught.value)
    assert "no key" in said
    assert "here\nand there" in said
    assert all(each.isprintable() or each == "\n" for each in said), repr(said)


@case(ERRORS, Way.MCP, report=FOUND, before="failed")
async def test_the_error_of_a_start_has_no_control_characters(service: McpService) -> None:
    await added(service, hostile("coloured start"))
    assert "no key" in problem(service)
    assert all(each.isprintable() or each == "\n" for each in problem(service)), repr(problem(service))


@case(ERRORS, Way.MCP, report=FOUND, before="failed")
async def test_a_result_that_is_an_error_has_no_control_characters(service: McpService) -> None:
    await added(service, hostile("coloured result"))
    answer = await service.call(tool_of(service, "go"), {}, no_progress)
    assert answer.is_error
    assert is_printable(answer.text), repr(answer.text)


@case(ERRORS, Way.MCP, report=FOUND, before="failed")
async def test_the_progress_of_a_call_has_no_control_characters(service: McpService) -> None:
    await added(service, hostile("coloured progress"))
    notes: list[ProgressNote] = []
    await service.call(tool_of(service, "go"), {}, notes.append)
    (note,) = notes
    assert "no key" in note.message
    assert is_printable(note.message), repr(note.message)


@case(ERRORS, Way.MCP, report=FOUND, before="held")
async def test_the_log_of_a_failed_start_has_no_control_characters(service: McpService) -> None:
    await added(service, hostile("coloured log"))
    (line,) = service.state.value.servers[0].log
    assert "no key" in line
    assert line.isprintable(), repr(line)


@on_linux
@case(LEFT, Way.MCP, report=FOUND, before="failed")
async def test_a_daemon_ends_when_its_server_is_removed(service: McpService) -> None:
    server = await added(service, hostile("daemon"))
    pid = int(await call(service, "go"))
    await service.remove(server.id)
    assert not runs(pid)


@on_linux
@case(LEFT, Way.MCP, report="LifeOS#1520: a group of its own, and nobody left to end it", before="failed")
async def test_a_daemon_of_a_server_that_never_started_ends(service: McpService, tmp_path: Path) -> None:
    await added(service, hostile("daemon and no start", str(tmp_path / "pid")))
    assert problem(service)
    assert not runs(int((tmp_path / "pid").read_text()))


@on_linux
@case(LEFT, Way.MCP, report="codex#4337: it keeps the pipe open, and the end is awaited for ever", before="failed")
async def test_a_daemon_that_holds_the_output_ends_with_its_server(service: McpService) -> None:
    server = await added(service, hostile("daemon with output"))
    pid = int(await call(service, "go"))
    await service.set_on(server.id, on=False)
    assert not runs(pid)


@on_linux
@case(LEFT, Way.MCP, report="brepjs#1380: processes of 13 hours that a host had left", before="failed")
async def test_a_daemon_ends_when_the_app_ends(service: McpService) -> None:
    await added(service, hostile("daemon"))
    pid = int(await call(service, "go"))
    await service.close()
    assert not runs(pid)


def is_printable(text: str) -> bool:
    return all(each.isprintable() or each == "\n" for each in text)


def runs(pid: int) -> bool:
    """Return whether a process does anything any more."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
