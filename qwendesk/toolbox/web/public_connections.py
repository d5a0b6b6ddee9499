"""Connections to the Internet alone: each IP address is judged before it is connected to, and the connected one again.

Judging names would not be enough. A name may lead to this PC, and to another address the next time it is looked up.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence

import httpcore2

from qwendesk.toolbox.tool import ToolError
from qwendesk.toolbox.web.address import private_error
from qwendesk.toolbox.web.public_ip import Network, is_public, own_networks

_MOST_TRIED = 4
"""Addresses of one name."""
_CONNECT_S = 5.0
"""For each of them."""

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the IP addresses of a name. Raises OSError."""


async def resolve(host: str, port: int) -> Sequence[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(dict.fromkeys(str(address[0]) for *_, address in found))


class PublicConnections(httpcore2.AsyncNetworkBackend):
    """Looks a host's name up once, and connects to what was found and judged. Certificates are held to the name."""

    def __init__(
        self,
        resolve: Resolve = resolve,
        backend: httpcore2.AsyncNetworkBackend | None = None,
        own: Callable[[], Iterable[Network]] = own_networks,
    ) -> None:
        """`backend` connects to an IP address, and `own` returns the networks of this PC."""
        self._resolve, self._own = resolve, own
        self._backend = backend or httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the library's interface
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Raise ToolError if any address of the host is not public, and ConnectError if none answers."""
        try:
            addresses = await self._resolve(host, port)
        except (OSError, UnicodeError):
            raise ToolError(f"{host} was not found. The name is wrong, or this PC has no connection.") from None
        own = tuple(self._own())
        if not all(is_public(address, own) for address in addresses):
            raise private_error(host)
        limit = min(_CONNECT_S, timeout or _CONNECT_S)
        for address in addresses[:_MOST_TRIED]:
            try:
                stream = await self._backend.connect_tcp(address, port, limit, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                continue
            if not is_public(_connected_ip(stream), own):
                await stream.aclose()
                raise private_error(host)
            return stream
        raise httpcore2.ConnectError(f"no address of {host} answers")


def _connected_ip(stream: httpcore2.AsyncNetworkStream) -> str:
    connected = stream.get_extra_info("server_addr")
    return str(connected[0]) if connected else ""
