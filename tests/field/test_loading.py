"""What happens around the load of a model, by whoever wants it."""

import asyncio
from pathlib import Path

import pytest

from qwendesk.core import paths
from qwendesk.engine.state import Phase
from tests.fakes.engine import FakeEngineClient
from tests.field.grid import SERVER, Kind, Way, case
from tests.field.serving import served
from tests.server.http_desk import ASKED, http_desk
from tests.window_desk import Desk

_NO_SERVER_TOOL = "an MCP server gives tools to a model that is loaded, and loads none"
GIVEN_UP = Kind(
    "A request given up while a model loads leaves the app loading",
    {Way.MCP: _NO_SERVER_TOOL, Way.IMPORT: "an import loads no model"},
)


@case(GIVEN_UP, *SERVER, report="issue 29, item 12 (curl -m 1.3)", before="failed")
@pytest.mark.asyncio
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/v1/messages"])
async def test_client_that_gives_up_leaves_a_server_that_is_well_and_answers(tmp_path: Path, path: str) -> None:
    body = ASKED | {"input": "Hello", "max_tokens": 9}
    async with http_desk(tmp_path) as desk:
        desk.client.load_delay_s = 1000
        request = asyncio.create_task(desk.status("POST", path, body))
        await desk.until(lambda: desk.engine.state.load_fraction or desk.engine.state.load_stage)
        assert await desk.status("GET", "/health") == 503
        request.cancel()
        await desk.until(lambda: not desk.n_running)
        await desk.engine.wait_until_settled()
        assert await desk.status("GET", "/health") == 200
        assert not desk.client.is_running
        desk.client.load_delay_s = 0
        assert await desk.status("POST", path, body) == 200


@case(GIVEN_UP, Way.CLI, report="issue 29, item 12 (curl -m 1.3)", before="failed")
@pytest.mark.asyncio
async def test_client_of_qwendesk_serve_that_gives_up_can_ask_again() -> None:
    client = FakeEngineClient()
    async with served(client, "--model", str(paths.demo_model())) as server:
        client.load_delay_s = 1000
        request = asyncio.create_task(server.ask())
        await server.until_health(503)
        request.cancel()
        await server.until_health(200)
        client.load_delay_s = 0
        assert (await server.ask())[0] == 200


@case(GIVEN_UP, Way.WINDOW, report="issue 29, item 12", before="held")
async def test_question_that_is_stopped_while_its_model_loads_can_be_asked_again(desk: Desk) -> None:
    await desk.parts.engine.unload_idle()
    desk.client.load_delay_s = 1000
    desk.send("Hello?")
    await desk.until(lambda: bool(desk.parts.engine.state.load_stage))
    await desk.parts.chat.stop()
    await desk.parts.engine.cancel_load()
    await desk.until(lambda: desk.parts.engine.state.phase is Phase.OFF)
    desk.client.load_delay_s = 0
    await desk.load_demo()
    await desk.ask("And now?")
    assert desk.parts.chat.conversation.turns[-1].answer.text.endswith("And now?")
