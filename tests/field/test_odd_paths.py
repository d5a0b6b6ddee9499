"""Models, pictures, documents and data in folders and files with names that people and other programs give them."""

import json
import shutil
import sys
from pathlib import Path

import msgspec
import pytest

from qwendesk.cli import main as cli
from qwendesk.core import paths
from qwendesk.mcp.service import McpService
from tests.chat.exchange.kit import Kit
from tests.chat.view.composer.test_documents import row
from tests.fakes.engine import FakeEngineClient
from tests.field.grid import SERVER, Kind, Way, case
from tests.field.serving import served
from tests.mcp.conftest import no_keyring, service
from tests.mcp.servers import ROOT, added, hostile, tool_of
from tests.pictures import ShapePicture
from tests.window_desk import Desk

__all__ = ["no_keyring", "service"]

ODD_PATHS = Kind("A model, picture, document or data folder can't be used because of its name")
REPORT = "LM Studio, Ollama and llama.cpp: paths with blanks, umlauts and #"
NAMES = [
    "with blanks  in it", "it's #1", "100% %20 %s {0} $HOME ~", "😀 größe 模型", "gro\u0308sse", ".hidden", "-m",
    "--model=x", "a" * 150, "e\u0301" * 45, "[a] (b) & c; d, e=f", "\u202eexe.txt",
    "dots...", "a\\b", "line\nbreak", 'say "x"', "ends with a blank ", "con.gguf.gguf",
]  # fmt: skip
if sys.platform == "win32":  # has no such names: "con" is its console, with any ending
    del NAMES[-6:]


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    path = tmp_path / "picture.png"
    ShapePicture("red", "circle").draw().save(path)
    return path


@pytest.fixture
def odd_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "it's #1 %20" / "gro\u0308sse 😀" / ("dots..." if sys.platform != "win32" else "-dots")
    folder.mkdir(parents=True)
    return folder


@case(ODD_PATHS, Way.CLI, report=REPORT, before="held")
def test_the_real_engine_loads_a_model_and_a_picture(
    odd_folder: Path, picture: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(paths.demo_model(), odd_folder / "-m 100%.gguf")
    shutil.copy(paths.demo_mmproj(), odd_folder / "mmproj #2.gguf")
    shutil.copy(picture, odd_folder / "--image.png")
    monkeypatch.chdir(odd_folder)
    files = ["--model=-m 100%.gguf", "--mmproj=mmproj #2.gguf", "--image=--image.png"]
    assert cli.main(["ask", *files, "--no-think", "--max-tokens", "4", "--json", "What is it?"]) == 0
    (turn,) = json.loads(capsys.readouterr().out)["turns"]
    assert turn["answer"]


@case(ODD_PATHS, *SERVER, report=REPORT, before="held")
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/v1/messages"])
async def test_a_served_model_has_any_name(path: str, tmp_path: Path) -> None:
    for name in NAMES:
        model = tmp_path / f"{name}.gguf"
        shutil.copy(paths.demo_model(), model)
        async with served(FakeEngineClient(), f"--model={model}") as server:
            _, listed = await server.get("/v1/models")
            status, answer = await server.ask(path, model=listed["data"][0]["id"])
            assert (name, status, answer["model"]) == (name, 200, listed["data"][0]["id"])
            report = server.services.engine.state.report
            assert report is not None
            assert report.options.model == str(model)
        model.unlink()


def loaded(desk: Desk) -> str:
    state = desk.parts.engine.state
    return "" if state.report is None or state.is_loading else state.report.options.model


@case(ODD_PATHS, Way.WINDOW, report=REPORT, before="held")
async def test_models_pictures_and_documents_of_any_name_are_dropped(desk: Desk, tmp_path: Path, picture: Path) -> None:
    for name in NAMES:
        model = tmp_path / f"{name}.gguf"
        shutil.copy(paths.demo_model(), model)
        desk.window.load_model(str(model))
        await desk.until(lambda: loaded(desk) == str(model))  # noqa: B023
        shutil.copy(picture, tmp_path / f"{name}.png")
        (tmp_path / f"{name}.txt").write_text(f"The text of {name}", encoding="utf-8")
        desk.drop(tmp_path / f"{name}.png", tmp_path / f"{name}.txt")
        await desk.until(lambda: len(row(desk).documents) == 1 and len(row(desk).items) == 2)
        await desk.ask("Look")
        message = desk.client.asked[-1].messages[-1]
        assert [Path(each.path).suffix for each in message.images] == [".png"]
        assert f"The text of {name}" in message.text


@case(ODD_PATHS, Way.IMPORT, report=REPORT, before="held")
async def test_a_data_folder_and_an_export_may_have_any_name(tmp_path: Path) -> None:
    for number, name in enumerate(NAMES):
        folder = tmp_path / str(number) / name
        folder.mkdir(parents=True)
        kit = await Kit(folder).start()
        await kit.chat("Hello", "1")
        await kit.exchange.export(folder / f"{name}.json", "json")
        await kit.chat_list.close()
        (tmp_path / f"{number} again").mkdir()
        other = await Kit(tmp_path / f"{number} again").start()
        assert (await other.exchange.import_from(folder / f"{name}.json")).chats == 1
        await other.chat_list.close()


@case(ODD_PATHS, Way.MCP, report="servers on the desktop of a user with an umlaut", before="held")
async def test_a_server_may_lie_in_any_folder(service: McpService, odd_folder: Path) -> None:
    shutil.copytree(ROOT / "tests" / "mcp", odd_folder / "mcp", ignore=shutil.ignore_patterns("__pycache__"))
    server = hostile("sizes")
    script = str(odd_folder / "mcp" / "hostile_server.py")
    arguments = (script, *server.config.arguments[1:])
    await added(
        service, msgspec.structs.replace(server, config=msgspec.structs.replace(server.config, arguments=arguments))
    )
    assert tool_of(service, "go").parameters
