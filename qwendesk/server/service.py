"""ServerService: starts and stops the server."""

import asyncio
import errno
import ipaddress
import socket
import ssl
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from qwendesk.core import paths
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.observed import Observed
from qwendesk.core.translation import tr
from qwendesk.engine.contract import EngineClient
from qwendesk.server.access import Access, ServerKey, read_keys
from qwendesk.server.answering import Answering, FairQueue, MakeOptions, served_options
from qwendesk.server.certificates import Certificate, host_names, network_hosts, own_certificate
from qwendesk.server.clips import ServedClips
from qwendesk.server.refusals import Limits
from qwendesk.server.requests import RequestLog
from qwendesk.server.served_models import ServedModels

if TYPE_CHECKING:
    from aiohttp import web

    from qwendesk.server.http_app import HttpApp

USUAL_PORT = 8765
ANY_HOST = "0.0.0.0"
# How long the end waits for connections to be closed.
_STOP_S = 2.0


class PortNotUsable(QwenDeskError):
    """The port is taken by another program, or not allowed."""


class ServerOptions(msgspec.Struct, frozen=True, kw_only=True):
    host: str = "127.0.0.1"
    port: int = USUAL_PORT
    """0 takes a free one."""
    key_file: Path | None = None
    """None for the one in the app's folder of settings."""
    origins: tuple[str, ...] = ()
    """Web pages that may use the server, as browsers name them."""
    certificate: Certificate | None = None
    """None makes one where one is needed."""
    most_waiting: int = 16
    """Maximum number of requests that wait for their turn; further ones are refused."""
    ffmpeg_folder: str = ""
    """Where ffmpeg is looked for first."""
    network_port: int | None = None
    """The port at which other PCs reach the server too, always with TLS; None lets none in."""

    @property
    def needs_certificate(self) -> bool:
        """Whether other PCs could reach the server, so that keys and texts must not travel in plain text."""
        if self.host == "localhost":
            return False
        try:
            return not ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return True

    @property
    def lets_others_in(self) -> bool:
        return self.needs_certificate or self.network_port is not None


class ServerState(msgspec.Struct, frozen=True):
    address: str = ""
    """Such as "http://127.0.0.1:8765"; "" while the server is off."""
    keys: tuple[ServerKey, ...] = ()
    fingerprint: str = ""
    """SHA-256 of the certificate; "" without TLS."""
    certificate_file: str = ""
    """The certificate as PEM, for PCs that are to trust it; "" without TLS."""
    network_addresses: tuple[str, ...] = ()
    """The addresses for other PCs that `network_port` made."""

    @property
    def is_on(self) -> bool:
        return bool(self.address)

    @property
    def addresses(self) -> tuple[str, ...]:
        """All addresses at which the server is reached; none while it is off."""
        return (self.address, *self.network_addresses) if self.is_on else ()


