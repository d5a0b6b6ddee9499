"""Load options that the user changed for each model, and named profiles, with export and import."""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path, PurePath
from typing import Any

import msgspec

from qwendesk.core import paths
from qwendesk.core.errors import BadOption, QwenDeskError
from qwendesk.core.files import is_utf8, write_whole
from qwendesk.core.input_files import read_bounded
from qwendesk.core.json_decoding import decode_json
from qwendesk.core.json_file import BackgroundWriter, JsonFile
from qwendesk.core.observed import Observed, Subscribers
from qwendesk.core.options import LoadOptions
from qwendesk.core.settings import check, table
from qwendesk.core.translation import join_list, name_order, tr

_MOST_BYTES = 1024**2
_FORMAT = "qwendesk-profile"

# Load options by key, as JSON values. Options that are not included have their defaults.
Values = dict[str, Any]


class ModelProfiles(msgspec.Struct, frozen=True):
    """The saved load options of one model."""

    values: Values = {}
    """The options it is loaded with."""
    named: dict[str, Values] = {}
    """Named profiles."""


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """The content of an exported profile file."""

    format: str
    name: str = ""
    values: Values


def profiles_file() -> Path:
    return paths.config_folder() / "profiles.json"


class ProfilesService:
    """Owns the profiles of all models.

    Models are identified by their file names, so that moving one to another folder keeps its profiles. Methods are
    called on the event loop's thread. Except in the constructor and `flush`, files are accessed on other threads.
    """

    def __init__(self, file: Path | None = None) -> None:
        json_file = JsonFile(file or profiles_file(), dict[str, ModelProfiles], dict)
        self._models = json_file.read()
        self._subscribers = Subscribers[str]()
        self.problem = Observed("")
        """Why the last change couldn't be saved, or "". The change applies until the app closes."""
        self._writer = BackgroundWriter(json_file, self._on_failed)

    def subscribe(self, callback: Callable[[str], None]) -> Callable[[], None]:
        """Call `callback` with the path of a model whose options changed, until the returned function is called."""
        return self._subscribers.add(callback)

    def flush(self) -> None:
        """Write the last change before returning. Blocks, so call it only when the process ends."""
        self._writer.flush()

    async def close(self) -> None:
        """Wait until the last change has been written or has failed."""
        await self._writer.close()

    def applied(self, options: LoadOptions) -> LoadOptions:
        """Return `options` with the saved changes for their model."""
        return msgspec.structs.replace(options, **self.changes(options.model))

    def changes(self, model: str) -> dict[str, Any]:
        """Return what the user changed for `model`, by key."""
        return _usable(self._of(model).values)

    def names(self, model: str) -> tuple[str, ...]:
        return tuple(sorted(self._of(model).named, key=name_order))

    def save_changes(self, model: str, changes: Mapping[str, Any]) -> None:
        """Save `changes` as the load options of `model`. Options at their defaults need not be included."""
        defaults = table(LoadOptions)
        values = {
            key: msgspec.to_builtins(value)
            for key, value in changes.items()
            if key in defaults and key != "model" and value != defaults[key].default
        }
        self._put(model, msgspec.structs.replace(self._of(model), values=values))

    def save_as(self, model: str, name: str) -> None:
        """Save the load options of `model` as a named profile. Raises QwenDeskError for an empty name."""
        name = " ".join(name.split())
        if not name:
            raise QwenDeskError(tr("No name"), tr("Enter a name for the profile."))
        kept = self._of(model)
        self._put(model, msgspec.structs.replace(kept, named={**kept.named, name: kept.values}))

    def use(self, model: str, name: str) -> None:
        """Replace the load options of `model` by a named profile. Raises QwenDeskError if it does not exist."""
        kept = self._of(model)
        if name not in kept.named:
            raise QwenDeskError(tr("Profile not found"), tr("This model has no profile “{0}”.", name))
        self._put(model, msgspec.structs.replace(kept, values=kept.named[name]))

    def delete(self, model: str, name: str) -> None:
        kept = self._of(model)
        named = {each: values for each, values in kept.named.items() if each != name}
        self._put(model, msgspec.structs.replace(kept, named=named))

    async def export(self, model: str, file: Path) -> None:
        """Write the load options of `model` to `file`, without paths on this PC. Raises QwenDeskError."""
        values = {key: value for key, value in self._of(model).values.items() if key not in _OF_THIS_PC}
        name = PurePath(model).name.encode(errors="replace").decode()
        exported = Exported(format=_FORMAT, name=name, values=values)
        try:
            await asyncio.to_thread(write_whole, file, msgspec.json.format(msgspec.json.encode(exported), indent=2))
        except OSError as error:
            sentence = tr("The profile couldn't be written: {0}.", error.strerror or error)
            raise QwenDeskError(tr("Profile not exported"), sentence) from error

    async def import_file(self, model: str, file: Path) -> None:
        """Replace the load options of `model` by an exported profile. Raises QwenDeskError if `file` can't be used."""
        exported = await asyncio.to_thread(_read_exported, file)
        values = {key: value for key, value in exported.values.items() if key not in _OF_THIS_PC}
        unusable = [key for key in values if key not in _usable(values)]
        if unusable:
            sentence = tr(
                "{0} has values that can't be used here: {1}. Nothing was changed.", file.name, join_list(unusable)
            )
            raise QwenDeskError(tr("Profile not imported"), sentence)
        self._put(model, msgspec.structs.replace(self._of(model), values=values))

    def _of(self, model: str) -> ModelProfiles:
        return self._models.get(PurePath(model).name, ModelProfiles())

    def _put(self, model: str, kept: ModelProfiles) -> None:
        if kept == self._of(model):
            return
        models = {**self._models, PurePath(model).name: kept}
        self._models = {name: each for name, each in models.items() if each != ModelProfiles()}
        self.problem.set("")
        self._subscribers.notify(model)
        lasting = {name: each for name, each in self._models.items() if is_utf8(name)}
        self._writer.write(lasting)

    def _on_failed(self, error: OSError) -> None:
        sentence = tr("The profile couldn't be saved: {0}. It applies until QwenDesk closes.", error.strerror or error)
        self.problem.set(sentence)


# Options that contain paths on this PC.
_OF_THIS_PC = ("model", "mmproj", "draft_model", "chat_template_file", "lora")


def _usable(values: Values) -> dict[str, Any]:
    """Return the values that this version knows and accepts. Others, such as those of a newer version, are ignored."""
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


def _read_exported(file: Path) -> Exported:
    """Return the content of an exported file. Blocks. Raises QwenDeskError."""
    try:
        exported = decode_json(read_bounded(file, _MOST_BYTES), Exported)
    except OSError as error:
        sentence = tr("{0} can't be read: {1}.", file.name, error.strerror or error)
        raise QwenDeskError(tr("Profile not imported"), sentence) from error
    except msgspec.DecodeError as error:
        raise QwenDeskError(tr("Not a profile"), tr("{0} isn't a QwenDesk profile.", file.name)) from error
    if exported.format != _FORMAT:
        raise QwenDeskError(tr("Not a profile"), tr("{0} isn't a QwenDesk profile.", file.name))
    return exported
