"""Addresses on the Internet: which of them a model may name, and connections to them alone.

Judging names would not be enough. A name may lead to this PC, and to another address the next time it is looked up.
"""

import asyncio
import ipaddress
import re
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence

import httpcore2
import httpx2
import psutil

from qwendesk.core.translation import tr
from qwendesk.toolbox.tool import ToolError

# Of an address. A longer one could carry what nobody would read before consent.
MOST_CHARACTERS = 2_000
# A host's name: at least two labels, and the last is no number, so that 127.1 and 0x7f.0.0.1 are none.
_NAME = re.compile(r"(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)+(?:[a-z]{2,63}|xn--[a-z0-9-]{1,59})")
# Names that no public server has. To look them up would tell the network what the model wants.
_LOCAL = re.compile(r".*\.(local|localhost|localdomain|internal|intranet|lan|home|corp|private|home\.arpa|onion|alt)")
# Below, only the ports of the web: mail servers and the like could take a request for a command.
_LOWEST_OTHER_PORT = 1024


def checked_address(text: str, base: httpx2.URL | None = None) -> httpx2.URL:
    """Return an address as it is connected to; relative ones refer to `base`. Raise ToolError if it is not taken.

    Only web pages on the Internet are, by a host's name or a public IP address in its usual form.
    """
    text = text.strip()
    if base is None and "://" not in text:
        text = f"https://{text}"
    if len(text) > MOST_CHARACTERS:
        raise ToolError(f"The address is longer than {MOST_CHARACTERS:,} characters.")
    try:
        url = (base.join(text) if base is not None else httpx2.URL(text)).copy_with(fragment=None)
        port = url.port
    except (httpx2.InvalidURL, UnicodeError, ValueError):
        raise ToolError("This is not an address. Write it like https://example.org/page.") from None
    if url.scheme not in ("http", "https"):
        raise ToolError("Only addresses that begin with https:// or http:// can be read.")
    if url.userinfo:
        raise ToolError("Addresses with a user name or a password are not read.")
    if port is not None and not 0 < port < 65536:
        raise ToolError("The address has an impossible port.")
    if port is not None and port not in (80, 443) and port < _LOWEST_OTHER_PORT:
        raise ToolError(f"Port {port} is not one of web pages, so it is not connected to.")
    _check_host(url.raw_host.decode("ascii"))
    return url


def shown_host(url: httpx2.URL) -> str:
    """Return the host as it is looked up, with what a name in another script looks like."""
    host, looks_like = url.raw_host.decode("ascii"), url.host
    return host if looks_like == host else tr("{0} (looks like {1})", host, looks_like)


def private_error(host: str) -> ToolError:
    """Return the error for a host that is not on the Internet."""
    return ToolError(f"{host} is on this PC or in a private network. Only pages on the Internet can be read.")


def _check_host(host: str) -> None:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        if host == "localhost" or _LOCAL.fullmatch(host):
            raise private_error(host) from None
        if len(host) > 253 or not _NAME.fullmatch(host):
            raise ToolError("The address has no valid host. Write it like https://example.org/page.") from None
        return
    if not is_public(host):
        raise private_error(host)


Network = ipaddress.IPv4Network | ipaddress.IPv6Network

# IANA's registry of special addresses: unspecified, private, of carriers, loopback, link-local, documentation, tests,
# multicast, reserved.
_NOT_PUBLIC_V4 = tuple(
    map(
        ipaddress.IPv4Network,
        (
            "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
            "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24",
            "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
            "168.63.129.16/32",  # where machines in Azure find what tells them their secrets
        ),
    )
)  # fmt: skip
# All that IANA has given out for the Internet. Loopback, unique local, link-local and multicast lie outside.
_GLOBAL_V6 = ipaddress.IPv6Network("2000::/3")
# Of those: protocols such as Teredo, documentation, 6to4. The first and the last contain IPv4 addresses.
_NOT_PUBLIC_V6 = tuple(map(ipaddress.IPv6Network, ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")))
# Addresses that stand for IPv4 ones, in networks that have only IPv6.
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
# A home is given this much of an IPv6 address for all of its devices, or less.
_HOME_PREFIX = 56


def is_public(address: str, own: Iterable[Network] = ()) -> bool:
    """Return whether an IP address is a place on the Internet, and in none of the networks `own`."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        contained = ip.ipv4_mapped or (ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF) if ip in _NAT64 else None)
        if contained is None:
            is_global = not ip.scope_id and ip in _GLOBAL_V6 and not any(ip in each for each in _NOT_PUBLIC_V6)
            return is_global and not any(ip in network for network in own)
        ip = contained
    return not any(ip in network for network in (*_NOT_PUBLIC_V4, *own))


def own_networks() -> tuple[Network, ...]:
    """Return the networks of this PC whose addresses look public: with IPv6, all devices of a home have such ones."""
    found: list[Network] = []
    for addresses in psutil.net_if_addrs().values():
        for each in addresses:
            if is_public(each.address):
                is_v6 = ":" in each.address
                network = _network(each.address, str(_HOME_PREFIX) if is_v6 else each.netmask or "32")
                found.append(network if is_v6 or network.prefixlen >= 16 else _network(each.address, "32"))
    return tuple(found)


def _network(address: str, mask: str) -> Network:
    return ipaddress.ip_interface(f"{address}/{mask}").network


# Addresses of one name.
_MOST_TRIED = 4
# For each of them.
_CONNECT_S = 5.0

# Returns the IP addresses of a name. Raises OSError.
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


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
