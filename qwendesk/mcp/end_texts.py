"""Why a server doesn't run, as sentences with a next step."""

from pathlib import Path

from qwendesk.core.translation import tr
from qwendesk.mcp.host_protocol import Ended
from qwendesk.mcp.server_config import ServerConfig

_NO_PROGRAM = ("FileNotFoundError", "NotADirectoryError")
_REFUSING = ("HTTP 401", "HTTP 403")


def end_sentence(server: ServerConfig, ended: Ended) -> str:
    """Return what happened to a server and what to do."""
    match ended.reason:
        case "not_started":
            return _not_started(server, ended.detail)
        case "not_connected" if server.address:
            return _not_reached(server, ended.detail)
        case "not_connected":
            return tr(
                "{0} was started, but didn't answer as an MCP server ({1}). Check its arguments and variables.",
                server.command,
                ended.detail or tr("it ended"),
            )
        case "flood":
            return tr("{0} sent messages without end, so QwenDesk stopped it.", server.name)
        case "too_large":
            return tr("{0} sent more than QwenDesk accepts, so it was stopped.", server.name)
        case "killed":
            return tr("The connection to {0} was stopped from outside.", server.name)
        case "closed":
            return tr("{0} ended unexpectedly.", server.name)


def _not_started(server: ServerConfig, detail: str) -> str:
    if server.address:
        return tr("{0} isn't an address that QwenDesk can connect to ({1}).", server.address, detail)
    if detail.startswith(_NO_PROGRAM):
        # Windows doesn't say in its error which of the two is missing.
        if server.folder and not Path(server.folder).is_dir():
            return tr("The folder {0} doesn't exist. Choose another.", server.folder)
        return tr(
            "The program {0} was not found. Install it (npx comes with Node.js, uvx with uv), or enter its whole path.",
            server.command,
        )
    return tr("{0} couldn't be started: {1}.", server.command, detail)


def _not_reached(server: ServerConfig, detail: str) -> str:
    if any(status in detail for status in _REFUSING):
        return tr(
            "{0} refuses access ({1}). Enter the header that it asks for, usually Authorization.",
            server.address,
            next(status for status in _REFUSING if status in detail),
        )
    return tr(
        "{0} didn't answer as an MCP server ({1}). Check the address; it often ends with /mcp.",
        server.address,
        detail or tr("it closed the connection"),
    )
