"""The models that Ollama and LM Studio hold in memory on this PC, and how to have them unloaded.

By their own documentation of November 2026: docs.ollama.com/api/ps and /api/generate, whose `keep_alive` of 0 without a
prompt only unloads, and lmstudio.ai/docs/developer/rest, list and unload (LM Studio 0.4 or newer).
"""

import asyncio
import ipaddress
import logging
from collections.abc import Callable, Sequence
from typing import Final
from urllib.parse import urlsplit

import msgspec

from qwendesk.core.errors import QwenDeskError
from qwendesk.core.translation import tr
from qwendesk.core.units import show_bytes
from qwendesk.remote.connection import Connection
from qwendesk.remote.dialects import DIALECTS
from qwendesk.remote.inspection import loaded_at
from qwendesk.remote.servers import RemoteServer

_logger = logging.getLogger(__name__)

# Where they listen if the user changed nothing.
USUAL_SERVERS: Final = (
    RemoteServer("http://127.0.0.1:11434", kind="ollama"),
    RemoteServer("http://127.0.0.1:1234", kind="lmstudio"),
)
# Limit for the answer of a server on this PC.
_ASK_S: Final = 5.0


class HeldModel(msgspec.Struct, frozen=True):
    """A model that another program on this PC holds."""

    server: RemoteServer
    name: str
    """What its program calls it. With LM Studio that is the loaded instance."""
    n_bytes: int = 0
    """Its part in video memory, all of it if nothing is there, or with LM Studio its file; 0 if unknown."""

    @property
    def program(self) -> str:
        return DIALECTS[self.server.kind].title

    @property
    def text(self) -> str:
        """The model, its program and its size."""
        if not self.n_bytes:
            return tr("{0} in {1}", self.name, self.program)
        return tr("{0} in {1} ({2})", self.name, self.program, show_bytes(self.n_bytes))


async def find_loaded(servers: Sequence[RemoteServer], load_key: Callable[[str], str]) -> tuple[HeldModel, ...]:
    """Return what Ollama and LM Studio hold at their usual ports and at those of `servers` that are on this PC.

    A server that doesn't answer holds nothing. `load_key` returns the key of an address and blocks.
    """
    listed = {each.address: each for each in (*USUAL_SERVERS, *servers) if is_on_this_pc(each)}
    found = await asyncio.gather(*(_ask(each, load_key) for each in listed.values()))
    # An address may be listed twice, as 127.0.0.1 and localhost.
    models = {(urlsplit(model.server.address).port, model.name): model for each in found for model in each}
    return tuple(models.values())


async def unload(model: HeldModel, load_key: Callable[[str], str]) -> str:
    """Have its program unload a model. Return why that failed in a sentence; "" if it worked."""
    connection = await _connect(model.server, load_key)
    try:
        if model.server.kind == "ollama":
            answer = await connection.post("/api/generate", {"model": model.name, "keep_alive": 0})
            is_done = isinstance(answer, dict) and bool(answer.get("done"))
        else:
            answer = await connection.post("/api/v1/models/unload", {"instance_id": model.name})
            # It answers unknown paths with status 200 and an error.
            is_done = isinstance(answer, dict) and answer.get("instance_id") == model.name
    except QwenDeskError as error:
        return tr("{0} didn't unload {1}. {2}", model.program, model.name, error.sentence)
    finally:
        await connection.close()
    return "" if is_done else tr("{0} didn't unload {1}.", model.program, model.name)


def is_on_this_pc(server: RemoteServer) -> bool:
    """Return whether it is an Ollama or LM Studio whose address is this PC's own."""
    host = urlsplit(server.address).hostname or ""
    try:
        is_own = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_own = host == "localhost"
    return is_own and server.kind in ("ollama", "lmstudio")


async def _connect(server: RemoteServer, load_key: Callable[[str], str]) -> Connection:
    return Connection(server, await asyncio.to_thread(load_key, server.address), ask_s=_ASK_S)


async def _ask(server: RemoteServer, load_key: Callable[[str], str]) -> tuple[HeldModel, ...]:
    connection = await _connect(server, load_key)
    try:
        loaded = await loaded_at(connection, server.kind)
        return tuple(HeldModel(server, name, n_bytes) for name, n_bytes in loaded)
    except QwenDeskError as error:
        _logger.debug("%s: %s", server.address, error)
        return ()
    finally:
        await connection.close()
