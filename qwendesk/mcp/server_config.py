"""ServerConfig: what the user has set about one MCP server, and where the values of its secrets are kept."""

import json
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from qwendesk.core import paths
from qwendesk.core.json_decoding import decode_json
from qwendesk.core.json_file import JsonFile
from qwendesk.hub.access_tokens import delete_token, load_token, save_token
from qwendesk.mcp.host_protocol import HttpLaunch, Launch, ServerOffer, StdioLaunch

_LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
# Characters of a server's name.
MOST_NAME = 40


class ServerConfig(msgspec.Struct, frozen=True, omit_defaults=True):
    """A program to start (`command`), or a server to connect to (`address`)."""

    id: str
    name: str
    """As the user sees it, and unique."""
    command: str = ""
    arguments: tuple[str, ...] = ()
    folder: str = ""
    """Working folder of the program; "" is QwenDesk's own."""
    environment: tuple[str, ...] = ()
    """Names of environment variables, whose values are secrets."""
    address: str = ""
    headers: tuple[str, ...] = ()
    """Names of headers, whose values are secrets."""
    is_on: bool = True
    tools_off: tuple[str, ...] = ()
    """Names, as the server has them, of tools that are never offered to the model."""
    offer: ServerOffer = ServerOffer()
    """Tools that it offered last, so that it need not be started to know them."""

    @property
    def identity(self) -> str:
        """The identity to which a consent is bound: the program that runs, or the address."""
        return json.dumps([self.command, *self.arguments, self.folder] if self.command else [self.address])

    @property
    def command_line(self) -> str:
        """The program with its arguments, or the address, for the user to read."""
        return " ".join((self.command, *self.arguments)) if self.command else self.address

    @property
    def secret_names(self) -> tuple[str, ...]:
        """The names of the variables of a program, or of the headers for an address."""
        return self.headers if self.address else self.environment

    @property
    def is_local(self) -> bool:
        """Whether it runs on this PC, or is a program that does."""
        return not self.address or urlsplit(self.address).hostname in _LOCAL_HOSTS

    def launch(self, secrets: Mapping[str, str], proxy: str = "") -> Launch:
        """Return how to start it; `secrets` are the values of its variables or headers."""
        if self.address:
            return HttpLaunch(self.address, dict(secrets), "" if self.is_local else proxy, self.is_local)
        return StdioLaunch(self.command, self.arguments, dict(secrets), self.folder)


class NewServer(msgspec.Struct, frozen=True):
    """A server that was typed or pasted, with its secrets by name."""

    config: ServerConfig
    secrets: dict[str, str] = {}


class McpServerList(msgspec.Struct, frozen=True):
    """All servers, as they are saved."""

    version: Literal[1] = 1
    servers: tuple[ServerConfig, ...] = ()


class _RawList(msgspec.Struct, frozen=True):
    servers: tuple[dict[str, Any], ...] = ()


_KEYS = frozenset(field.encode_name for field in msgspec.structs.fields(ServerConfig))


def server_list_file() -> JsonFile[McpServerList]:
    return JsonFile(paths.config_folder() / "mcp-servers.json", McpServerList, McpServerList, decode=_decode_list)


def _decode_list(content: bytes) -> McpServerList:
    """Return the list in a file. Raise msgspec.DecodeError.

    A server whose entry has a key that isn't known is off: damage may have made it of the key that says so, or of the
    one with the tools that are off.
    """
    servers = decode_json(content, McpServerList)
    entries = decode_json(content, _RawList).servers
    read = (
        each if entry.keys() <= _KEYS else msgspec.structs.replace(each, is_on=False)
        for each, entry in zip(servers.servers, entries, strict=True)
    )
    return msgspec.structs.replace(servers, servers=tuple(read))


def new_id() -> str:
    return uuid.uuid4().hex[:12]


def clean_name(text: str) -> str:
    """Return a name on one line, without characters that nobody sees, cut to MOST_NAME characters."""
    shown = "".join(character if character.isprintable() else " " for character in text)
    return " ".join(shown.split())[:MOST_NAME].strip()


def read_secrets(server: ServerConfig) -> dict[str, str]:
    """Return the values by name; "" for those that are not found. Reads the keyring, which may block."""
    return {name: load_token(_key(server, name)) for name in server.secret_names}


def save_secrets(server: ServerConfig, values: Mapping[str, str]) -> bool:
    """Save the values of a server. Return False if some could only be saved in a file. Blocks."""
    kept = [save_token(_key(server, name), values[name]) for name in server.secret_names if name in values]
    return all(kept)


def delete_secrets(server: ServerConfig, names: Sequence[str] | None) -> None:
    """Delete the values of these names, or all of the server. Blocks."""
    for name in server.secret_names if names is None else names:
        delete_token(_key(server, name))


def _key(server: ServerConfig, name: str) -> str:
    return f"mcp/{server.id}/{name}"
