"""What the commands that ask the Hub share. Importing it is quick: the Hub's library takes half a second."""

from typing import TYPE_CHECKING

from qwendesk.core.errors import QwenDeskError

if TYPE_CHECKING:
    from qwendesk.hub.download_control import SpeedLimit
    from qwendesk.hub.remote import Hub


def connected_hub() -> "Hub":
    """The Hub as the window's settings say: address, proxy, offline switch, and the token kept for it."""
    from qwendesk.services.models.network import NetworkService
    from qwendesk.services.settings import SettingsService

    return NetworkService(SettingsService()).hub()


def shared_limit() -> "SpeedLimit":
    """The window's setting, for the downloads of this command."""
    from qwendesk.hub.download_control import SpeedLimit
    from qwendesk.services.models.network import NetworkService
    from qwendesk.services.settings import SettingsService

    return SpeedLimit(NetworkService(SettingsService()).connection.limit_bytes_per_s)


def split_name(name: str) -> tuple[str, str]:
    """ "owner/name/file.gguf" as repository and path in it; the path is "" for a repository alone."""
    parts = name.split("/", 2)
    if len(parts) < 2 or not all(parts):
        raise QwenDeskError("Bad name", f'"{name}" should be like owner/name/file.gguf.')
    return "/".join(parts[:2]), parts[2] if len(parts) == 3 else ""
