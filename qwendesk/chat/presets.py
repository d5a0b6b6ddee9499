"""The user's own sampling presets: saved in a file, used in the open chat, exported and imported.

A preset holds sampling values only; system prompts are in prompt_library.py. A chat gets a copy of the values, so
changing or deleting a preset changes no chat.
"""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from qwendesk.chat.chat_settings import PRESET_KEYS, chat_only_overrides, with_foreign_values, with_style
from qwendesk.chat.service import ChatService
from qwendesk.core import paths
from qwendesk.core.chats import ChatSettings
from qwendesk.core.errors import BadOption, BadRequest, QwenDeskError
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.input_files import read_bounded
from qwendesk.core.json_decoding import decode_json
from qwendesk.core.json_file import BackgroundWriter, JsonFile, NewerFormat
from qwendesk.core.observed import Observed
from qwendesk.core.presets import Style, sampling
from qwendesk.core.settings import apply_assignments
from qwendesk.core.translation import name_order, tr

_FORMAT, _VERSION = "qwendesk-presets", 1
_MAX_BYTES = 10_000_000
_MAX_NAME_LENGTH = 60
_RESERVED_NAMES = ("general", "coding", "reasoning", "custom")


class SamplingPreset(msgspec.Struct, frozen=True):
    """Named values of GenerationOptions, in the form of `--set`. Missing options have their defaults."""

    name: str
    values: dict[str, str] = {}
    is_imported: bool = False
    """True if it came from a file, which others may have written."""


class _PresetFile(msgspec.Struct, frozen=True):
    format: str = _FORMAT
    version: int = _VERSION
    presets: tuple[SamplingPreset, ...] = ()


class _PresetHeader(msgspec.Struct, frozen=True):
    format: str = ""
    version: int = 0


class PresetsState(msgspec.Struct, frozen=True):
    names: tuple[str, ...] = ()
    """In alphabetical order."""
    can_undo: bool = False
    problem: str = ""
    """Problem with the file, in a sentence; "" if there is none."""


def presets_file() -> Path:
    return paths.config_folder() / "presets.json"


