"""An engine process that is stopped (SIGSTOP) or hangs in a driver: it says nothing, and nothing ends."""

import asyncio
import sys
from pathlib import Path

import psutil
import pytest

from qwendesk.core import paths
from qwendesk.engine.client import WorkerClient, WorkerTimeouts
from qwendesk.engine.state import WorkerSilent
from qwendesk.engine.watchdog import SilenceLimits
from tests.fakes import worker as fake_worker
from tests.field.grid import SERVER, Kind, Way, case
from tests.field.serving import served
from tests.server.http_desk import ASKED, http_desk
from tests.window_desk import Desk

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows can't stop a process by a signal")
FROZEN = Kind(
    "A frozen engine isn't noticed",
    {
        Way.MCP: "an MCP server has a process of its own, and limits of its own",
        Way.IMPORT: "an import uses no engine",
    },
)
PATHS = ("/v1/chat/completions", "/v1/responses", "/v1/messages")


def worker_client(limits: SilenceLimits) -> WorkerClient:
    return WorkerClient((sys.executable, str(Path(fake_worker.__file__)), "well"), WorkerTimeouts(silence=limits))


@case(FROZEN, *SERVER, report="issue 29, item 26", before="failed")
async def test_health_says_so_and_a_request_is_answered_by_the_next_engine(tmp_path: Path) -> None:
    client = worker_client(SilenceLimits(look_s=0.1, silent=10, frozen=15))
    async with http_desk(tmp_path, client=client) as desk:
        for path in PATHS:
            body = ASKED | {"input": "Hello", "max_tokens": 99}
            assert await desk.status("POST", path, body) == 200
            assert client.worker_pid is not None
            silent = asyncio.Event()
            unsubscribe = client.subscribe(
                lambda event, silent=silent: silent.set() if isinstance(event, WorkerSilent) else None
            )
            psutil.Process(client.worker_pid).suspend()
            request = asyncio.create_task(desk.status("POST", path, body))
            await silent.wait()
            assert await desk.status("GET", "/health") == 503
            assert await request == 200
            assert await desk.status("GET", "/health") == 200
            unsubscribe()


@case(FROZEN, Way.CLI, report="issue 29, item 26", before="failed")
async def test_qwendesk_serve_says_that_its_engine_is_frozen_and_that_it_is_not_any_more() -> None:
    client = worker_client(SilenceLimits(look_s=0.1, silent=10, frozen=10_000))
    async with served(client, "--model", str(paths.demo_model())) as server:
        assert (await server.ask())[0] == 200
        process = psutil.Process(client.worker_pid)
        process.suspend()
        await server.until_health(503)
        process.resume()
        await server.until_health(200)
        assert (await server.ask())[0] == 200


@case(FROZEN, Way.WINDOW, report="issue 29, item 26", before="failed")
async def test_window_says_that_the_engine_is_not_responding(desk: Desk) -> None:
    desk.client.publish(WorkerSilent(silent=True))
    await desk.until(lambda: desk.text_of("meter.state") == "Not responding")
    desk.client.publish(WorkerSilent(silent=False))
    await desk.until(lambda: desk.text_of("meter.state") != "Not responding")
