"""A client for each manner of the fake worker."""

import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest_asyncio

from qwendesk.engine.client import WorkerClient, WorkerTimeouts
from tests.fakes import worker as fake_worker

Make = Callable[..., WorkerClient]


@pytest_asyncio.fixture
async def make() -> AsyncIterator[Make]:
    """Makes clients of a fake worker of that manner, and closes them."""
    clients = []

    def make_one(manner: str = "well", **timeouts) -> WorkerClient:
        command = (sys.executable, str(Path(fake_worker.__file__)), *manner.split())
        client = WorkerClient(command, WorkerTimeouts(**timeouts))
        clients.append(client)
        return client

    yield make_one
    for client in clients:
        await client.close()
