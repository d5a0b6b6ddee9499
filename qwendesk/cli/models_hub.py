"""Functions shared by the commands that use the Hub. They import the Hub's library only when needed: it is slow."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from qwendesk.core.errors import QwenDeskError
from qwendesk.core.translation import mark, tr

if TYPE_CHECKING:
    from qwendesk.hub.download_control import SpeedLimit
    from qwendesk.hub.remote import Hub


_NEXT_STEPS: Mapping[str, str] = {
    "no_connection": mark("`qwendesk models list` shows the models on this PC."),
    "offline": mark("Turn off Offline in the settings of the window, then try again."),
    "bad_answer": mark("Check your internet connection and the Hub address in the settings of the window."),
    "disk": mark("Choose another folder with --to, or check the drive."),
}
"""What to do about an error of the Hub, by its kind. The sentences of other kinds say it themselves."""


def with_next_step(error: QwenDeskError) -> str:
    """Return the sentence of an error, with what to do next on the command line."""
    step = _NEXT_STEPS.get(getattr(error, "kind", ""))
    return f"{error.sentence} {tr(step)}" if step else error.sentence


def connected_hub() -> "Hub":
    """Return a Hub with the address, proxy, offline mode and token of the window's settings."""
    from qwendesk.models.network import NetworkService
    from qwendesk.settings.service import SettingsService

    return NetworkService(SettingsService()).hub()


def shared_limit() -> "SpeedLimit":
    """Return the speed limit for downloads from the window's settings."""
    from qwendesk.hub.download_control import SpeedLimit
    from qwendesk.models.network import NetworkService
    from qwendesk.settings.service import SettingsService

    return SpeedLimit(NetworkService(SettingsService()).connection.limit_bytes_per_s)


def split_name(name: str) -> tuple[str, str]:
    """Split "owner/name/file.gguf" into repository and path; the path is "" for a repository alone.

    Raises QwenDeskError if `name` is neither.
    """
    parts = name.split("/", 2)
    if len(parts) < 2 or not all(parts):
        raise QwenDeskError(
            tr("Bad name"), tr('"{0}" isn\'t a name on Hugging Face. Enter it as owner/name/file.gguf.', name)
        )
    return "/".join(parts[:2]), parts[2] if len(parts) == 3 else ""
