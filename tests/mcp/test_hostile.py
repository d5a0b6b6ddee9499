"""Servers that do harm: the app goes on, says what happened, and leaves no process behind."""

import asyncio
import functools
import sys
from pathlib import Path

import psutil
import pytest

from qwendesk.mcp.host_protocol import MOST_IMAGES, MOST_TEXT
from qwendesk.mcp.server import RunningMcpServer
from qwendesk.mcp.server_config import NewServer, ServerConfig, new_id
from qwendesk.mcp.service import CallFailed, McpService
from qwendesk.toolbox.builtin import builtin_tools
from tests.mcp.servers import (
    added,
    call,
    config,
    friendly,
    host_of,
    hostile,
    kill_app,
    no_progress,
    phase,
    problem,
    start_app,
    tool_of,
    until,
    until_text,
    wait_until_gone,
)


async def test_program_that_does_not_exist_is_named(service: McpService) -> None:
    await added(service, NewServer(ServerConfig(new_id(), "Gone", command="no-such-program")))
    assert problem(service).startswith("The program no-such-program was not found.")


async def test_folder_that_does_not_exist_is_named(service: McpService, tmp_path: Path) -> None:
    await added(service, friendly(folder=str(tmp_path / "none")))
    assert problem(service) == f"The folder {tmp_path / 'none'} doesn't exist. Choose another."


async def test_program_that_ends_at_once_shows_what_it_wrote(service: McpService) -> None:
    await added(service, hostile("crashes"))
    assert "didn't answer as an MCP server" in problem(service)
    assert service.state.value.servers[0].log == ("reading the settings", "no key given")


async def test_address_that_nobody_serves_is_named(service: McpService) -> None:
    await added(service, NewServer(ServerConfig(new_id(), "Gone", address="http://127.0.0.1:9/mcp")))
    assert problem(service).startswith("http://127.0.0.1:9/mcp didn't answer as an MCP server")


async def test_server_that_prints_other_things_too_works(service: McpService) -> None:
    await added(service, hostile("prints"))
    assert "IGNORE" in await call(service, "go")


async def test_server_that_never_answers_is_given_up() -> None:
    service = McpService(make_server=functools.partial(RunningMcpServer, start_s=1.0))
    await added(service, hostile("never"))
    assert "no answer within 1 s" in problem(service)
    await service.close()


async def test_call_that_is_never_answered_fails_and_the_server_can_be_stopped() -> None:
    service = McpService(make_server=functools.partial(RunningMcpServer, call_s=1.0))
    await added(service, hostile("silent"))
    with pytest.raises(CallFailed, match="did not answer in time"):
        await call(service, "go")
    await service.close()


async def test_server_that_dies_in_the_middle_is_started_again_for_the_next_call(service: McpService) -> None:
    server = await added(service, hostile("dies"))
    for _ in range(2):
        with pytest.raises(CallFailed, match="Hostile ended unexpectedly"):
            await call(service, "go")
        await until(service, lambda: phase(service, server.id) == "failed")
    await service.test(server.id)
    assert phase(service, server.id) == "running"


async def test_server_that_keeps_failing_is_left_alone_for_a_while() -> None:
    now = [0.0]

    class Clocked(RunningMcpServer):
        def __init__(self, *arguments: object, **more: object) -> None:
            super().__init__(*arguments, **more, clock=lambda: now[0])  # type: ignore[arg-type]

    service = McpService(make_server=Clocked)
    server = await added(service, hostile("crashes"))
    running = service._servers[server.id]
    waits = []
    for _ in range(6):
        with pytest.raises(Exception, match="didn't answer"):
            await running.start(by_user=True)
        with pytest.raises(Exception, match="Next try in"):
            await running.start()
        waits.append(running._wait_s)
    assert waits == [2, 10, 30, 120, 120, 120]
    await service.close()


async def test_huge_result_is_cut(service: McpService) -> None:
    await added(service, hostile("huge"))
    text = await call(service, "go")
    assert len(text) < MOST_TEXT + 100
    assert text.endswith("(cut off: 5,000,000 characters in all)")


@pytest.mark.parametrize("kind", ["endless line", "endless lines"])
async def test_endless_output_is_ended_while_the_app_goes_on(service: McpService, kind: str) -> None:
    server = await added(service, hostile(kind))
    with pytest.raises(CallFailed, match="stopped"):
        await call(service, "go")
    assert phase(service, server.id) == "failed"


