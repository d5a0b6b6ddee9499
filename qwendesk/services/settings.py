"""The app's own options: read at the start, changed one at a time, kept in the user's settings file."""

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from qwendesk.core import paths
from qwendesk.core.app_options import AppOptions
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.files import decode_json, set_aside, write_whole
from qwendesk.core.settings import check_all
from qwendesk.core.subscribers import Subscribers

_logger = logging.getLogger(__name__)


def settings_file() -> Path:
    return paths.config_folder() / "settings.json"


class SettingsService:
    """Owns the AppOptions. Methods are called on the event loop's thread; the file is small enough to write there."""

    def __init__(self, file: Path | None = None, *, is_safe: bool = False) -> None:
        """`is_safe`: the defaults, whatever the file says, and no change is written."""
        self._file = file or settings_file()
        self._is_safe = is_safe
        self._options = AppOptions() if is_safe else _read(self._file)
        self._subscribers = Subscribers[AppOptions]()

    @property
    def options(self) -> AppOptions:
        return self._options

    def subscribe(self, callback: Callable[[AppOptions], None]) -> Callable[[], None]:
        """Call `callback` with the options each time one changed. Returns what ends it."""
        return self._subscribers.add(callback)

    def change(self, changes: Mapping[str, Any]) -> None:
        """Change options by key, remember them, and tell who listens.

        Raises BadOption for a value out of range (nothing changes then), and QwenDeskError when the file cannot be
        written: the change holds until the app ends.
        """
        options = msgspec.structs.replace(self._options, **changes)
        if options == self._options:
            return
        check_all(options)
        self._options = options
        self._subscribers.notify(options)
        if self._is_safe:
            return
        try:
            write_whole(self._file, msgspec.json.format(msgspec.json.encode(options), indent=2))
        except OSError as error:
            sentence = f"Your settings could not be saved: {error.strerror or error}. They hold until the app ends."
            raise QwenDeskError("Settings not saved", sentence) from error


def _read(file: Path) -> AppOptions:
    """What is kept there. A file that cannot be used is set aside under another name, and logged."""
    try:
        options = decode_json(file.read_bytes(), AppOptions)
        check_all(options)
        return options
    except FileNotFoundError:
        return AppOptions()
    except (OSError, msgspec.DecodeError, QwenDeskError) as error:
        _logger.warning("%s cannot be used, the defaults are taken: %s", file, error)
        try:
            set_aside(file)
        except OSError as second:
            _logger.warning("%s could not be set aside: %s", file, second)
        return AppOptions()
