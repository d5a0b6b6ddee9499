"""The servers that the user added: what each is and has, and where others were found."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from qwendesk.core.app_options import AppOptions
from qwendesk.core.errors import BadRequest, QwenDeskError
from qwendesk.core.observed import Observed
from qwendesk.core.translation import tr
from qwendesk.engine.contract import EngineClient
from qwendesk.hub.access_tokens import delete_token, load_token, save_token
from qwendesk.remote.addresses import certificate_fingerprint, is_own_server, is_private_address, read_address
from qwendesk.remote.servers import RemoteServer, ServerList

if TYPE_CHECKING:
    from qwendesk.remote.inspection import ModelOnServer
    from qwendesk.remote.loaded_models import HeldModel

_logger = logging.getLogger(__name__)

Search = Literal["", "pc", "network"]
# Calls a function with each server that it finds.
Find = Callable[[Callable[[RemoteServer], None]], Coroutine[Any, Any, None]]


class ListedServer(msgspec.Struct, frozen=True):
    """A server of the list, with what it said last."""

    server: RemoteServer
    models: "tuple[ModelOnServer, ...]" = ()
    is_asking: bool = False
    has_answered: bool = False
    problem: str = ""


class UntrustedServer(msgspec.Struct, frozen=True):
    """A server whose certificate the system doesn't trust, for the user to decide."""

    server: RemoteServer
    key: str
    certificate: str
    fingerprint: str


class RemoteState(msgspec.Struct, frozen=True):
    servers: tuple[ListedServer, ...] = ()
    found: tuple[RemoteServer, ...] = ()
    """Servers that were found and are not in the list."""
    searching: Search = ""
    has_searched: Search = ""
    """The last search that ended."""
    untrusted: UntrustedServer | None = None
    problem: str = ""
    """Reason why the last address could not be added, or the list not be saved."""
    is_adding: bool = False


