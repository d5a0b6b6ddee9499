"""A running server on the scripted engine, and a client of it."""

import asyncio
import contextlib
import io
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.options import LoadOptions
from qwendesk.engines.engine_service import EngineService
from qwendesk.server.refusals import Limits
from qwendesk.server.served_models import ServedModels
from qwendesk.server.service import ServerOptions, ServerService
from tests.fakes.answer_stream import ScriptedAnswer
from tests.fakes.engine import DEMO_REPORT, FakeEngineClient, decide_by_default

KEY, OTHER_KEY = "test-key-0123456789", "other-key-0123456789"
ASKED = {"messages": [{"role": "user", "content": "Hello"}]}
TOOL_REPORT = msgspec.structs.replace(
    DEMO_REPORT, template=msgspec.structs.replace(DEMO_REPORT.template, tools=True, call_dialect="xml")
)
_LARGE_BYTES = 2**20


class HttpDesk:
    def __init__(
        self,
        client: FakeEngineClient,
        engine: EngineService,
        server: ServerService,
        session: aiohttp.ClientSession,
    ) -> None:
        self.client, self.engine, self.server, self.session = client, engine, server, session

    @property
    def port(self) -> int:
        return int(self.server.state.address.rpartition(":")[2])

    @property
    def n_running(self) -> int:
        """How many requests wait or are answered."""
        return sum(each.is_running for each in self.server.requests.observed.value)

    @contextlib.asynccontextmanager
    async def request(
        self, method: str, path: str, body: Any = None, key: str = KEY, **headers: str
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request; `body` is JSON unless it is bytes. Underscores in names of headers stand for hyphens."""
        sent = {"Authorization": f"Bearer {key}"} if key else {}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        url = self.server.state.address + path
        is_large = content is not None and len(content) > _LARGE_BYTES
        data = io.BytesIO(content) if is_large else content  # aiohttp warns of large ones
        async with self.session.request(method, url, data=data, headers=sent) as response:
            yield response

    async def status(self, method: str, path: str, body: Any = None, key: str = KEY, **headers: str) -> int:
        async with self.request(method, path, body, key, **headers) as response:
            return response.status

    async def json(self, method: str, path: str, body: Any = None, key: str = KEY, **headers: str) -> Any:
        async with self.request(method, path, body, key, **headers) as response:
            return await response.json()

    async def raw(self, content: bytes) -> bytes:
        """Send bytes on a connection of their own, and return what comes until the server closes it."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(content)
            await writer.drain()
            return await reader.read()
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def until(self, condition: Any) -> None:
        """Let the loop run until `condition()` holds."""
        while not condition():  # noqa: ASYNC110 - what it looks at has no event
            await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def http_desk(
    folder: Path,
    answers: Sequence[ScriptedAnswer] = (),
    limits: Limits | None = None,
    client: Any = None,
    model: Path = Path("/models/qwendesk-demo-Q8_0.gguf"),
    **options: Any,
) -> AsyncIterator[HttpDesk]:
    """A server with two keys, on the scripted engine or on that of `client`. `options` are those of ServerOptions."""
    key_file = folder / "keys"
    key_file.write_text(f"{KEY}\n{OTHER_KEY} other\n", encoding="utf-8")
    client = client or FakeEngineClient(TOOL_REPORT, answers)
    engine = EngineService(client, decide=decide_by_default)

    async def default() -> LoadOptions:
        return LoadOptions(model=str(model), n_ctx=4096)

    server = ServerService(
        client,
        ServedModels(engine, default),
        lambda question, _: GenerationOptions(enable_thinking=question.thinking is not False),
        limits=limits,
    )
    await server.start(ServerOptions(port=0, key_file=key_file, **options))
    try:
        async with aiohttp.ClientSession() as session:
            yield HttpDesk(client, engine, server, session)
    finally:
        await server.stop()
        await engine.close()
