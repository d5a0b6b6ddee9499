"""The secrets of MCP servers: values of environment variables and headers, kept and deleted like access tokens."""

from collections.abc import Mapping, Sequence

from qwendesk.hub.access_tokens import delete_token, load_token, save_token
from qwendesk.mcp.server_config import ServerConfig


def read_secrets(server: ServerConfig) -> dict[str, str]:
    """Return the values by name; "" for those that are not found. Reads the keyring, which may block."""
    return {name: load_token(_key(server, name)) for name in server.secret_names}


def save_secrets(server: ServerConfig, values: Mapping[str, str]) -> bool:
    """Save the values of a server. Return False if some could only be saved in a file. Blocks."""
    kept = [save_token(_key(server, name), values[name]) for name in server.secret_names if name in values]
    return all(kept)


def delete_secrets(server: ServerConfig, names: Sequence[str] | None = None) -> None:
    """Delete the values of these names, or all of the server. Blocks."""
    for name in server.secret_names if names is None else names:
        delete_token(_key(server, name))


def _key(server: ServerConfig, name: str) -> str:
    return f"mcp/{server.id}/{name}"
