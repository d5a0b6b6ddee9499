"""Real servers: by standard input and output and by HTTP, called, followed, cancelled, ended."""

import asyncio
import json
from pathlib import Path

import msgspec
import pytest

from qwendesk.core.app_options import AppOptions
from qwendesk.core.observed import Observed
from qwendesk.hub.access_tokens import known_hosts
from qwendesk.mcp.host_protocol import ProgressNote
from qwendesk.mcp.server_config import NewServer, ServerConfig, new_id, server_list_file
from qwendesk.mcp.service import CallFailed, McpService
from tests.mcp.servers import (
    ROOT,
    added,
    call,
    friendly,
    hostile,
    http_server,
    no_progress,
    phase,
    tool_of,
    until,
    until_text,
)


async def test_tools_of_a_program_are_listed_called_and_followed(service: McpService) -> None:
    server = await added(service, friendly())

    assert server.offer.server == "friendly 1.2"
    assert tool_of(service, "add").name == "friendly__add"
    assert tool_of(service, "add").title == "Friendly: add"
    assert tool_of(service, "add").parameters["required"] == ["a", "b"]
    assert await call(service, "add", a=2, b=40) == "42"

    picture = await service.call(tool_of(service, "picture"), {}, no_progress)
    assert picture.text == "A red square.\n\n(picture 1)"
    assert [image.data[:4] for image in picture.images] == [b"\x89PNG"]

    failure = await service.call(tool_of(service, "fail"), {}, no_progress)
    assert failure.is_error
    assert "The printer is on fire." in failure.text

    seen: list[ProgressNote] = []
    assert (await service.call(tool_of(service, "slow"), {"steps": 3}, seen.append)).text == "done"
    assert [(each.fraction, each.message) for each in seen] == [(1 / 3, "step 1"), (2 / 3, "step 2"), (1, "step 3")]

    with pytest.raises(CallFailed, match=r"refused the call: .*elicitation"):
        await service.call(tool_of(service, "ask_user"), {}, no_progress)

    await call(service, "grow")
    await until(service, lambda: any(tool.original == "grown" for tool in service.state.value.tools))
    assert await call(service, "grown") == "new"


async def test_resources_and_prompts_are_listed_and_read(service: McpService) -> None:
    await added(service, friendly())

    assert await call(service, "resources") == "notes://today - today - What to do."
    assert await call(service, "resources", uri="notes://today") == "notes://today:\nWater the plants."
    with pytest.raises(CallFailed, match="refused"):
        await call(service, "resources", uri="notes://never")

    assert await call(service, "prompts") == "greeting - Greet somebody. - arguments: name (required)"
    assert await call(service, "prompts", name="greeting", arguments={"name": "Ada"}) == "Greet Ada."
    with pytest.raises(CallFailed, match="refused"):
        await call(service, "prompts", name="never")


async def test_tools_of_an_address_are_listed_and_called(service: McpService) -> None:
    with http_server() as address:
        config = ServerConfig(new_id(), "Web", address=address, headers=("X-Key",))
        await added(service, NewServer(config, {"X-Key": "secret"}))

        assert await call(service, "add", a=2, b=40) == "42"
        assert await call(service, "header", name="x-key") == "secret"
        assert not tool_of(service, "add").runs_program


async def test_proxy_of_the_system_hears_nothing_of_a_server_on_this_pc(
    service: McpService, monkeypatch: pytest.MonkeyPatch
) -> None:
    with http_server() as address:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, "http://127.0.0.1:9")  # nobody listens there
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.setenv(name, "")
        config = ServerConfig(new_id(), "Web", address=address, headers=("X-Key",))
        await added(service, NewServer(config, {"X-Key": "secret"}))
        assert await call(service, "header", name="x-key") == "secret"


