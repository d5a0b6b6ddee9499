"""The connection to the Hub, made from the app's options, and the access token."""

import asyncio
import threading
from collections.abc import Awaitable, Callable

import msgspec

from qwendesk.core.app_options import AppOptions
from qwendesk.core.observed import Observed, Unsubscribe
from qwendesk.core.translation import tr
from qwendesk.hub.access_tokens import TokenPlace, delete_token, load_token, save_token, token_place
from qwendesk.hub.network import HubError, Network, endpoint_from_environment
from qwendesk.hub.remote import Hub
from qwendesk.settings.service import SettingsService


class NetworkOptions(msgspec.Struct, frozen=True):
    """The app's options about the network."""

    endpoint: str
    proxy: str
    is_offline: bool
    limit_bytes_per_s: int
    """Of all downloads together; 0 means no limit."""
    token_version: int = 0
    """Increases with each change of the token."""

    @property
    def host(self) -> str:
        return Network(self.endpoint).host


class TokenTest(msgspec.Struct, frozen=True):
    """The result of testing or saving the token."""

    is_good: bool
    sentence: str


class TokenState(msgspec.Struct, frozen=True):
    """The storage place of the token for `host`, and the result of the last test."""

    host: str
    """The only host that the token is sent to."""
    place: TokenPlace = "nowhere"
    test: TokenTest | None = None


class NetworkService:
    """Owns the connection settings. `hub` may be called on any thread, everything else on the event loop's."""

    def __init__(self, settings: SettingsService) -> None:
        self._settings = settings
        self.connections = Observed(_connection_of(settings.options, 0))
        self._one_maker = threading.Lock()
        self._made: tuple[NetworkOptions, Hub] | None = None
        self._unsubscribe = settings.subscribe(self._on_options)

    @property
    def connection(self) -> NetworkOptions:
        return self.connections.value

    def subscribe_host(self, callback: Callable[[str], None]) -> Unsubscribe:
        """Call `callback` with the host of the Hub whenever it changes; return a function that ends this."""
        return self.connections.subscribe_field(lambda connection: connection.host, callback)

    def hub(self) -> Hub:
        """Return a Hub with the current connection settings. Reads the keyring, which may block; connects to nothing.

        Call it again for each piece of work. After the switch to offline an older Hub refuses all requests, and drops
        the answer to a running one.
        """
        with self._one_maker:
            wanted = msgspec.structs.replace(self.connection, limit_bytes_per_s=0)
            if self._made is None or self._made[0] != wanted:
                self._made = (wanted, self._new_hub(wanted))
            return self._made[1]

    def without_token(self) -> Network:
        """Return the network for connections to other hosts than the Hub. May be called on any thread."""
        now = self.connection
        return Network(endpoint=now.endpoint, proxy=now.proxy, offline=now.is_offline)

    def page_of(self, repo: str) -> str:
        """Return the address of the repository for a browser."""
        return f"{self.connection.endpoint}/{repo}"

    def go_online(self) -> None:
        """Switch the option "offline" off."""
        self._settings.change({"offline": False})

    def note_new_token(self) -> None:
        """Make new connections with the token that was saved or deleted just now."""
        now = self.connection
        self._set(msgspec.structs.replace(now, token_version=now.token_version + 1))

    def close(self) -> None:
        """Stop following the options."""
        self._unsubscribe()

    def _on_options(self, options: AppOptions) -> None:
        self._set(_connection_of(options, self.connection.token_version))

    def _set(self, connection: NetworkOptions) -> None:
        if connection.is_offline and connection != self.connection:
            from qwendesk.hub.http_client import drop_connections

            drop_connections()
        # Not under the lock, because its holder may be waiting for the keyring.
        self.connections.set(connection)

    def _new_hub(self, connection: NetworkOptions) -> Hub:
        network = Network(
            endpoint=connection.endpoint,
            token="" if connection.is_offline else load_token(connection.host),
            proxy=connection.proxy,
            offline=connection.is_offline,
        )
        return Hub(network, lambda: self.connection.is_offline)


class TokenService:
    """The access token for the Hub. Call its methods on the event loop's thread."""

    def __init__(self, network: NetworkService) -> None:
        self._network = network
        self.state = Observed(TokenState(network.connection.host))

    async def update(self) -> None:
        """Look up where the token for the current host is saved."""
        host = self._network.connection.host
        place = await asyncio.to_thread(token_place, host)
        if host == self._network.connection.host:
            self.state.update(host=host, place=place)

    async def save(self, token: str) -> None:
        """Save `token` in the system's keyring, or in a file that only this user can read."""
        await self._change(asyncio.to_thread(save_token, self._network.connection.host, token.strip()))

    async def delete(self) -> None:
        """Delete the saved token. A token in the environment (HF_TOKEN) stays."""
        await self._change(asyncio.to_thread(delete_token, self._network.connection.host))

    async def test(self) -> None:
        """Ask the Hub which account the token belongs to."""
        try:
            name = await asyncio.to_thread(lambda: self._network.hub().account())
        except HubError as trouble:
            self.state.update(test=TokenTest(is_good=False, sentence=trouble.sentence))
            return
        sentence = tr("Signed in to {0} as {1}.", self._network.connection.host, name)
        self.state.update(test=TokenTest(is_good=True, sentence=sentence))

    async def _change(self, work: Awaitable[object]) -> None:
        self.state.update(test=None)
        try:
            await work
        except OSError as error:
            sentence = tr("The token couldn't be saved: {0}.", error.strerror or error)
            self.state.update(test=TokenTest(is_good=False, sentence=sentence))
            return
        self._network.note_new_token()
        await self.update()


def _connection_of(options: AppOptions, token_version: int) -> NetworkOptions:
    return NetworkOptions(
        endpoint=options.hub_endpoint.rstrip("/") or endpoint_from_environment(),
        proxy=options.proxy,
        is_offline=options.offline,
        limit_bytes_per_s=options.download_limit_bytes_per_s,
        token_version=token_version,
    )
