"""What the commands that ask the Hub share. Importing it is quick: the Hub's library takes half a second."""

from typing import TYPE_CHECKING

from qwendesk.core.errors import QwenDeskError

if TYPE_CHECKING:
    from qwendesk.hub.remote import Hub


def connected_hub() -> "Hub":
    """The Hub of HF_ENDPOINT, with the token kept for it."""
    from qwendesk.hub.network import Network, endpoint_from_environment
    from qwendesk.hub.remote import Hub
    from qwendesk.hub.token import load_token

    endpoint = endpoint_from_environment()
    return Hub(Network(endpoint, load_token(Network(endpoint).host)))


def split_name(name: str) -> tuple[str, str]:
    """ "owner/name/file.gguf" as repository and path in it; the path is "" for a repository alone."""
    parts = name.split("/", 2)
    if len(parts) < 2 or not all(parts):
        raise QwenDeskError("Bad name", f'"{name}" should be like owner/name/file.gguf.')
    return "/".join(parts[:2]), parts[2] if len(parts) == 3 else ""
