"""How each model is loaded: what the person changed, kept by model; named sets of it; export and import."""

import logging
from collections.abc import Callable, Mapping
from pathlib import Path, PurePath
from typing import Any

import msgspec

from qwendesk.core import paths
from qwendesk.core.errors import BadOption, QwenDeskError
from qwendesk.core.files import decode_json, set_aside, write_whole
from qwendesk.core.options import LoadOptions
from qwendesk.core.settings import check, table
from qwendesk.core.subscribers import Subscribers

_logger = logging.getLogger(__name__)
_MOST_BYTES = 1024**2
_FORMAT = "qwendesk-profile"

Values = dict[str, Any]
"""Load options by key, as JSON has them; what is not there follows the defaults."""


class ModelProfiles(msgspec.Struct, frozen=True):
    """What is kept for one model."""

    values: Values = {}
    """How it is loaded."""
    named: dict[str, Values] = {}
    """Sets of values to come back to."""


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """A profile as a file of its own."""

    format: str
    name: str = ""
    values: Values


def profiles_file() -> Path:
    return paths.config_folder() / "profiles.json"


class ProfilesService:
    """Owns the file. A model is known by its file name, so that a move between folders loses nothing.

    Methods are called on the event loop's thread; the file is small enough to write there.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file = file or profiles_file()
        self._models = _read(self._file)
        self._subscribers = Subscribers[str]()

    def subscribe(self, callback: Callable[[str], None]) -> Callable[[], None]:
        """Call `callback` with a model's path when what is kept for it changed. Returns what ends it."""
        return self._subscribers.add(callback)

    def applied(self, options: LoadOptions) -> LoadOptions:
        """`options` with what is kept for their model."""
        return msgspec.structs.replace(options, **self.changes(options.model))

    def changes(self, model: str) -> dict[str, Any]:
        """What the person changed for `model`, by key."""
        return _usable(self._of(model).values)

    def names(self, model: str) -> tuple[str, ...]:
        return tuple(sorted(self._of(model).named, key=str.casefold))

    def keep(self, model: str, changes: Mapping[str, Any]) -> None:
        """`model` is loaded with these from now on; an option that is at its default need not be named.

        Raises QwenDeskError when the file cannot be written: they hold until the app ends.
        """
        defaults = table(LoadOptions)
        values = {
            key: msgspec.to_builtins(value)
            for key, value in changes.items()
            if key in defaults and key != "model" and value != defaults[key].default
        }
        self._put(model, msgspec.structs.replace(self._of(model), values=values))

    def save_as(self, model: str, name: str) -> None:
        """Put a name to how `model` is loaded now. Raises QwenDeskError for an empty one."""
        name = " ".join(name.split())
        if not name:
            raise QwenDeskError("No name", "Give the profile a name first.")
        kept = self._of(model)
        self._put(model, msgspec.structs.replace(kept, named={**kept.named, name: kept.values}))

    def use(self, model: str, name: str) -> None:
        """Load `model` as the named profile says from now on. Raises QwenDeskError when there is none of that name."""
        kept = self._of(model)
        if name not in kept.named:
            raise QwenDeskError("No such profile", f'There is no profile "{name}" for this model.')
        self._put(model, msgspec.structs.replace(kept, values=kept.named[name]))

    def delete(self, model: str, name: str) -> None:
        kept = self._of(model)
        named = {each: values for each, values in kept.named.items() if each != name}
        self._put(model, msgspec.structs.replace(kept, named=named))

    def export(self, model: str, file: Path) -> None:
        """Write how `model` is loaded to `file`. Paths of files on this PC stay out. Raises QwenDeskError."""
        values = {key: value for key, value in self._of(model).values.items() if key not in _OF_THIS_PC}
        exported = Exported(format=_FORMAT, name=PurePath(model).name, values=values)
        try:
            write_whole(file, msgspec.json.format(msgspec.json.encode(exported), indent=2))
        except OSError as error:
            sentence = f"The profile could not be written: {error.strerror or error}."
            raise QwenDeskError("Not exported", sentence) from error

    def take_in(self, model: str, file: Path) -> None:
        """Load `model` as the exported `file` says from now on. Raises QwenDeskError for a file that is none."""
        try:
            if file.stat().st_size > _MOST_BYTES:
                raise QwenDeskError("Not a profile", f"{file.name} is far too large to be a profile.")
            exported = decode_json(file.read_bytes(), Exported)
        except OSError as error:
            sentence = f"{file.name} cannot be read: {error.strerror or error}."
            raise QwenDeskError("Not imported", sentence) from error
        except msgspec.DecodeError as error:
            raise QwenDeskError("Not a profile", f"{file.name} is no profile of QwenDesk.") from error
        if exported.format != _FORMAT:
            raise QwenDeskError("Not a profile", f"{file.name} is no profile of QwenDesk.")
        values = {key: value for key, value in exported.values.items() if key not in _OF_THIS_PC}
        unusable = [key for key in values if key not in _usable(values)]
        if unusable:
            sentence = f"{file.name} has values that cannot be used here: {', '.join(unusable)}. Nothing was changed."
            raise QwenDeskError("Not imported", sentence)
        self._put(model, msgspec.structs.replace(self._of(model), values=values))

    def _of(self, model: str) -> ModelProfiles:
        return self._models.get(PurePath(model).name, ModelProfiles())

    def _put(self, model: str, kept: ModelProfiles) -> None:
        if kept == self._of(model):
            return
        models = {**self._models, PurePath(model).name: kept}
        self._models = {name: each for name, each in models.items() if each != ModelProfiles()}
        self._subscribers.notify(model)
        try:
            write_whole(self._file, msgspec.json.format(msgspec.json.encode(self._models), indent=2))
        except OSError as error:
            sentence = f"The profile could not be saved: {error.strerror or error}. It holds until the app ends."
            raise QwenDeskError("Profile not saved", sentence) from error


_OF_THIS_PC = ("model", "mmproj", "chat_template_file", "lora")
"""Options that name files here."""


def _usable(values: Values) -> dict[str, Any]:
    """The values that the table knows and takes; a newer version's others are passed over."""
    rows, usable = table(LoadOptions), {}
    for key, value in values.items():
        if key not in rows or key == "model":
            continue
        try:
            usable[key] = msgspec.convert(value, rows[key].type)
            check(rows[key], usable[key])
        except (msgspec.ValidationError, BadOption):
            usable.pop(key, None)
    return usable


def _read(file: Path) -> dict[str, ModelProfiles]:
    """What is kept there. A file that cannot be used is set aside under another name, and logged."""
    try:
        return decode_json(file.read_bytes(), dict[str, ModelProfiles])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.DecodeError) as error:
        _logger.warning("%s cannot be used, every model is loaded by the defaults: %s", file, error)
        try:
            set_aside(file)
        except OSError as second:
            _logger.warning("%s could not be set aside: %s", file, second)
        return {}
