"""`qwendesk serve` on the scripted engine."""

import asyncio
import contextlib
import io
import json
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest

from qwendesk.cli import serve as command
from qwendesk.cli.main import make_parser
from qwendesk.cli.terminal import Interrupts, Terminal
from qwendesk.engine.contract import EngineClient
from qwendesk.services import App
from tests.fakes.engine import decide_by_default


class Served:
    """A running `qwendesk serve`, as a client reaches it."""

    def __init__(self, services: App, session: aiohttp.ClientSession, url: str) -> None:
        self.services, self._session, self._url = services, session, url

    async def get(self, path: str) -> tuple[int, Any]:
        async with self._session.get(self._url + path) as response:
            return response.status, await response.json()

    async def until_health(self, status: int) -> None:
        while (await self.get("/health"))[0] != status:  # noqa: ASYNC110 - clients can only ask again, too
            await asyncio.sleep(0.001)

    async def ask(self, path: str = "/v1/chat/completions", **changes: Any) -> tuple[int, Any]:
        """Return the status and the body; of a stream, its text."""
        message = {"role": "user", "content": "Hello"}
        body = {"messages": [message], "input": "Hello", "max_tokens": 99} | changes
        async with self._session.post(self._url + path, json=body) as response:
            return response.status, (await response.text() if body.get("stream") else await response.json())


@contextlib.asynccontextmanager
async def served(client: EngineClient, *arguments: str) -> AsyncIterator[Served]:
    """Run `qwendesk serve` with these arguments. What it refuses is raised as QwenDeskError."""
    made: list[App] = []

    async def engines() -> Any:
        return SimpleNamespace(client=lambda: client)

    def build(client: EngineClient, **_: Any) -> App:
        made.append(App(client, decide=decide_by_default))
        return made[-1]

    out, interrupts = io.StringIO(), Interrupts()
    options = make_parser().parse_args(["serve", "--json", "--port", "0", *arguments])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "preferred_engine", engines)
        patch.setattr(command, "App", build)
        serving = asyncio.ensure_future(command.serve(options, Terminal(out, out), interrupts))
        while not out.getvalue() and not serving.done():  # noqa: ASYNC110 - the line is its only sign
            await asyncio.sleep(0.001)
        if serving.done():
            serving.result()
        line = json.loads(out.getvalue())
        try:
            headers = {"Authorization": f"Bearer {line['key']}"}
            async with aiohttp.ClientSession(headers=headers) as session:
                yield Served(made[0], session, line["url"])
        finally:
            assert interrupts._stop is not None, "it says how it is stopped"
            interrupts._stop()
            await serving
