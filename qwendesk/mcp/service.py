"""McpService: all MCP servers of the user, and the tools that they offer."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from qwendesk.core.app_options import AppOptions
from qwendesk.core.observed import Observed
from qwendesk.core.translation import join_list, tr
from qwendesk.mcp.host_connection import McpRefused
from qwendesk.mcp.host_protocol import Answered, Launch, ProgressNote
from qwendesk.mcp.server import McpServerState, RunningMcpServer, ServerProblem
from qwendesk.mcp.server_config import (
    McpServerList,
    NewServer,
    ServerConfig,
    delete_secrets,
    read_secrets,
    save_secrets,
    server_list_file,
)
from qwendesk.mcp.server_tools import ServerTool, all_tools

ResultT = TypeVar("ResultT")


class CallFailed(Exception):
    """A call that came to nothing. The text is for the model."""


class McpState(msgspec.Struct, frozen=True):
    servers: tuple[McpServerState, ...] = ()
    tools: tuple[ServerTool, ...] = ()
    """Of all servers that are on, whether they run or not."""
    problem: str = ""
    """Reason why servers or their secrets can't be saved; "" if they can."""
    are_secrets_in_file: bool = False
    """True if secrets were saved in a file, because there is no usable keyring."""


class McpService:
    """Methods are called on the event loop's thread."""

    def __init__(
        self,
        app: Observed[AppOptions] | None = None,
        *,
        make_server: Callable[..., RunningMcpServer] = RunningMcpServer,
    ) -> None:
        self._app, self._make_server = app or Observed(AppOptions()), make_server
        self._file = server_list_file()
        loaded = self._file.load()
        self._is_locked = loaded.is_locked
        self._servers = {config.id: self._server(config) for config in loaded.value.servers}
        self._saved = loaded.value
        self._writing = asyncio.Lock()
        self._tasks: set[asyncio.Task[Any]] = set()
        problem = ""
        if loaded.renamed_to is not None:
            problem = tr("Your file of MCP servers was damaged. It was renamed to {0}.", loaded.renamed_to.name)
        elif loaded.problem:
            problem = tr("Your file of MCP servers can't be read: {0}.", loaded.reason)
        self.state: Observed[McpState] = Observed(McpState(problem=problem))
        self._update()

    async def add(self, servers: Sequence[NewServer]) -> None:
        """Save new servers with their secrets, and start each once to learn what it offers."""
        self._update(problem="")
        for new in servers:
            await self._save_secrets(new)
            self._servers[new.config.id] = self._server(new.config)
        self._update()
        await self._save()
        for new in servers:
            self._start_soon(self.test(new.config.id))

    async def change(self, server: NewServer) -> None:
        """Replace the settings of a server, which is stopped. Secrets that are not given stay as they are."""
        config = server.config
        old = self._servers[config.id]
        self._update(problem="")
        await old.close()
        gone = set(old.state.config.secret_names) - set(config.secret_names)
        await self._delete_secrets(old.state.config, tuple(gone))
        await self._save_secrets(server)
        self._servers[config.id] = self._server(config)
        self._update()
        await self._save()
        self._start_soon(self.test(config.id))

    async def remove(self, server_id: str) -> None:
        """Stop a server and forget it with its secrets."""
        server = self._servers.pop(server_id)
        self._update(problem="")
        await self._save()
        await server.close()
        await self._delete_secrets(server.state.config, None)

    async def set_on(self, server_id: str, *, on: bool) -> None:
        """Offer the tools of a server to the model, or stop it."""
        server = self._servers[server_id]
        server.set_config(msgspec.structs.replace(server.state.config, is_on=on))
        self._update()
        await self._save()
        if not on:
            await server.stop()

    async def set_tool(self, server_id: str, tool: str, *, on: bool) -> None:
        """Switch one tool of a server on or off, for all chats."""
        server = self._servers[server_id]
        others = tuple(each for each in server.state.config.tools_off if each != tool)
        tools_off = others if on else (*others, tool)
        server.set_config(msgspec.structs.replace(server.state.config, tools_off=tools_off))
        self._update()
        await self._save()

    async def test(self, server_id: str) -> None:
        """Start a server anew. The state says what it offers, or why it can't be started."""
        server = self._servers.get(server_id)
        if server is None:
            return  # it was removed before its turn came
        await server.stop()
        try:
            await server.start(by_user=True)
        except ServerProblem:
            return  # the state says it

    async def secrets(self, server_id: str) -> dict[str, str]:
        """Return the values of a server's variables or headers, by name."""
        return await asyncio.to_thread(read_secrets, self._servers[server_id].state.config)

    async def call(
        self, tool: ServerTool, arguments: Mapping[str, Any], on_progress: Callable[[ProgressNote], None]
    ) -> Answered:
        """Call a tool that the user has allowed as it was then. Raise CallFailed."""
        server = self._servers.get(tool.server_id)
        if server is None:
            raise CallFailed("This server was removed.")
        try:
            await server.start()
            if tool not in self.state.value.tools:
                raise CallFailed(
                    "The server has changed this tool since you were told about it, so it was not run. "
                    "The user must send another message before you can call the changed one."
                )
            listing = tool.listing(arguments, server.state.config.offer)
            if listing:
                return Answered(0, listing)
            return await server.ask(lambda request_id: tool.question(request_id, arguments), on_progress)
        except ServerProblem as error:
            raise CallFailed(str(error)) from error
        except McpRefused as error:
            raise CallFailed(f"The server refused the call: {error}") from error
        except TimeoutError as error:
            raise CallFailed("The server did not answer in time, so the call was cancelled.") from error

    async def close(self) -> None:
        """Stop all servers, and return when their processes are gone."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(server.close() for server in self._servers.values()))
        await self._save()

    def _server(self, config: ServerConfig) -> RunningMcpServer:
        return self._make_server(config, self._launch, self._on_change)

    async def _launch(self, config: ServerConfig) -> Launch:
        if not config.is_local and self._app.value.offline:
            raise ServerProblem(tr("QwenDesk is offline. Turn off Offline in the settings to reach {0}.", config.name))
        secrets = await asyncio.to_thread(read_secrets, config)
        missing = [name for name, value in secrets.items() if not value]
        if missing:
            raise ServerProblem(
                tr("{0} has no value for {1}. Enter it in the server's settings.", config.name, join_list(missing))
            )
        return config.launch(secrets, self._app.value.proxy)

    def _on_change(self, server: RunningMcpServer) -> None:
        if self._servers.get(server.state.config.id) is not server:
            return
        self._update()
        if self._current_list() != self._saved:
            self._start_soon(self._save())

    def _update(self, **changes: object) -> None:
        """Show the servers as they are, with `changes` of the state."""
        servers = tuple(server.state for server in self._servers.values())
        tools = self.state.value.tools
        if [each.config for each in servers] != [each.config for each in self.state.value.servers]:
            tools = all_tools(each.config for each in servers)
        self.state.update(servers=servers, tools=tools, **changes)

    async def _save_secrets(self, server: NewServer) -> None:
        try:
            is_in_keyring = await asyncio.to_thread(save_secrets, server.config, server.secrets)
        except OSError as error:
            reason = error.strerror or str(error)
            self._update(problem=tr("The secrets of {0} couldn't be saved: {1}.", server.config.name, reason))
        else:
            if not is_in_keyring:
                self._update(are_secrets_in_file=True)

    async def _delete_secrets(self, config: ServerConfig, names: Sequence[str] | None) -> None:
        try:
            await asyncio.to_thread(delete_secrets, config, names)
        except OSError as error:
            reason = error.strerror or str(error)
            self._update(problem=tr("The secrets of {0} couldn't be deleted: {1}.", config.name, reason))

    def _current_list(self) -> McpServerList:
        return McpServerList(servers=tuple(server.state.config for server in self._servers.values()))

    async def _save(self) -> None:
        async with self._writing:
            current = self._current_list()
            if current == self._saved:
                return
            if self._is_locked:
                self._update(problem=tr("The servers can't be saved, because the file of servers can't be replaced."))
                return
            try:
                await asyncio.to_thread(self._file.write, current)
            except OSError as error:
                self._update(problem=tr("The servers couldn't be saved: {0}.", error.strerror or str(error)))
            else:
                self._saved = current

    def _start_soon(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