async def test_endless_log_does_not_stand_in_the_way_of_the_end() -> None:
    service = McpService(make_server=functools.partial(RunningMcpServer, call_s=1.0))
    await added(service, hostile("endless log"))
    with pytest.raises(CallFailed, match="in time"):
        await call(service, "go")
    await service.close()


async def test_damaged_and_too_many_pictures_are_told_in_words(service: McpService) -> None:
    await added(service, hostile("pictures"))
    answer = await service.call(tool_of(service, "go"), {}, no_progress)
    assert len(answer.images) == MOST_IMAGES
    assert answer.text.count("can't be shown") == 2 + 20 - MOST_IMAGES


async def test_names_cannot_imitate_tools_of_the_app(service: McpService) -> None:
    await added(service, hostile("imitates", name="Edit file"))
    tools = service.state.value.tools
    names = [tool.name for tool in tools]
    assert sorted(names) == [
        "edit_file__a_b", "edit_file__a_b_2", "edit_file__calculate", "edit_file__edit_file", "edit_file__gnirts",
        "edit_file__x",
    ]  # fmt: skip
    assert not set(names) & {tool.name for tool in builtin_tools()}
    assert all(tool.title.startswith("Edit file: ") and tool.title.isprintable() for tool in tools)


async def test_only_so_many_tools_and_so_much_description_are_taken(service: McpService) -> None:
    server = await added(service, hostile("many"))
    assert len(server.offer.tools) == 128
    assert server.offer.n_left_out == 1000 - 128
    assert all(len(tool.description) < 4100 for tool in server.offer.tools)


async def test_list_without_end_is_ended(service: McpService) -> None:
    server = await added(service, hostile("pages"))
    assert {tool.name for tool in server.offer.tools} == {"go"}


async def test_schemas_that_would_stall_whoever_uses_them_are_made_harmless(service: McpService) -> None:
    await added(service, hostile("schemas"))
    schemas = {tool.original: tool.parameters for tool in service.state.value.tools}
    assert "bomb" not in schemas
    assert service.state.value.servers[0].config.offer.n_left_out == 1
    assert "$ref" not in str(schemas)
    assert "pattern" not in str(schemas["slow"])
    assert schemas["remote"]["properties"] == {"x": {}}
    assert schemas["wrong"] == {"type": "object", "properties": {"x": {}}}


async def test_offer_that_is_not_as_the_protocol_says_is_told(service: McpService) -> None:
    await added(service, hostile("no schema"))
    assert "tools.0.inputSchema.type: Input should be 'object'" in problem(service)


async def test_new_offer_that_cannot_be_read_changes_nothing(service: McpService, tmp_path: Path) -> None:
    server = await added(service, hostile("spoils", str(tmp_path / "asked")))
    phases: set[str] = set()
    service.state.subscribe(lambda _state: phases.add(phase(service, server.id)))
    await call(service, "go")
    await until_text(tmp_path / "asked", "asked again")
    assert "Call send_email" in await call(service, "go")
    assert phases <= {"running"}


async def test_tool_that_changes_after_the_consent_is_not_run(service: McpService, tmp_path: Path) -> None:
    switch = tmp_path / "changed"
    server = await added(service, hostile("changes", str(switch)))
    tool = tool_of(service, "send")
    switch.touch()
    await service.test(server.id)

    with pytest.raises(CallFailed, match="has changed this tool"):
        await service.call(tool, {}, no_progress)
    assert tool_of(service, "send") != tool
    assert config(service, server.id).identity == tool.server_identity


async def test_server_that_refuses_to_end_is_killed(service: McpService) -> None:
    server = await added(service, hostile("stays"))
    pid = int(await call(service, "go"))
    await service.set_on(server.id, on=False)
    wait_until_gone(pid)


async def test_server_ends_with_the_process_that_talks_to_it(service: McpService) -> None:
    server = await added(service, hostile("stays"))
    pid = int(await call(service, "go"))
    host = host_of(pid)

    host.kill()

    await asyncio.to_thread(wait_until_gone, pid)
    await until(service, lambda: phase(service, server.id) == "failed")
    assert problem(service) == "The connection to Hostile was stopped from outside."
    assert await call(service, "go") != str(pid), "it is started again for the next call"


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_killed_app_leaves_no_server_behind(tmp_path: Path) -> None:
    app, pid = start_app(tmp_path, "stays")
    children = psutil.Process(app.pid).children(recursive=True)
    assert pid in [child.pid for child in children]

    kill_app(app, children)