class PresetsService:
    """Owns the presets; a view observes `state`. Methods are called on the event loop's thread.

    Methods that change presets raise BadRequest if that isn't possible. Changes apply at once and are written on
    another thread; disk errors are reported in `state`.
    """

    def __init__(self, chat: ChatService, file: Path | None = None) -> None:
        self._chat = chat
        self._file = JsonFile(file or presets_file(), _PresetFile, _PresetFile, decode=_decode)
        self._writer = BackgroundWriter(self._file, self._on_write_failed)
        stored = self._file.load()
        self._presets, self._is_locked = stored.value.presets, stored.is_locked
        problem = ""
        if stored.problem == "newer":
            problem = tr("A newer version of QwenDesk saved your presets. Update QwenDesk to use them.")
        elif stored.renamed_to is not None:
            problem = tr("Your presets file was damaged. It was renamed to {0}.", stored.renamed_to.name)
        elif stored.problem:
            problem = tr("Your presets file can't be read: {0}.", stored.reason)
        self.state = Observed(PresetsState(self._names, problem=problem))
        self._undo: tuple[tuple[SamplingPreset, ...], ChatSettings, str] | None = None
        """Presets, settings and id of the chat before the last change that replaced or deleted a preset."""

    @property
    def all(self) -> tuple[SamplingPreset, ...]:
        """The user's own presets, in alphabetical order."""
        return tuple(sorted(self._presets, key=lambda preset: name_order(preset.name)))

    async def close(self) -> None:
        """Return when the last change is written."""
        await self._writer.close()

    def use(self, name: str) -> None:
        """Use this preset in the open chat; sampling overrides are dropped."""
        self._use(self._find(name))

    def use_built_in(self, style: Style, *, thinking: bool) -> None:
        """Use one of the four combinations that the model card recommends."""
        settings = with_style(self._chat.settings, style)
        self._chat.change_settings(msgspec.structs.replace(settings, thinking=thinking))

    def save(self, name: str) -> None:
        """Save the open chat's sampling values as a preset and use it there. Replaces a preset with this name."""
        is_foreign = self._chat.settings.has_foreign_text or self._chat.settings.is_imported
        preset = SamplingPreset(_valid_name(name), self._sampling_values(), is_imported=is_foreign)
        others = tuple(each for each in self._presets if each.name != preset.name)
        self._prepare_change(undoable=len(others) < len(self._presets))
        self._use(preset)
        self._replace((*others, preset))

    def rename(self, name: str, new_name: str) -> None:
        preset, new_name = self._find(name), _valid_name(new_name)
        if new_name == name:
            return
        if any(each.name == new_name for each in self._presets):
            raise BadRequest(tr("Name in use"), tr("There's already a preset called “{0}”.", new_name))
        self._prepare_change(undoable=False)
        renamed = msgspec.structs.replace(preset, name=new_name)
        if self._chat.settings.preset_name == name:
            self._change_chat(preset_name=new_name)
        self._replace(tuple(renamed if each.name == name else each for each in self._presets))

    def delete(self, name: str) -> None:
        """Delete a preset. Chats that use it keep its values."""
        self._find(name)
        self._prepare_change(undoable=True)
        self._replace(tuple(each for each in self._presets if each.name != name))

    def undo(self) -> None:
        """Restore the preset that was deleted or replaced last."""
        if self._undo is None:
            raise BadRequest(tr("Nothing to undo"), tr("There's nothing to undo."))
        (presets, settings, chat_id), self._undo = self._undo, None
        if chat_id == self._chat.chat_id:
            self._change_chat(
                preset=settings.preset, preset_name=settings.preset_name, preset_values=settings.preset_values,
                overrides=settings.overrides,
            )  # fmt: skip
        self._replace(presets)

    def export(self, file: Path) -> None:
        """Write all presets to a file for another PC. Raises QwenDeskError."""
        try:
            JsonFile(file, _PresetFile, _PresetFile).write(_PresetFile(presets=self._presets))
        except OSError as error:
            sentence = tr("{0} couldn't be written: {1}.", file.name, error.strerror or error)
            raise QwenDeskError(tr("Presets not exported"), sentence) from error

    def import_file(self, file: Path) -> int:
        """Add the presets of an exported file under unused names. Return how many are new. Raises QwenDeskError."""
        added: list[SamplingPreset] = []
        for preset in read_export(file):
            name = " ".join(preset.name.split())[:_MAX_NAME_LENGTH]
            taken = {each.name.casefold() for each in (*self._presets, *added)} | set(_RESERVED_NAMES)
            if (name, preset.values) not in [(each.name, each.values) for each in self._presets]:
                added.append(SamplingPreset(_free_name(name, taken), preset.values, is_imported=True))
        if added:
            self._prepare_change(undoable=True)
            self._replace((*self._presets, *added))
        return len(added)

    @property
    def _names(self) -> tuple[str, ...]:
        return tuple(sorted((preset.name for preset in self._presets), key=name_order))

    def _sampling_values(self) -> dict[str, str]:
        """Return the open chat's values of the options that a style, its preset or an override sets."""
        settings, options = self._chat.settings, self._chat.options()
        of_style = sampling("other", "general", thinking=True)
        keys = [key for key in PRESET_KEYS if key in {*of_style, *settings.preset_values, *settings.overrides}]
        return {key: _assignment(getattr(options, key)) for key in keys}

    def _use(self, preset: SamplingPreset) -> None:
        overrides = chat_only_overrides(self._chat.settings)
        self._change_chat(preset="custom", preset_name=preset.name, preset_values=preset.values, overrides=overrides)
        if preset.is_imported:
            self._chat.change_settings(with_foreign_values(self._chat.settings, preset.values))

    def _change_chat(self, **changes: object) -> None:
        self._chat.change_settings(msgspec.structs.replace(self._chat.settings, **changes))

    def _find(self, name: str) -> SamplingPreset:
        found = next((preset for preset in self._presets if preset.name == name), None)
        if found is None:
            raise BadRequest(tr("Preset not found"), tr("The preset “{0}” no longer exists.", name))
        return found

    def _prepare_change(self, *, undoable: bool) -> None:
        """Raise BadRequest if the presets can't be changed, else record the state that `undo` restores."""
        if self._is_locked:
            raise BadRequest(tr("Presets not changed"), self.state.value.problem)
        self._undo = (self._presets, self._chat.settings, self._chat.chat_id) if undoable else None

    def _replace(self, presets: tuple[SamplingPreset, ...]) -> None:
        self._presets = presets
        self.state.set(PresetsState(self._names, can_undo=self._undo is not None))
        self._writer.write(_PresetFile(presets=presets))

    def _on_write_failed(self, error: OSError) -> None:
        sentence = tr("Your presets couldn't be saved: {0}. They apply until QwenDesk closes.", error.strerror or error)
        self.state.update(problem=sentence)


