"""What happens around the load of a model, by whoever wants it."""

import asyncio
import shutil
from pathlib import Path

import pytest

from qwendesk.core import paths
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.failures import LoadFailure
from qwendesk.engine.state import Phase
from qwendesk.engines.load_decision import facts_for
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
BAD_FILE = Kind(
    "A bad file takes away the model that worked",
    {Way.MCP: _NO_SERVER_TOOL, Way.IMPORT: "an import loads no model"},
)


@case(GIVEN_UP, *SERVER, report="issue 29, item 12 (curl -m 1.3)", before="failed")
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


def bad_files(folder: Path) -> list[Path]:
    """Files that can't be loaded, as their headers say."""
    whole = paths.demo_model().read_bytes()
    (folder / "cut.gguf").write_bytes(whole[: len(whole) // 2])
    (folder / "page.gguf").write_text("<!DOCTYPE html><title>Not found</title>", encoding="utf-8")
    (folder / "empty.gguf").write_bytes(b"")
    shutil.copy(paths.demo_mmproj(), folder / "eyes.gguf")
    return [*sorted(folder.glob("*.gguf")), folder / "gone.gguf"]


@case(BAD_FILE, Way.WINDOW, report="issue 29, item 15", before="failed")
async def test_bad_file_is_refused_and_the_loaded_model_stays(desk: Desk, tmp_path: Path) -> None:
    engine = desk.parts.engine
    engine.read_before_unload = facts_for
    for bad in bad_files(tmp_path):
        loaded = engine.state.report
        desk.window.load_model(str(bad))
        await desk.until(lambda: engine.state.failure is not None)
        assert (engine.state.report, engine.state.phase) == (loaded, Phase.READY)
        assert "The loaded model stays." in desk.text_of("banner.sentence")
        await desk.ask("And now?")
        assert engine.state.failure is None
        assert desk.parts.chat.conversation.turns[-1].answer.text.endswith("And now?")
    desk.client.kill()
    await desk.until(lambda: engine.state.phase is Phase.READY)


@case(BAD_FILE, Way.WINDOW, report="issue 29, item 15", before="failed")
async def test_bad_file_does_not_make_the_window_forget_its_unloaded_model(desk: Desk, tmp_path: Path) -> None:
    engine = desk.parts.engine
    engine.read_before_unload = facts_for
    await engine.unload_idle()
    assert isinstance(await engine.load_file(bad_files(tmp_path)[0]), LoadFailure)
    await desk.ask("And now?")
    assert desk.parts.chat.conversation.turns[-1].answer.text.endswith("And now?")


@case(BAD_FILE, Way.CLI, *SERVER, report="issue 29, item 15", before="failed")
async def test_bad_file_that_a_client_names_is_refused_and_the_loaded_model_answers(tmp_path: Path) -> None:
    bad = bad_files(tmp_path)[0]
    async with served(FakeEngineClient()) as server:
        engine, models = server.services.engine, server.services.server.models
        engine.read_before_unload = facts_for
        assert (await server.ask())[0] == 200
        loaded = engine.state.report

        async def others() -> list[Path]:
            return [bad]

        models._others = others
        for path in ("/v1/chat/completions", "/v1/responses", "/v1/messages"):
            status, answer = await server.ask(path, model=bad.stem)
            assert (status, bad.name in str(answer)) == (503, True)
            assert (engine.state.report, engine.state.failure) == (loaded, None)
            assert (await server.ask(path))[0] == 200


@case(BAD_FILE, Way.CLI, report="issue 29, item 15", before="failed")
async def test_qwendesk_serve_prints_no_address_for_a_file_that_is_no_model(tmp_path: Path) -> None:
    for bad in bad_files(tmp_path):
        with pytest.raises(QwenDeskError, match=r"\.gguf"):
            async with served(FakeEngineClient(), "--model", str(bad)):
                pass
