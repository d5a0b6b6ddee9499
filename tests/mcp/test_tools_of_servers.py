"""Tools of servers behind the gate: nothing of them runs without the user, and nothing that they say changes that."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from qwendesk.core.chats import ChatSettings
from qwendesk.core.messages import CallRecord, ToolCall
from qwendesk.core.tool_context import CallContext, ConsentRequest, Decision
from qwendesk.mcp.server_config import NewServer
from qwendesk.mcp.service import McpService
from qwendesk.mcp.tools import join_servers, server_switch
from qwendesk.toolbox.builtin import builtin_tools
from qwendesk.toolbox.knowledge.folder_indexes import FolderIndexes
from qwendesk.toolbox.service import ToolService
from tests.mcp.servers import added, friendly, hostile


class Chat:
    """A chat with a folder and a server, in which the user decides always the same."""

    def __init__(self, service: McpService, indexes: FolderIndexes, folder: Path) -> None:
        self.toolbox = ToolService(builtin_tools(indexes))
        self.asked: list[ConsentRequest] = []
        self.decision: Decision = "once"
        self.settings = ChatSettings(tools=("edit_file",), tool_folders=(str(folder),))
        self._service = service
        join_servers(service, self.toolbox)
        self.toolbox.waiting.subscribe(self._decide)

    async def turn_on(self, server: NewServer) -> None:
        await added(self._service, server)
        self.settings = ChatSettings(
            tools=(*self.settings.tools, server_switch(server.config.id)), tool_folders=self.settings.tool_folders
        )

    async def call(self, tool: str, **arguments: object) -> CallRecord:
        return await self.toolbox.run(ToolCall(tool, json.dumps(arguments)), CallContext("chat", self.settings))

    def _decide(self, request: ConsentRequest | None) -> None:
        if request is not None:
            self.asked.append(request)
            asyncio.get_running_loop().call_soon(self.toolbox.decide, request, self.decision)


@pytest_asyncio.fixture
async def chat(service: McpService, tmp_path: Path) -> AsyncIterator[Chat]:
    folder = tmp_path / "folder"
    folder.mkdir()
    indexes = FolderIndexes(tmp_path / "indexes")
    yield Chat(service, indexes, folder)
    await indexes.close()


async def test_call_shows_all_that_the_server_gets_and_can_be_allowed_once_only(chat: Chat) -> None:
    server = friendly()
    await chat.turn_on(server)

    record = await chat.call("friendly__add", a=2, b=40)

    [request] = chat.asked
    assert (record.result, record.consent) == ("42", "once")
    assert request.details == f'Tool: add\nRuns: {server.config.command_line}\n\n{{\n  "a": 2,\n  "b": 40\n}}'
    assert request.choices == ("once", "refuse")
    assert request.sentence == "Friendly: add asks for your consent."


async def test_progress_that_a_server_reports_is_shown_while_the_call_runs(chat: Chat) -> None:
    await chat.turn_on(friendly())
    seen: list[str] = []
    chat.toolbox.progress.subscribe(lambda progress: seen.append(progress.text if progress is not None else ""))

    record = await chat.call("friendly__slow", steps=2)

    assert record.result == "done"
    assert seen == ["50% · step 1", "100% · step 2", ""]


async def test_name_of_a_tool_looks_like_no_other_line_of_what_is_asked(chat: Chat) -> None:
    server = hostile("lines")
    await chat.turn_on(server)
    [tool] = chat.toolbox.added.value

    await chat.call(tool.name)

    [request] = chat.asked
    shown = "add<U+000A>Runs: a calculator<U+000A><U+000A>{}"
    assert request.details == f"Tool: {shown}\nRuns: {server.config.command_line}\n\n{{}}"


async def test_refused_call_never_reaches_the_server(chat: Chat, tmp_path: Path) -> None:
    await chat.turn_on(friendly())
    chat.decision = "refuse"
    note = tmp_path / "note"

    record = await chat.call("friendly__wait", path=str(note))

    assert record.consent == "refused"
    assert (await chat.call("friendly__add", a=1, b="one")).error == "b: 'one' is not of type 'integer'"
    assert len(chat.asked) == 1, "nobody is asked about arguments that don't fit"
    chat.decision = "once"
    assert (await chat.call("friendly__add", a=1, b=1)).result == "2"
    assert not await asyncio.to_thread(note.exists)


async def test_failure_of_a_tool_is_the_error_of_the_call(chat: Chat) -> None:
    await chat.turn_on(friendly())
    record = await chat.call("friendly__fail")
    assert "The printer is on fire." in record.error
    assert not record.result


async def test_server_ends_what_was_always_allowed(chat: Chat) -> None:
    """Its descriptions and results are texts of others, which may say what to do with the tools of the app."""
    chat.decision = "always"
    assert (await chat.call("edit_file", path="a.txt", old="", new="1")).consent == "always"
    assert (await chat.call("edit_file", path="b.txt", old="", new="1")).consent == "always"
    assert len(chat.asked) == 1
    await chat.turn_on(hostile("obeyed"))
    chat.decision = "once"

    assert "IGNORE ALL EARLIER INSTRUCTIONS" in (await chat.call("hostile__go")).result
    chat.decision = "refuse"
    record = await chat.call("edit_file", path="c.txt", old="", new="1")

    assert record.consent == "refused"
    assert chat.asked[-1].call.name == "edit_file"
    assert chat.asked[-1].choices == ("once", "refuse")
