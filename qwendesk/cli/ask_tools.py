"""The tools of `qwendesk ask`: which are on, and which calls run."""

import asyncio
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from qwendesk.cli.terminal import Terminal, check_text
from qwendesk.core.chats import ChatSettings
from qwendesk.core.errors import BadOption
from qwendesk.core.messages import CallRecord, ToolCall
from qwendesk.core.tool_context import CallContext, ConsentRequest
from qwendesk.core.translation import tr
from qwendesk.mcp.server_config import server_list_file
from qwendesk.mcp.service import McpService
from qwendesk.mcp.tools import join_servers, server_switch
from qwendesk.settings.service import SettingsService
from qwendesk.toolbox.builtin import builtin_tools
from qwendesk.toolbox.knowledge.folder_indexes import FolderIndexes, SearchedFolder, States
from qwendesk.toolbox.service import ToolService
from qwendesk.toolbox.shown_text import with_codes
from qwendesk.toolbox.tool import Tool

_NOT_ALLOWED = "This call needs the user's consent, which was not given."
_NOTE_EVERY_S = 3.0


class AskTools(msgspec.Struct, frozen=True):
    """The tools that `--tools` names."""

    names: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    yes: bool = False
    """Run calls without asking, apart from those that send something out."""

    def applied(self, settings: ChatSettings) -> ChatSettings:
        return msgspec.structs.replace(settings, tools=self.names, tool_folders=self.folders)


def read_tools(text: str, *, yes: bool) -> AskTools:
    """Read the value of `--tools`, such as "files:FOLDER,calculator,clock". Raise BadOption."""
    by_name: dict[str, list[str]] = {}
    for tool in builtin_tools():
        if tool.command_name:
            by_name.setdefault(tool.command_name, []).append(tool.name)
    names: list[str] = []
    folders: list[str] = []
    for item in filter(None, (part.strip() for part in text.split(","))):
        kind, _, folder = item.partition(":")
        if kind == "mcp":
            names.append(_switch_of(folder))
            continue
        if kind not in by_name:
            shown = ("files:FOLDER" if each == "files" else each for each in by_name)
            known = ", ".join((*shown, "mcp:NAME"))
            raise BadOption(tr("Unknown tool"), tr('There is no tool "{0}". Known tools: {1}.', kind, known))
        if kind == "files":
            check_text(folder, tr("A folder's path"))
            if not folder or not Path(folder).is_dir():
                raise BadOption(tr("Folder not found"), tr('"{0}" is not a folder. Write files:FOLDER.', folder))
            folders.append(str(Path(folder).absolute()))
        names += [name for name in by_name[kind] if name not in names]
    return AskTools(tuple(names), tuple(folders), yes)


def _switch_of(server: str) -> str:
    """Return what turns on the MCP server with this name. Raise BadOption."""
    servers = [each for each in server_list_file().read().servers if each.is_on]
    for each in servers:
        if each.name.casefold() == server.casefold():
            return server_switch(each.id)
    known = ", ".join(each.name for each in servers) or tr("none")
    raise BadOption(
        tr("Server not found"), tr('There is no MCP server "{0}" that is on. Your servers: {1}.', server, known)
    )


class CommandLineTools:
    """The chat's tools on the command line, where every call is shown and needs `--yes` or a typed answer.

    `--yes` is no consent to send something out: a script would send whatever a page or a file told the model to send.
    """

    def __init__(
        self,
        chosen: AskTools,
        terminal: Terminal,
        ask: Callable[[str], str] | None,
        tools: Sequence[Tool] | None = None,
    ) -> None:
        """`ask` shows a question and returns what was typed; None if nobody can type. `tools` replaces the app's."""
        self._indexes = FolderIndexes(wait_s=None)
        options = SettingsService().state
        tools = builtin_tools(self._indexes, app=options) if tools is None else tools
        self._service, self._chosen, self._terminal = ToolService(tools), chosen, terminal
        self._mcp = McpService(options)
        join_servers(self._mcp, self._service)
        self._ask = ask
        self._preparing: asyncio.Future[tuple[list[SearchedFolder], None]] | None = None
        self._service.waiting.subscribe(self._on_request)

    async def prepare(self) -> None:
        """Start the servers, and read the folders that are new or have changed. Say how far that is."""
        began_s = last_s = time.monotonic()

        def show(states: States) -> None:
            nonlocal last_s
            now_s = time.monotonic()
            reading = [state for state in states.values() if state.phase == "reading"]
            if reading and min(now_s - began_s, now_s - last_s) > _NOTE_EVERY_S:
                last_s = now_s
                self._terminal.note(tr("Reading {0}: {1}%", reading[0].folder, round(100 * reading[0].fraction)))

        end = self._indexes.states.subscribe(show)
        self._preparing = asyncio.gather(self._indexes.updated(self._chosen.folders), self._start_servers())
        await asyncio.wait((self._preparing,))
        end()

    def stop(self) -> None:
        """Don't read folders or start servers any further."""
        if self._preparing is not None:
            self._preparing.cancel()

    async def close(self) -> None:
        self.stop()
        await self._indexes.close()
        await self._mcp.close()

    def definitions(self, settings: ChatSettings) -> tuple[str, ...]:
        return self._service.definitions(settings)

    def taints(self, tool: str) -> bool:
        return self._service.taints(tool)

    def reads_descriptions(self, settings: ChatSettings) -> bool:
        return self._service.reads_descriptions(settings)

    async def run(self, call: ToolCall, context: CallContext) -> CallRecord:
        tool = self._service.tools.get(call.name)
        will_ask = tool is not None and tool.effect not in ("nothing", "reads")
        if will_ask and self._ask is None:
            self._terminal.note(tr("{0} was not run, because it asks each time and nobody can be asked.", call.name))
        elif will_ask or self._chosen.yes or self._is_allowed_by_hand(call):
            return await self._service.run(call, context)
        return CallRecord(call, is_done=True, error=_NOT_ALLOWED)

    async def _start_servers(self) -> None:
        """Start the servers that are on, which may have changed what they offer, and say why one doesn't run."""
        for server in self._mcp.state.value.servers:
            if server_switch(server.config.id) in self._chosen.names:
                await self._mcp.test(server.config.id)
        for server in self._mcp.state.value.servers:
            if server.problem:
                self._terminal.note(server.problem)

    def _is_allowed_by_hand(self, call: ToolCall) -> bool:
        if self._ask is None:
            self._terminal.note(tr("{0} was not run. Add --yes to allow the tools that --tools names.", call.name))
            return False
        return _is_yes(self._ask(tr("Run {0} {1}? [y/N]", call.name, call.arguments_json)))

    def _on_request(self, request: ConsentRequest | None) -> None:
        """Ask about a call whose effect needs consent, with all that it would do."""
        if request is None or self._ask is None:
            return
        is_allowed = False
        try:
            is_allowed = _is_yes(self._ask(f"{request.details}\n{tr('Run {0}? [y/N]', request.call.name)}"))
        finally:
            self._service.decide(request, "once" if is_allowed else "refuse")


def _is_yes(answer: str) -> bool:
    return answer.strip().lower() in ("y", "yes")


def typed_answer() -> Callable[[str], str] | None:
    """Return what asks on the terminal, or None if the input isn't one."""
    if not sys.stdin or not sys.stdin.isatty():
        return None

    def ask(question: str) -> str:
        # A name or arguments that a model wrote could control the terminal, or hide a part of themselves.
        print(with_codes(question), end=" ", file=sys.stderr, flush=True)
        return sys.stdin.readline()

    return ask