class ServerService:
    """One server on the loaded model. Call its methods on the event loop's thread."""

    def __init__(
        self,
        client: EngineClient,
        models: ServedModels,
        make_options: MakeOptions = served_options,
        *,
        limits: Limits | None = None,
        addresses: Observed[tuple[str, ...]] | None = None,
    ) -> None:
        """`addresses` is told all addresses at which the server is reached."""
        self._addresses = addresses or Observed[tuple[str, ...]](())
        self._client, self._make_options, self._limits = client, make_options, limits or Limits()
        self.models = models
        self.observed = Observed(ServerState())
        self.requests = RequestLog()
        self._app: HttpApp | None = None
        self._runner: web.AppRunner | None = None
        self._listeners: list[asyncio.Server] = []
        self._lock = asyncio.Lock()

    @property
    def state(self) -> ServerState:
        return self.observed.value

    def serve_models(self, models: ServedModels) -> None:
        """Serve these models from the next start of the server on."""
        self.models = models

    def allow_origins(self, origins: tuple[str, ...]) -> None:
        """Let these web pages use the server that runs. Its next start takes those of its options."""
        if self._app is not None:
            self._app.allow_origins(origins)

    async def start(self, options: ServerOptions) -> ServerState:
        """Start the server, after stopping the one that runs. Raise QwenDeskError if that isn't possible."""
        async with self._lock:
            await self._stop()
            try:
                self._set(await self._start(options))
            except BaseException:  # also if the caller is cancelled: nothing listens then
                await self._stop()
                raise
            return self.state

    async def stop(self) -> None:
        """Stop the server and all its answers, even if the caller is cancelled meanwhile."""
        async with self._lock:
            await self._stop()

    async def close(self) -> None:
        await self.stop()

    async def _start(self, options: ServerOptions) -> ServerState:
        keys = await asyncio.to_thread(read_keys, options.key_file or default_key_file())
        certificate = await asyncio.to_thread(_certificate, options)
        context = None if certificate is None else await asyncio.to_thread(certificate.context)
        fingerprint = "" if certificate is None else await asyncio.to_thread(certificate.fingerprint)
        app = self._app = self._make_app(options, keys)
        self._runner = app.runner(shutdown_s=_STOP_S)
        await self._runner.setup()
        main = context if options.certificate is not None or options.needs_certificate else None
        port = await self._open(app, options.host, options.port, main)
        if options.network_port is not None:
            await self._open(app, ANY_HOST, options.network_port, context)
        host = f"[{options.host}]" if ":" in options.host else options.host
        return ServerState(
            f"{'http' if main is None else 'https'}://{host}:{port}",
            keys,
            fingerprint,
            "" if certificate is None else str(certificate.file),
            await asyncio.to_thread(_network_addresses, options.network_port),
        )

    async def _stop(self) -> None:
        self.requests.stop_all()
        listeners, self._listeners = self._listeners, []
        for listener in listeners:
            listener.close()
        runner, self._runner, self._app = self._runner, None, None
        try:
            if runner is not None:
                await asyncio.shield(runner.cleanup())
        finally:
            self._set(ServerState())

    def _set(self, state: ServerState) -> None:
        self._addresses.set(state.addresses)
        self.observed.set(state)

    def _make_app(self, options: ServerOptions, keys: tuple[ServerKey, ...]) -> "HttpApp":
        from qwendesk.server.http_app import HttpApp

        queue, clips = FairQueue(options.most_waiting), ServedClips(options.ffmpeg_folder)
        answering = Answering(self._client, self.models, queue, self._make_options, clips)
        names = (options.host.lower(), *host_names()) if options.lets_others_in else ()
        access = Access(keys, names, options.origins)
        return HttpApp(answering, self.models, access, self.requests, self._limits)

    async def _open(self, app: "HttpApp", host: str, port: int, context: ssl.SSLContext | None) -> int:
        """Serve at a port, and return it: it may have been 0. Raise QwenDeskError if that isn't possible."""
        assert self._runner is not None, "the runner is made"
        assert self._runner.server is not None, "the runner is set up"
        connect = partial(app.connect, self._runner.server)
        try:
            loop = asyncio.get_running_loop()
            family, kind, protocol, _, address = (await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM))[0]
            listener = _listen(socket.socket(family, kind, protocol), address)
            server = await loop.create_server(connect, sock=listener, ssl=context, start_serving=False)
            self._listeners.append(server)
            await server.start_serving()
        except OSError as error:
            raise _not_started(host, port, error) from error
        return int(listener.getsockname()[1])


def default_key_file() -> Path:
    return paths.config_folder() / "server.key"


def _certificate(options: ServerOptions) -> Certificate | None:
    """Return the certificate to use; None where none is needed. Blocks. Raise QwenDeskError."""
    if options.certificate is not None or not options.lets_others_in:
        return options.certificate
    try:
        return own_certificate(paths.config_folder() / "server", options.host)
    except (OSError, ImportError) as error:
        sentence = tr("No certificate could be made: {0}. Give one with --certificate and --certificate-key.", error)
        raise QwenDeskError(tr("Certificate missing"), sentence) from error


def _network_addresses(port: int | None) -> tuple[str, ...]:
    """Return the addresses by which other PCs reach that port: this PC's name and its numbers. Blocks."""
    if port is None:
        return ()
    return tuple(f"https://{host}:{port}" for host in (*host_names()[:1], *network_hosts()))


def _listen(listener: socket.socket, address: tuple[Any, ...]) -> socket.socket:
    """Return the socket once it listens at `address`; close it and raise OSError if that fails."""
    try:
        if sys.platform == "win32":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        else:  # otherwise the port of a server that was stopped is taken for a minute, by connections that it closed
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(128)
        listener.setblocking(False)
    except OSError:
        listener.close()
        raise
    return listener


def _not_started(host: str, port: int, error: OSError) -> QwenDeskError:
    if error.errno in (errno.EADDRINUSE, errno.EACCES):
        sentence = tr(
            "Port {0} is taken by another program or not allowed. Choose another one; 0 takes a free one.", port
        )
        return PortNotUsable(tr("The server didn't start"), sentence)
    sentence = tr("{0} can't be used: {1}. Use 127.0.0.1, or an address of this PC.", host, error.strerror)
    return QwenDeskError(tr("The server didn't start"), sentence)
