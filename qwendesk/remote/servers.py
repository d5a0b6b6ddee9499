"""The servers that the user added: their addresses in a file, their keys in the keyring."""

from pathlib import Path

import msgspec

from qwendesk.core import paths
from qwendesk.core.json_file import JsonFile
from qwendesk.remote.dialects import DIALECTS, ServerKind


class RemoteServer(msgspec.Struct, frozen=True):
    """A server that the user added, or one that is used once."""

    address: str
    """As `read_address` returns it."""
    name: str = ""
    """Name that the user gave it."""
    kind: ServerKind = "other"
    """As found by asking it."""
    certificate: str = ""
    """A certificate in PEM that the user trusts for this address alone; "" asks the system's authorities."""

    @property
    def title(self) -> str:
        """The name, or the program, if it is known, and the address without its scheme."""
        place = self.address.partition("://")[2]
        return self.name or (place if self.kind == "other" else f"{DIALECTS[self.kind].title} ({place})")


class _ServersFile(msgspec.Struct, frozen=True):
    servers: tuple[RemoteServer, ...] = ()


def servers_file() -> Path:
    return paths.config_folder() / "servers.json"


class ServerList:
    """The file of servers. Methods block."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = JsonFile(file or servers_file(), _ServersFile, _ServersFile)

    def read(self) -> tuple[RemoteServer, ...]:
        return self._file.read().servers

    def write(self, servers: tuple[RemoteServer, ...]) -> None:
        """Replace the list. Raises OSError."""
        self._file.write(_ServersFile(servers))
