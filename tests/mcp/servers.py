"""How to start the servers of these tests, and what waits for what they do."""

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import psutil

from qwendesk.mcp.host_protocol import ProgressNote
from qwendesk.mcp.server_config import NewServer, ServerConfig, new_id
from qwendesk.mcp.server_tools import ServerTool
from qwendesk.mcp.service import McpService

ROOT = Path(__file__).resolve().parents[2]
MODULES = {"PYTHONPATH": str(ROOT)}
"""What a server needs to import the tests' helpers."""


def friendly(name: str = "Friendly", **more: Any) -> NewServer:
    """A server that does what its tools say."""
    config = ServerConfig(
        new_id(),
        name,
        command=sys.executable,
        arguments=("-m", "tests.mcp.friendly_server"),
        environment=("PYTHONPATH",),
        **more,
    )
    return NewServer(config, dict(MODULES))


def hostile(kind: str, *arguments: str, name: str = "Hostile") -> NewServer:
    script = str(ROOT / "tests" / "mcp" / "hostile_server.py")
    return NewServer(ServerConfig(new_id(), name, command=sys.executable, arguments=(script, kind, *arguments)))


def start_app(folder: Path, kind: str) -> tuple[subprocess.Popen[str], int]:
    """Start a process that has called a hostile server's tool; return it and the process ID that the tool said."""
    script = f"""
import asyncio
from pathlib import Path
from qwendesk.core import paths
paths.config_folder = lambda: Path({str(folder)!r})
from qwendesk.mcp.service import McpService
from tests.mcp.servers import added, call, hostile

async def main():
    service = McpService()
    await added(service, hostile({kind!r}))
    print(await call(service, "go"), flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""
    app = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert app.stdout is not None
    return app, int(app.stdout.readline())


def host_of(pid: int) -> psutil.Process:
    """Return the child of this process below which a process of a server runs. Other tests may have left children."""
    return next(each for each in psutil.Process().children() if pid in [x.pid for x in each.children(recursive=True)])


def kill_app(app: subprocess.Popen[str], children: list[psutil.Process]) -> None:
    """Kill it without a chance to tidy up, and wait until its children have ended."""
    app.kill()
    app.wait()
    assert app.stdout is not None
    app.stdout.close()
    _, alive = psutil.wait_procs(children, timeout=60)
    assert alive == []


@contextmanager
def http_server() -> Iterator[str]:
    """Run the friendly server by HTTP, and give its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "tests.mcp.friendly_server", str(port)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}/mcp"
    try:
        while True:
            try:
                httpx2.get(address, timeout=5)
                break
            except httpx2.TransportError:
                assert process.poll() is None, "the server ended"
                time.sleep(0.05)
        yield address
    finally:
        process.kill()
        process.wait()


async def until(service: McpService, is_so: Callable[[], bool]) -> None:
    """Wait until the state of the servers makes it so."""
    changed = asyncio.Event()
    end = service.state.subscribe(lambda _: changed.set())
    try:
        while not is_so():
            changed.clear()
            await changed.wait()
    finally:
        end()


async def added(service: McpService, server: NewServer) -> ServerConfig:
    """Add a server, and wait until it runs or has failed."""
    await service.add([server])
    await until(service, lambda: phase(service, server.config.id) in ("running", "failed"))
    return config(service, server.config.id)


def config(service: McpService, server_id: str) -> ServerConfig:
    return next(each.config for each in service.state.value.servers if each.config.id == server_id)


def phase(service: McpService, server_id: str) -> str:
    return next(each.phase for each in service.state.value.servers if each.config.id == server_id)


def problem(service: McpService) -> str:
    return service.state.value.servers[0].problem


def tool_of(service: McpService, original: str) -> ServerTool:
    found = [tool for tool in service.state.value.tools if tool.original == original]
    assert found, [each.problem for each in service.state.value.servers]
    return found[0]


async def call(service: McpService, original: str, **arguments: Any) -> str:
    """Call a tool and return its text."""
    return (await service.call(tool_of(service, original), arguments, no_progress)).text


def no_progress(_progress: ProgressNote) -> None:
    """Nobody looks."""


async def until_text(path: Path, text: str) -> None:
    """Wait until a server has written this to a file."""

    def is_written() -> bool:
        return path.exists() and path.read_text(encoding="utf-8") == text

    while not is_written():  # noqa: ASYNC110  a file tells nobody
        await asyncio.sleep(0.02)


def wait_until_gone(pid: int) -> None:
    """Wait until a process has ended, which must have been told to."""
    try:
        psutil.Process(pid).wait(60)
    except psutil.NoSuchProcess:
        return
