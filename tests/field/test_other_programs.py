"""Programs that serve models, each under its own name, though most also speak another one's API."""

from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from qwendesk.cli import main as cli
from qwendesk.core.app_options import AppOptions
from qwendesk.core.observed import Observed
from qwendesk.remote import finding
from qwendesk.remote.addresses import read_address
from qwendesk.remote.servers import ServerList
from qwendesk.remote.service import RemoteService
from tests.field.grid import SERVER, Kind, Way, case
from tests.remote.conftest import RemoteDesk
from tests.remote.made_up_server import HELLO, Refusal
from tests.remote.server_thread import served

MISTAKEN = Kind(
    "A server of another program isn't found, or is taken for one that it imitates",
    dict.fromkeys(SERVER, "a client of our server doesn't see what the model runs on")
    | {Way.MCP: "MCP servers serve no models", Way.IMPORT: "imported chats name no server"},
)

FLASH, QWEN = "qwen3.8-flash-next-iq2_xs", "Qwen3.6-35B-A3B"
LLAMA_PROPS = {"default_generation_settings": {"n_ctx": 32768, "params": {}}, "total_slots": 1}
OLLAMA = {"/api/version": {"version": "0.7.0"}}


def models(name: str, owner: str | None = None, **others: Any) -> dict[str, Any]:
    owned = {} if owner is None else {"owned_by": owner}
    return {"object": "list", "data": [{"id": name, "object": "model", **owned, **others}]}


STRATA = {"/v1/models": models(FLASH), "/v1/chat/completions": HELLO}
PROGRAMS: dict[str, tuple[str, dict[str, Any]]] = {
    "its version": ("Strata", {**STRATA, "/props": {**LLAMA_PROPS, "build_info": "Strata 0.1.44"}}),
    "a field of its own": ("Strata", {**STRATA, "/props": {**LLAMA_PROPS, "strata_version": "0.1.44"}}),
    "no version": ("Strata", {**STRATA, "/props": LLAMA_PROPS, "/health": {"status": "ok", "service": "strata"}}),
    "FreeToken": ("FreeToken", {"/v1/models": models(QWEN, "FreeToken", max_model_len=65536)}),
    "Lemonade": ("Lemonade", {"/v1/models": models(QWEN, "lemonade"), **OLLAMA}),
    "Lemonade, empty": (
        "Lemonade",
        {"/v1/models": {"data": []}, "/api/v1/health": {"status": "ok", "all_models_loaded": []}, **OLLAMA},
    ),
    "KoboldCpp": ("KoboldCpp", {"/v1/models": models(QWEN, "koboldcpp"), "/props": LLAMA_PROPS, **OLLAMA}),
    "Docker": ("Docker Model Runner", {"/v1/models": models("ai/qwen3.6", "docker"), "/version": {"version": "1"}}),
    "exo": ("exo", {"/v1/models": models(QWEN, "exo"), **OLLAMA}),
    "Jan": (
        "Jan",
        {
            "/v1/models": Refusal(401, {"error": "Invalid or missing authorization token"}),
            "/openapi.json": {"openapi": "3.0.0", "info": {"title": "Jan API Server Endpoints", "version": "1.0"}},
        },
    ),
}  # fmt: skip
PORTS = {"Strata": 8080, "FreeToken": 1919, "Lemonade": 13305, "Jan": 1337, "KoboldCpp": 5001, "Docker": 12434}


@pytest_asyncio.fixture
async def remote() -> AsyncIterator[RemoteDesk]:
    desk = RemoteDesk()
    yield desk
    await desk.close()


async def _found(ports: Iterable[int]) -> list[str]:
    found: list[str] = []
    await finding.find_on_this_pc(lambda server: found.append(server.title.partition(" (")[0]), tuple(ports))
    return found


@case(MISTAKEN, Way.WINDOW, report="made up after each program's source", before="failed")
@pytest.mark.parametrize(("program", "replies"), PROGRAMS.values(), ids=list(PROGRAMS))
async def test_the_search_names_each_program(remote: RemoteDesk, program: str, replies: dict[str, Any]) -> None:
    server = await remote.serve(replies)
    assert await _found([server.port]) == [program]


@case(MISTAKEN, Way.WINDOW, report="docs.docker.com: its API is below /engines", before="failed")
async def test_dockers_models_are_asked_for_below_its_path(
    remote: RemoteDesk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert read_address("localhost:12434") == "http://localhost:12434/engines"
    assert read_address("http://localhost:12434/engines/v1/models") == "http://localhost:12434/engines"
    server = await remote.serve({"/engines/v1/models": models("ai/qwen3.6", "docker"), "/version": {"version": "1"}})
    monkeypatch.setattr("qwendesk.remote.addresses._PATHS", {server.port: "/engines"})
    assert await _found([server.port]) == ["Docker Model Runner"]
    service = RemoteService(Observed(AppOptions()), servers=ServerList(tmp_path / "servers.json"))
    assert await service.add(f"localhost:{server.port}")
    (listed,) = service.state.value.servers
    assert [model.name for model in listed.models] == ["ai/qwen3.6"]
    await service.close()


@case(MISTAKEN, Way.WINDOW, report="the programs' documentation", before="failed")
def test_the_ports_of_all_programs_are_searched() -> None:
    assert set(PORTS.values()) <= set(finding.USUAL_PORTS)


@case(MISTAKEN, Way.WINDOW, report="Strata's serve/frontend.py", before="failed")
async def test_strata_thinks_with_the_efforts_of_its_only_model(remote: RemoteDesk) -> None:
    server = await remote.serve(PROGRAMS["its version"][1])
    report = await remote.use(server, FLASH)
    assert (report.served_by.program, report.n_ctx, report.can_think) == ("Strata", 32768, True)
    assert report.template.reasoning_efforts == ("low", "medium", "xhigh")


@case(MISTAKEN, Way.CLI, report="made up after Strata's serve/server.py", before="failed")
def test_the_command_line_names_it_too(capsys: pytest.CaptureFixture[str]) -> None:
    with served({**PROGRAMS["its version"][1], "/v1/models": {"data": []}}) as server:
        assert cli.main(["ask", "--engine", server.address, "hi"]) != 0
        assert "Strata" in capsys.readouterr().err
    with served(PROGRAMS["its version"][1]) as server:
        assert cli.main(["ask", "--engine", server.address, "hi"]) == 0
    assert capsys.readouterr().out.strip() == "Hello."