class RemoteService:
    """Owns the list. Methods are called on the event loop's thread."""

    def __init__(
        self,
        app: Observed[AppOptions],
        own_addresses: Observed[tuple[str, ...]] | None = None,
        servers: ServerList | None = None,
    ) -> None:
        """`own_addresses` are those of this app's server, which it must not use itself."""
        self._app, self._own_addresses = app, own_addresses or Observed[tuple[str, ...]](())
        self._list = servers or ServerList()
        self.state = Observed(RemoteState(tuple(map(ListedServer, self._list.read()))))
        self._search: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    def client(self) -> EngineClient:
        """Return a new client for the models of the servers."""
        from qwendesk.remote.client import RemoteClient

        return RemoteClient(self.find_server, load_token)

    def find_server(self, address: str) -> RemoteServer:
        """Return the server of the list, or a new one. Raises BadRequest if it may not be used."""
        self._check(address)
        listed = self._listed(address)
        return listed.server if listed is not None else RemoteServer(address)

    async def add(self, address: str, key: str = "", name: str = "") -> bool:
        """Ask the server at an address and add it to the list. Return whether that worked.

        If not, the state has the problem, or the certificate to decide on.
        """
        try:
            server = RemoteServer(read_address(address), name.strip())
            self._check(server.address)
        except BadRequest as error:
            self.state.update(problem=error.sentence)
            return False
        return await self._add(server, key.strip())

    async def trust(self) -> bool:
        """Add the server whose certificate was shown, and trust it for this address."""
        untrusted = self.state.value.untrusted
        if untrusted is None:
            return False
        self.state.update(untrusted=None)
        server = msgspec.structs.replace(untrusted.server, certificate=untrusted.certificate)
        return await self._add(server, untrusted.key)

    def distrust(self) -> None:
        """Drop the server whose certificate was shown."""
        self.state.update(untrusted=None)

    async def refresh(self, address: str) -> None:
        """Ask a server of the list again."""
        from qwendesk.remote.connection import Connection

        listed = self._listed(address)
        if listed is None or listed.is_asking:
            return
        self._set(msgspec.structs.replace(listed, is_asking=True, problem=""))
        try:
            self._check(address)
            key = await asyncio.to_thread(load_token, address)
            connection = Connection(listed.server, key)
            try:
                answered = await _ask(connection)
            finally:
                await connection.close()
        except QwenDeskError as error:
            answered = ListedServer(listed.server, problem=error.sentence, has_answered=listed.has_answered)
        now = self._listed(address)
        if now is None:
            return  # it was removed meanwhile
        server = msgspec.structs.replace(now.server, kind=answered.server.kind)  # its name may be another by now
        self._set(msgspec.structs.replace(answered, server=server))
        if server != now.server:
            await self._save()

    async def refresh_all(self) -> None:
        """Ask all servers of the list at the same time."""
        await asyncio.gather(*(self.refresh(each.server.address) for each in self.state.value.servers))

    async def rename(self, address: str, name: str) -> None:
        """Give a server of the list a name; "" for the one that it has without the user."""
        listed = self._listed(address)
        if listed is not None:
            self._set(msgspec.structs.replace(listed, server=msgspec.structs.replace(listed.server, name=name.strip())))
            await self._save()

    async def remove(self, address: str) -> None:
        """Remove a server from the list, and its key from the keyring."""
        servers = tuple(each for each in self.state.value.servers if each.server.address != address)
        self.state.update(servers=servers)
        await asyncio.to_thread(delete_token, address)
        await self._save()

    def search(self, where: Literal["pc", "network"]) -> None:
        """Look for servers on this PC or in the local network. What is found shows in the state."""
        self.stop_search()
        self.state.update(searching=where, found=(), has_searched="")
        self._search = self._start(self._run_search(where))

    def stop_search(self) -> None:
        if self._search is not None:
            self._search.cancel()
            self._search = None
            self.state.update(searching="")

    async def models_in_memory(self) -> "tuple[HeldModel, ...]":
        """Return the models that Ollama and LM Studio hold on this PC. Asks nothing outside of it."""
        await asyncio.to_thread(_import_senders)
        from qwendesk.remote.loaded_models import find_loaded

        return await find_loaded([each.server for each in self.state.value.servers], load_token)

    async def unload(self, model: "HeldModel") -> str:
        """Have its program unload a model. Return why that failed; "" if it worked."""
        await asyncio.to_thread(_import_senders)
        from qwendesk.remote.loaded_models import unload

        return await unload(model, load_token)

    async def close(self) -> None:
        self.stop_search()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _add(self, server: RemoteServer, key: str) -> bool:
        from qwendesk.remote.connection import Connection, fetch_certificate
        from qwendesk.remote.errors import ServerError

        self.state.update(is_adding=True, problem="", untrusted=None)
        try:
            connection = Connection(server, key)
            try:
                answered = await _ask(connection)
            finally:
                await connection.close()
        except ServerError as error:
            if not error.untrusted:
                self.state.update(problem=error.sentence)
                return False
            try:
                certificate = await fetch_certificate(server.address)
            except ServerError as unfetched:
                self.state.update(problem=unfetched.sentence)
                return False
            shown = UntrustedServer(server, key, certificate, certificate_fingerprint(certificate))
            self.state.update(untrusted=shown)
            return False
        except QwenDeskError as error:
            self.state.update(problem=error.sentence)
            return False
        finally:
            self.state.update(is_adding=False)
        if key:
            await asyncio.to_thread(save_token, server.address, key)
        others = tuple(each for each in self.state.value.servers if each.server.address != server.address)
        found = tuple(each for each in self.state.value.found if each.address != server.address)
        self.state.update(servers=(*others, answered), found=found)
        await self._save()
        return True

    async def _run_search(self, where: Literal["pc", "network"]) -> None:
        await asyncio.to_thread(_import_senders)
        from qwendesk.remote.finding import find_in_network, find_on_this_pc

        find: Find = find_on_this_pc if where == "pc" else find_in_network
        try:
            await find(self._note_found)
        except Exception:
            _logger.exception("Looking for servers failed")
        self.state.update(searching="", has_searched=where)

    def _note_found(self, server: RemoteServer) -> None:
        known = {each.server.address for each in self.state.value.servers}
        known |= {each.address for each in self.state.value.found}
        if server.address not in known and not is_own_server(server.address, self._own_addresses.value):
            self.state.update(found=(*self.state.value.found, server))

    def _check(self, address: str) -> None:
        if is_own_server(address, self._own_addresses.value):
            raise BadRequest(
                tr("That is this app"), tr("{0} is the server of this app. It already uses its own models.", address)
            )
        if self._app.value.offline and not is_private_address(address):
            raise BadRequest(
                tr("Offline"), tr("QwenDesk is set to offline, and {0} is on the internet. Nothing was sent.", address)
            )

    def _listed(self, address: str) -> ListedServer | None:
        return next((each for each in self.state.value.servers if each.server.address == address), None)

    def _set(self, listed: ListedServer) -> None:
        address = listed.server.address
        servers = (listed if each.server.address == address else each for each in self.state.value.servers)
        self.state.update(servers=tuple(servers))

    async def _save(self) -> None:
        servers = tuple(each.server for each in self.state.value.servers)
        try:
            await asyncio.to_thread(self._list.write, servers)
        except OSError as error:
            reason = error.strerror or str(error)
            self.state.update(problem=tr("The list of servers couldn't be saved: {0}.", reason))

    def _start(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


async def _ask(connection: Any) -> ListedServer:
    """Return what a server is and has. Raises ServerError."""
    from qwendesk.remote.inspection import find_kind, list_models

    kind = await find_kind(connection)
    connection.server = server = msgspec.structs.replace(connection.server, kind=kind)
    return ListedServer(server, await list_models(connection, kind), has_answered=True)


def _import_senders() -> None:
    """Import what sends requests. On a thread, because the window would wait a twentieth of a second for it."""
    import qwendesk.remote.finding
    import qwendesk.remote.loaded_models  # noqa: F401