async def test_program_gets_its_folder_and_its_variables_and_none_of_ours(
    service: McpService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "ours")
    server = friendly(folder=str(tmp_path))
    config = msgspec.structs.replace(server.config, environment=("PYTHONPATH", "KEY"))
    await added(service, NewServer(config, {**server.secrets, "KEY": "its"}))

    assert await call(service, "folder") == str(tmp_path)
    assert await call(service, "variable", name="KEY") == "its"
    assert await call(service, "variable", name="HF_TOKEN") == "(none)"


async def test_cancelled_call_is_cancelled_in_the_server(service: McpService, tmp_path: Path) -> None:
    await added(service, friendly())
    note = tmp_path / "note"
    task = asyncio.ensure_future(call(service, "wait", path=str(note)))
    await until_text(note, "begun")

    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    await until_text(note, "cancelled")
    assert await call(service, "add", a=1, b=1) == "2"


@pytest.mark.parametrize("method", ["elicitation/create", "sampling/createMessage", "roots/list"])
async def test_what_older_servers_ask_of_us_is_refused_without_a_wait(service: McpService, method: str) -> None:
    await added(service, hostile("asks", method))

    reply = json.loads(await call(service, "go"))

    assert reply["id"] == "question"
    assert reply["error"]["message"].endswith("not supported")


async def test_servers_are_saved_without_their_secrets_and_start_when_needed() -> None:
    first = McpService()
    server = await added(first, friendly())
    await first.close()
    saved = server_list_file().path.read_text()
    assert "PYTHONPATH" in saved
    assert f'"{ROOT}"' not in saved, "the value of the variable"
    assert f"mcp/{server.id}/PYTHONPATH" in known_hosts(), "Delete everything deletes the token of each"

    later = McpService()
    assert phase(later, server.id) == "stopped"
    assert tool_of(later, "add").name == "friendly__add"
    assert await call(later, "add", a=1, b=2) == "3"
    assert phase(later, server.id) == "running"
    await later.remove(server.id)
    assert later.state.value.servers == ()
    await later.close()
    tokens = server_list_file().path.with_name("tokens.json")
    assert json.loads(tokens.read_text()) == {}


async def test_server_and_single_tools_are_switched_off_and_the_server_is_removed(service: McpService) -> None:
    server = await added(service, friendly())
    tool = tool_of(service, "add")

    await service.set_tool(server.id, "add", on=False)
    assert "add" not in [each.original for each in service.state.value.tools]
    with pytest.raises(CallFailed, match="not run"):
        await service.call(tool, {"a": 1, "b": 2}, no_progress)
    await service.set_tool(server.id, "add", on=True)
    assert tool_of(service, "add") == tool

    await service.set_on(server.id, on=False)
    assert service.state.value.tools == ()
    assert phase(service, server.id) == "stopped"

    await service.remove(server.id)
    await service.test(server.id)
    assert service.state.value.servers == (), "removed before it starts again"


async def test_offline_reaches_this_pc_alone() -> None:
    service = McpService(Observed(AppOptions(offline=True)))
    await added(service, NewServer(ServerConfig(new_id(), "Far", address="http://192.0.2.1/mcp")))
    assert "offline" in service.state.value.servers[0].problem
    with http_server() as address:
        near = await added(service, NewServer(ServerConfig(new_id(), "Near", address=address)))
        assert phase(service, near.id) == "running"
        await service.close()


async def test_changed_settings_keep_the_secrets_that_are_not_typed_again(service: McpService) -> None:
    server = await added(service, friendly())
    config = msgspec.structs.replace(server, name="Other", environment=("PYTHONPATH", "KEY"))

    await service.change(NewServer(config, {"KEY": "new"}))
    await until(service, lambda: phase(service, server.id) == "running")

    assert tool_of(service, "variable").name == "other__variable"
    assert await call(service, "variable", name="KEY") == "new"
    without = msgspec.structs.replace(config, environment=("PYTHONPATH",))
    await service.change(NewServer(without))
    assert await service.secrets(server.id) == {"PYTHONPATH": await call(service, "variable", name="PYTHONPATH")}
    assert f"mcp/{server.id}/KEY" not in server_list_file().path.with_name("tokens.json").read_text()