def read_export(file: Path) -> tuple[SamplingPreset, ...]:
    """Return the presets of an exported file. Raises QwenDeskError if any of them can't be used."""
    title = tr("Presets not imported")
    try:
        presets = _decode(read_bounded(file, _MAX_BYTES)).presets
    except OSError as error:
        raise QwenDeskError(title, tr("{0} can't be read: {1}.", file.name, error.strerror or error)) from error
    except NewerFormat as error:
        sentence = tr("A newer version of QwenDesk wrote {0}. Update QwenDesk to import it.", file.name)
        raise QwenDeskError(title, sentence) from error
    except msgspec.DecodeError as error:
        raise QwenDeskError(title, tr("{0} is not a presets file of QwenDesk.", file.name)) from error
    for preset in presets:
        if not preset.name.strip() or not set(preset.values) <= set(PRESET_KEYS):
            raise QwenDeskError(title, tr("“{0}” in {1} sets options that presets can't hold.", preset.name, file.name))
        try:
            apply_assignments(GenerationOptions(), preset.values)
        except BadOption as error:
            sentence = tr("“{0}” in {1} can't be used. {2}", preset.name, file.name, error.sentence)
            raise QwenDeskError(title, sentence) from error
    if not presets:
        raise QwenDeskError(title, tr("{0} contains no presets.", file.name))
    return presets


def _decode(content: bytes) -> _PresetFile:
    """Decode a file of presets. Raises NewerFormat and msgspec.DecodeError."""
    header = decode_json(content, _PresetHeader)
    if header.format != _FORMAT:
        raise msgspec.DecodeError(f"the format is {header.format!r}")
    if header.version > _VERSION:
        raise NewerFormat("Newer presets", f"The format has version {header.version}; known is {_VERSION}.")
    return decode_json(content, _PresetFile)


def _valid_name(name: str) -> str:
    name = " ".join(name.split())
    if not name or len(name) > _MAX_NAME_LENGTH:
        raise BadRequest(tr("Name can't be used"), tr("Use 1 to {0} characters.", _MAX_NAME_LENGTH))
    if name.casefold() in _RESERVED_NAMES:
        raise BadRequest(tr("Name in use"), tr("“{0}” is a built-in style. Choose another name.", name))
    return name


def _free_name(name: str, taken: Iterable[str]) -> str:
    free, number = name, 2
    while free.casefold() in taken:
        free, number = f"{name} ({number})", number + 1
    return free


def _assignment(value: object) -> str:
    """Return `value` in the form that `--set` reads."""
    if isinstance(value, tuple):
        return "; ".join(str(each) for each in value) + (";" if len(value) == 1 else "")
    return ("on" if value else "off") if isinstance(value, bool) else str(value)
