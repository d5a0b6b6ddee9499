"""How the app reaches the Hub: made from the app's options and the token, changed while it runs."""

import asyncio
import threading
from collections.abc import Callable

import msgspec

from qwendesk.core.app_options import AppOptions
from qwendesk.core.subscribers import Subscribers
from qwendesk.core.units import MIB
from qwendesk.hub.network import HubTrouble, Network, drop_connections, endpoint_from_environment
from qwendesk.hub.remote import Hub
from qwendesk.hub.token import TokenPlace, delete_token, load_token, save_token, token_place
from qwendesk.services.settings import SettingsService


class Connection(msgspec.Struct, frozen=True):
    """What the options say of the network; the token is no part of it."""

    endpoint: str
    proxy: str
    is_offline: bool
    limit_bytes_per_s: int
    """Of all downloads together; 0 is no limit."""
    token_version: int = 0
    """Another number after each change of the token."""

    @property
    def host(self) -> str:
        return Network(self.endpoint).host


class TokenTest(msgspec.Struct, frozen=True):
    """What the Hub said about the saved token."""

    is_good: bool
    sentence: str


class NetworkService:
    """Owns the connection settings. `hub` is for any thread; everything else for the event loop's."""

    def __init__(self, settings: SettingsService) -> None:
        self._connection = _connection_of(settings.options, 0)
        self._one_maker = threading.Lock()
        self._made: tuple[Connection, Hub] | None = None
        self._subscribers = Subscribers[Connection]()
        self._unsubscribe = settings.subscribe(self._on_options)

    @property
    def connection(self) -> Connection:
        return self._connection

    def subscribe(self, callback: Callable[[Connection], None]) -> Callable[[], None]:
        """Call `callback` each time the connection is to be another. Returns what ends it."""
        return self._subscribers.add(callback)

    def hub(self) -> Hub:
        """The Hub as it is to be reached now. Blocks while the keyring is asked; makes no connection.

        Ask again for each piece of work. One made before the switch to offline refuses from then on: its next request,
        and the answer to one under way.
        """
        with self._one_maker:
            wanted = msgspec.structs.replace(self._connection, limit_bytes_per_s=0)
            if self._made is None or self._made[0] != wanted:
                self._made = (wanted, self._new_hub(wanted))
            return self._made[1]

    def without_token(self) -> Network:
        """As connections to others than the Hub are to be made now. For any thread."""
        now = self._connection
        return Network(endpoint=now.endpoint, proxy=now.proxy, offline=now.is_offline)

    async def token_place(self) -> TokenPlace:
        """Where the token for the present endpoint is kept."""
        return await asyncio.to_thread(token_place, self._connection.host)

    async def save_token(self, token: str) -> TokenPlace:
        """Keep `token` for the present endpoint: in the system's keyring, or in a file only this user can read.

        Raises OSError when neither takes it.
        """
        await asyncio.to_thread(save_token, self._connection.host, token.strip())
        self._change(_newer_token(self._connection))
        return await self.token_place()

    async def delete_token(self) -> TokenPlace:
        """Forget it. One of the environment (HF_TOKEN) stays."""
        await asyncio.to_thread(delete_token, self._connection.host)
        self._change(_newer_token(self._connection))
        return await self.token_place()

    async def test_token(self) -> TokenTest:
        """Ask the Hub whose the token is."""
        try:
            name = await asyncio.to_thread(lambda: self.hub().account())
        except HubTrouble as trouble:
            return TokenTest(is_good=False, sentence=trouble.sentence)
        return TokenTest(is_good=True, sentence=f"{self._connection.host} knows you as {name}.")

    def close(self) -> None:
        """No change of the options is followed any more."""
        self._unsubscribe()

    def _on_options(self, options: AppOptions) -> None:
        self._change(_connection_of(options, self._connection.token_version))

    def _change(self, connection: Connection) -> None:
        if connection == self._connection:
            return
        # Never waits for the lock, whose holder may wait for the keyring.
        self._connection = connection
        if connection.is_offline:
            drop_connections()
        self._subscribers.notify(connection)

    def _new_hub(self, connection: Connection) -> Hub:
        network = Network(
            endpoint=connection.endpoint,
            token="" if connection.is_offline else load_token(connection.host),
            proxy=connection.proxy,
            offline=connection.is_offline,
        )
        return Hub(network, lambda: self._connection.is_offline)


def _connection_of(options: AppOptions, token_version: int) -> Connection:
    return Connection(
        endpoint=options.hub_endpoint.rstrip("/") or endpoint_from_environment(),
        proxy=options.proxy,
        is_offline=options.offline,
        limit_bytes_per_s=options.download_limit_mb_s * MIB,
        token_version=token_version,
    )


def _newer_token(connection: Connection) -> Connection:
    return msgspec.structs.replace(connection, token_version=connection.token_version + 1)
