"""A request that names a model of this PC: through `qwendesk serve`, the APIs, and beside a window that is used."""

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from qwendesk.chat.chat_state import TextAdded
from qwendesk.core import paths
from qwendesk.core.options import LoadOptions
from qwendesk.hub.model_folders import default_models_folder
from qwendesk.models.last_model import last_model_file
from qwendesk.server.refusals import Limits
from tests.fakes.answer_stream import ScriptedAnswer
from tests.fakes.engine import FakeEngineClient
from tests.field.grid import SERVER, Kind, Way, case
from tests.field.serving import Served, served
from tests.server.http_desk import ASKED, http_desk

_NO_NAME = {Way.MCP: "an MCP server names no model", Way.IMPORT: "an import loads no model"}
OTHER_MODEL = Kind("The model that a request names isn't the one that answers", _NO_NAME)
TWINS = Kind(
    "Two model files of one name are one model",
    _NO_NAME | {Way.WINDOW: "the window's list has a row for each file, with its folder"},
)
UNKNOWN = Kind(
    "A name of no model on this PC is answered by another model, silently",
    _NO_NAME | {Way.WINDOW: "the window offers what is there"},
)
PATHS = ("/v1/chat/completions", "/v1/responses", "/v1/messages")


@pytest.fixture(autouse=True)
def models() -> Iterator[tuple[Path, Path]]:
    """Two models of one name in the folder of models."""
    folder = default_models_folder()
    found = folder / "one" / "Tiny-4B-Q8_0.gguf", folder / "two" / "Tiny-4B-Q8_0.gguf"
    for each in found:
        each.parent.mkdir(parents=True)
        shutil.copy(paths.demo_model(), each)
    yield found
    shutil.rmtree(folder)
    last_model_file().unlink(missing_ok=True)


def loaded(server: Served) -> str:
    report = server.services.engine.state.report
    return "" if report is None else report.options.model


@case(OTHER_MODEL, Way.CLI, *SERVER, report="issue 29, item 11", before="failed")
@case(TWINS, Way.CLI, *SERVER, report="issue 29, item 11", before="failed")
@pytest.mark.parametrize("path", PATHS)
async def test_each_of_two_files_of_one_name_can_be_named(path: str, models: tuple[Path, Path]) -> None:
    async with served(FakeEngineClient()) as server:
        listed = [each["id"] for each in (await server.get("/v1/models"))[1]["data"]]
        assert [each for each in listed if "Tiny" in each] == ["one/Tiny-4B-Q8_0", "two/Tiny-4B-Q8_0"]
        assert (await server.get("/v1/models/two/Tiny-4B-Q8_0"))[0] == 200
        for name, file in zip(("two/tiny-4b-q8_0", "one/Tiny-4B-Q8_0"), reversed(models), strict=True):
            status, answer = await server.ask(path, model=name)
            assert (status, answer["model"].lower(), loaded(server)) == (200, name.lower(), str(file))
        assert (await server.ask(path, model="Tiny-4B"))[1]["model"] == "one/Tiny-4B-Q8_0", "the loaded one is meant"


@case(UNKNOWN, Way.CLI, *SERVER, report="issue 29, item 11", before="failed")
@pytest.mark.parametrize("path", PATHS)
async def test_an_unknown_name_is_refused_with_what_there_is_and_those_of_companies_are_not(path: str) -> None:
    async with served(FakeEngineClient()) as server:
        status, answer = await server.ask(path, model="Tiny-7B", stream=False)
        assert status == 404
        assert "one/Tiny-4B-Q8_0" in answer["error"]["message"]
        for name in ("gpt-5.1", "claude-sonnet-4-5", "qwendesk", ""):
            assert (await server.ask(path, model=name))[0] == 200
        server.services.settings.change({"serve_any_model": False})
        assert (await server.ask(path, model="Tiny-7B"))[0] == 200
        assert len((await server.get("/v1/models"))[1]["data"]) == 1
        server.services.settings.change({"serve_any_model": True})


@case(OTHER_MODEL, Way.WINDOW, report="issue 29, item 11", before="failed")
async def test_window_gets_its_model_back_and_is_not_interrupted(models: tuple[Path, Path]) -> None:
    client = FakeEngineClient()
    async with served(client) as server:
        chat, engine = server.services.chat.chat, server.services.engine
        await engine.load(LoadOptions(model=str(models[0])))
        client.answers = [ScriptedAnswer(text="word " * 1000, tokens_per_second=100)]
        question = asyncio.create_task(chat.send("Hello"))
        writes = asyncio.Event()
        chat.subscribe(lambda event: writes.set() if isinstance(event, TextAdded) else None)
        await writes.wait()
        status, answer = await server.ask(model="two/Tiny-4B-Q8_0")
        assert (status, loaded(server)) == (503, str(models[0]))
        assert "window is answering" in answer["error"]["message"]
        await chat.stop()
        await question
        assert (await server.ask(model="two/Tiny-4B-Q8_0"))[0] == 200
        assert loaded(server) == str(models[1])
        assert server.services.models.last_model.last.value.model == str(models[0]), "the next start has the user's"
        assert (await chat.send("And now?")).answer.text.endswith("And now?")
        assert loaded(server) == str(models[0])
        assert chat.state.value.settings.model == str(models[0])


@case(OTHER_MODEL, Way.WINDOW, report="issue 29, item 11", before="failed")
async def test_measurement_and_game_are_not_disturbed(models: tuple[Path, Path]) -> None:
    async with served(FakeEngineClient()) as server:
        await server.services.engine.load(LoadOptions(model=str(models[0])))
        server.services.bench.runs.running.set("Speed")
        for body in ({"model": "two/Tiny-4B-Q8_0"}, {"model": "two/Tiny-4B-Q8_0", "stream": True}):
            status, answer = await server.ask(**body)
            assert (status, "measurement" in str(answer)) == (503, True)
        assert (await server.ask())[0] == 200, "the loaded model answers"
        server.services.bench.runs.running.set("")
        server.services.engine.hold_questions()
        await server.services.engine.unload_idle()
        for name in ("two/Tiny-4B-Q8_0", "gpt-5"):
            status, answer = await server.ask(model=name)
            assert (status, "graphics card" in str(answer)) == (503, True)
        assert loaded(server) == ""
        server.services.engine.release_questions()
        assert (await server.ask(model="gpt-5"))[0] == 200
        assert loaded(server) == str(models[0])


@case(OTHER_MODEL, *SERVER, report="issue 29, item 11", before="failed")
@pytest.mark.parametrize(
    ("path", "sign"), [(PATHS[0], ": loading q"), (PATHS[1], ": loading q"), (PATHS[2], "event: ping")]
)
async def test_stream_says_while_the_model_is_loaded_that_it_is(path: str, sign: str, tmp_path: Path) -> None:
    async with http_desk(tmp_path, limits=Limits(ping_s=0.01)) as desk:
        desk.client.load_delay_s = 0.5
        body = ASKED | {"input": "Hello", "max_tokens": 99, "stream": True}
        async with desk.request("POST", path, body) as response:
            text = await response.text()
        assert sign in text
        assert text.index(sign) < text.index("You")
