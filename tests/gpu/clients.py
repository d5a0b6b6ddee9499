"""Clients of a real worker that sees one device, or the same device twice."""

import contextlib
from collections.abc import AsyncIterator, Mapping

from qwendesk.engine.client import WorkerClient

ONE_DEVICE: Mapping[str, str] = {}
TWO_DEVICES = {"GGML_VK_VISIBLE_DEVICES": "0,0"}
"""The same device as Vulkan0 and as Vulkan1."""


@contextlib.asynccontextmanager
async def client_with(variables: Mapping[str, str]) -> AsyncIterator[WorkerClient]:
    """A client whose worker gets these environment variables. It is closed at the end."""

    async def environment() -> Mapping[str, str]:
        return variables

    client = WorkerClient(environment=environment)
    try:
        yield client
    finally:
        await client.close()
