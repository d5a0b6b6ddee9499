"""Looks for servers on this PC, or in the local network when the user asks: at the ports that they usually have."""

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from typing import Final

import psutil

from qwendesk.core.errors import QwenDeskError
from qwendesk.remote.addresses import read_address
from qwendesk.remote.connection import Connection
from qwendesk.remote.inspection import find_kind, list_models
from qwendesk.remote.servers import RemoteServer

# llama-server and Strata, LM Studio, Ollama, vLLM, SGLang, FreeToken, Lemonade, Jan, KoboldCpp, Docker Model Runner,
# exo, and what people choose beside them.
USUAL_PORTS: Final = (8080, 1234, 11434, 8000, 30000, 1919, 13305, 1337, 5001, 12434, 52415, 8001, 5000)
# QwenDesk's: looked for on other PCs only, because this window needs no server to reach its own model.
OWN_PORT: Final = 8765
_AT_ONCE: Final = 128
_ANSWER_S: Final = 4.0
# Of a larger network, only the part around this PC is searched.
_MOST_HOSTS: Final = 254

FoundServer = Callable[[RemoteServer], None]


async def find_on_this_pc(found: FoundServer, ports: Sequence[int] = USUAL_PORTS) -> None:
    """Call `found` with each server on this PC."""
    await _look_at([("127.0.0.1", port) for port in ports], found, connect_s=1.0)


async def find_in_network(found: FoundServer) -> None:
    """Call `found` with each server in the private networks of this PC. Takes some seconds."""
    places = [(host, port) for host in _neighbours() for port in (*USUAL_PORTS, OWN_PORT)]
    await _look_at(places, found, connect_s=1.5)


async def _look_at(places: Sequence[tuple[str, int]], found: FoundServer, *, connect_s: float) -> None:
    limit = asyncio.Semaphore(_AT_ONCE)

    async def look(host: str, port: int) -> None:
        async with limit:
            if not await _is_open(host, port, connect_s):
                return
        server = await _server_at(read_address(f"http://{host}:{port}"), of_other_pcs=host != "127.0.0.1")
        if server is not None:
            found(server)

    await _all(look(host, port) for host, port in places)


async def _all(work: Iterator[Awaitable[None]]) -> None:
    async with asyncio.TaskGroup() as group:
        for each in work:
            group.create_task(_run(each))


async def _run(work: Awaitable[None]) -> None:
    await work


async def _is_open(host: str, port: int, connect_s: float) -> bool:
    try:
        async with asyncio.timeout(connect_s):
            _, writer = await asyncio.open_connection(host, port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    return True


async def _server_at(address: str, *, of_other_pcs: bool) -> RemoteServer | None:
    """Return the server at an address whose port is open; None if it isn't one that QwenDesk can use.

    A server that wants a key counts, because the user can enter that. QwenDesk speaks TLS to other PCs.
    """
    secure = address.replace("http://", "https://", 1)
    for each in (address, secure) if of_other_pcs else (address,):
        connection = Connection(RemoteServer(each), ask_s=_ANSWER_S)
        try:
            kind = await find_kind(connection)
            if kind == "other":
                await list_models(connection, kind)
            return RemoteServer(each, kind=kind)
        except QwenDeskError as error:
            if getattr(error, "status", 0) in (401, 403) or getattr(error, "untrusted", False):
                return RemoteServer(each)
        finally:
            await connection.close()
    return None


def _neighbours() -> list[str]:
    """Return the addresses in the private IPv4 networks of this PC, without its own."""
    hosts: dict[str, None] = {}
    own: set[str] = set()
    for addresses in psutil.net_if_addrs().values():
        for each in addresses:
            if each.family != socket.AF_INET or not each.netmask:
                continue
            interface = ipaddress.IPv4Interface(f"{each.address}/{each.netmask}")
            if interface.ip.is_loopback or not interface.ip.is_private or interface.network.prefixlen > 30:
                continue
            own.add(str(interface.ip))
            network = interface.network
            if network.num_addresses > _MOST_HOSTS + 2:
                network = ipaddress.IPv4Interface(f"{each.address}/24").network
            hosts |= dict.fromkeys(map(str, network.hosts()))
    return [host for host in hosts if host not in own]
