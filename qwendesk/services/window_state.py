"""How the window was left: where it stood, what it showed. Kept in a small file of its own beside the settings."""

import logging
from pathlib import Path

import msgspec

from qwendesk.core import paths
from qwendesk.core.files import decode_json, write_whole

_logger = logging.getLogger(__name__)


class WindowState(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes in logical pixels. `width` 0: nothing is remembered of place and size."""

    x: int = 0
    y: int = 0
    width: int = 0
    height: int = 0
    is_maximised: bool = False
    page: str = ""
    has_sidebar: bool = True
    has_inspector: bool = False
    knows_tray: bool = False
    """The person was told once that closing only hides the window."""
    recent: tuple[str, ...] = ()
    """Commands chosen in the palette, the last one first."""


def window_file() -> Path:
    return paths.config_folder() / "window.json"


def read_window_state(file: Path | None = None) -> WindowState:
    """As it was left; the defaults where nothing usable is kept."""
    path = file or window_file()
    try:
        return decode_json(path.read_bytes(), WindowState)
    except FileNotFoundError:
        return WindowState()
    except (OSError, msgspec.DecodeError) as error:
        _logger.warning("%s cannot be used: %s", path, error)
        return WindowState()


def write_window_state(state: WindowState, file: Path | None = None) -> None:
    """Remember it. A disk that refuses is logged: the next window is as large as the first."""
    try:
        write_whole(file or window_file(), msgspec.json.encode(state))
    except OSError as error:
        _logger.warning("How the window stood could not be remembered: %s", error)
