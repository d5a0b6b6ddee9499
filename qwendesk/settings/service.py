"""The app's own options, which are saved in the user's settings file."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from qwendesk.core import paths
from qwendesk.core.app_options import AppOptions
from qwendesk.core.json_decoding import decode_json
from qwendesk.core.json_file import BackgroundWriter, JsonFile, StoredValue
from qwendesk.core.observed import Observed
from qwendesk.core.settings import check_all
from qwendesk.core.translation import tr


def settings_file() -> Path:
    return paths.config_folder() / "settings.json"


class SettingsService:
    """Owns the app's options. Methods are called on the event loop's thread; the file is written on another."""

    def __init__(self, file: Path | None = None, *, is_safe: bool = False) -> None:
        """With `is_safe`, use the defaults instead of the file, and write no changes."""
        json_file = JsonFile(file or settings_file(), AppOptions, AppOptions, decode=_decode)
        self._is_safe = is_safe
        stored = StoredValue(AppOptions()) if is_safe else json_file.load()
        self.state = Observed(stored.value)
        self.problem = Observed(_problem_of(stored))
        """That the file was damaged at the start, or why the last change couldn't be saved; "" if nothing is wrong.

        A change that couldn't be saved applies until the app closes.
        """
        self._writer = BackgroundWriter(json_file, self._on_failed)

    @property
    def options(self) -> AppOptions:
        return self.state.value

    def subscribe(self, callback: Callable[[AppOptions], None]) -> Callable[[], None]:
        """Call `callback` with the options after each change, until the returned function is called."""
        return self.state.subscribe(callback)

    def flush(self) -> None:
        """Write the last change before returning. Blocks, so call it only when the process ends."""
        self._writer.flush()

    async def close(self) -> None:
        """Wait until the last change has been written or has failed."""
        await self._writer.close()

    def change(self, changes: Mapping[str, Any]) -> None:
        """Change options by key and save them. Raises BadOption for a value out of range; nothing changes then."""
        options = msgspec.structs.replace(self.options, **changes)
        if options == self.options:
            return
        check_all(options)
        self.problem.set("")
        self.state.set(options)
        if not self._is_safe:
            self._writer.write(options)

    def reset(self, key: str) -> None:
        """Set an option back to its default."""
        self.change({key: getattr(AppOptions(), key)})

    def _on_failed(self, error: OSError) -> None:
        sentence = tr(
            "Your settings couldn't be saved: {0}. They apply until QwenDesk closes.", error.strerror or error
        )
        self.problem.set(sentence)


def _problem_of(stored: StoredValue[AppOptions]) -> str:
    if stored.renamed_to is None:
        return ""
    return tr(
        "Your settings file was damaged and was renamed to {0}. All settings are the defaults now, Offline too.",
        stored.renamed_to.name,
    )


def _decode(content: bytes) -> AppOptions:
    """Decode a settings file. Raises msgspec.DecodeError, or BadOption for a value out of range."""
    options = decode_json(content, AppOptions)
    check_all(options)
    return options
