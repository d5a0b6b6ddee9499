"""The person's own sampling presets: kept in a file, chosen for the open chat.

A preset holds sampling alone; a system prompt is kept in the library of prompts. A chat takes a copy of the values, so
it goes on as it is when the preset is changed or deleted.
"""

from collections.abc import Callable
from pathlib import Path

import msgspec

from qwendesk.core import paths
from qwendesk.core.chats import ChatSettings
from qwendesk.core.errors import BadRequest, QwenDeskError
from qwendesk.core.presets import Style, sampling
from qwendesk.core.subscribers import Subscribers
from qwendesk.services.chat import preset_file
from qwendesk.services.chat.preset_file import PRESET_KEYS, SamplingPreset
from qwendesk.services.chat.service import ChatService

_LONGEST_NAME = 60
_RESERVED = ("general", "coding", "reasoning", "custom")


def presets_file() -> Path:
    return paths.config_folder() / "presets.json"


class PresetsService:
    """Owns the presets. Methods are called on the event loop's thread; the file is small enough to write there.

    Changes raise BadRequest for what cannot be done, and QwenDeskError when the file cannot be written: the change
    holds until the app ends.
    """

    def __init__(self, chat: ChatService, file: Path | None = None) -> None:
        self._chat = chat
        self._file = file or presets_file()
        found = preset_file.read(self._file)
        self._presets, self._is_locked = found.presets, found.is_locked
        self.problem = found.problem
        """What is wrong with the file, in a sentence; "" when nothing is."""
        self._before: tuple[tuple[SamplingPreset, ...], ChatSettings, str] | None = None
        """Presets before the last change that took something away, and the open chat's settings then, with its id."""
        self._subscribers = Subscribers[None]()

    def subscribe(self, callback: Callable[[None], None]) -> Callable[[], None]:
        """Call `callback` each time a preset changed. Returns what ends it."""
        return self._subscribers.add(callback)

    @property
    def names(self) -> tuple[str, ...]:
        """In the order of the alphabet."""
        return tuple(sorted((preset.name for preset in self._presets), key=str.casefold))

    @property
    def can_undo(self) -> bool:
        return self._before is not None

    def use(self, name: str) -> None:
        """Answers of the open chat are made by this preset from now on; what was set by hand is dropped."""
        self._choose(self._find(name))

    def use_built_in(self, style: Style, *, thinking: bool) -> None:
        """One of the model card's four."""
        self._set(preset=style, thinking=thinking, preset_name="", preset_values={}, overrides=self._kept())

    def save(self, name: str) -> None:
        """Keep how the open chat's answers are sampled now, and use it there; a preset of this name is replaced."""
        preset = SamplingPreset(_checked(name), self._values())
        replaced = any(each.name == preset.name for each in self._presets)
        self._note(undoable=replaced)
        self._choose(preset)
        self._put((*(each for each in self._presets if each.name != preset.name), preset))

    def rename(self, name: str, new_name: str) -> None:
        preset, checked = self._find(name), _checked(new_name)
        if checked == name:
            return
        if any(each.name == checked for each in self._presets):
            raise BadRequest("Name in use", f'There is already a preset called "{checked}".')
        self._note(undoable=False)
        renamed = msgspec.structs.replace(preset, name=checked)
        if self._chat.settings.preset_name == name:
            self._set(preset_name=checked)
        self._put(tuple(renamed if each.name == name else each for each in self._presets))

    def delete(self, name: str) -> None:
        """A chat that uses it goes on with what it said."""
        self._find(name)
        self._note(undoable=True)
        self._put(tuple(each for each in self._presets if each.name != name))

    def undo(self) -> None:
        """Bring back what was deleted or written over last."""
        if self._before is None:
            raise BadRequest("Nothing to undo", "There is nothing to bring back.")
        (presets, settings, chat_id), self._before = self._before, None
        if chat_id == self._chat.chat_id:
            self._set(
                preset=settings.preset, preset_name=settings.preset_name, preset_values=settings.preset_values,
                overrides=settings.overrides,
            )  # fmt: skip
        self._put(presets)

    def export(self, file: Path) -> None:
        """All presets as a file for another PC. Raises QwenDeskError."""
        try:
            preset_file.write(file, self._presets)
        except OSError as error:
            raise QwenDeskError(
                "Not exported", f"The presets could not be written: {error.strerror or error}."
            ) from error

    def take_in(self, file: Path) -> int:
        """Add the presets of an exported file; how many. One whose name is taken gets another. Raises QwenDeskError."""
        added: list[SamplingPreset] = []
        for preset in preset_file.read_export(file):
            name = " ".join(preset.name.split())[:_LONGEST_NAME]
            taken = {each.name.casefold() for each in (*self._presets, *added)} | set(_RESERVED)
            if SamplingPreset(name, preset.values) in self._presets:
                continue
            added.append(SamplingPreset(_free_name(name, taken), preset.values))
        if added:
            self._note(undoable=True)
            self._put((*self._presets, *added))
        return len(added)

    def _values(self) -> dict[str, str]:
        """What the open chat's answers are sampled by, as far as a preset says it."""
        settings, options = self._chat.settings, self._chat.options()
        of_style = sampling("other", "general", thinking=True)
        named = [key for key in PRESET_KEYS if key in {*of_style, *settings.preset_values, *settings.overrides}]
        return {key: _text(getattr(options, key)) for key in named}

    def _choose(self, preset: SamplingPreset) -> None:
        self._set(preset="custom", preset_name=preset.name, preset_values=preset.values, overrides=self._kept())

    def _kept(self) -> dict[str, str]:
        """What was set by hand and is no preset's."""
        return {key: text for key, text in self._chat.settings.overrides.items() if key not in PRESET_KEYS}

    def _set(self, **changes: object) -> None:
        self._chat.change_settings(msgspec.structs.replace(self._chat.settings, **changes))

    def _find(self, name: str) -> SamplingPreset:
        found = next((preset for preset in self._presets if preset.name == name), None)
        if found is None:
            raise BadRequest("No such preset", f'There is no preset "{name}" any more.')
        return found

    def _note(self, *, undoable: bool) -> None:
        if self._is_locked:
            raise BadRequest("Presets not changed", self.problem)
        self._before = (self._presets, self._chat.settings, self._chat.chat_id) if undoable else None

    def _put(self, presets: tuple[SamplingPreset, ...]) -> None:
        self._presets = presets
        self.problem = ""
        self._subscribers.notify(None)
        try:
            preset_file.write(self._file, presets)
        except OSError as error:
            sentence = f"Your presets could not be saved: {error.strerror or error}. They hold until the app ends."
            raise QwenDeskError("Presets not saved", sentence) from error


def is_changed(settings: ChatSettings) -> bool:
    """Whether anything that a preset holds was set by hand."""
    return any(key in PRESET_KEYS for key in settings.overrides)


def _checked(name: str) -> str:
    name = " ".join(name.split())
    if not name or len(name) > _LONGEST_NAME:
        raise BadRequest("Bad name", f"Give the preset a name of 1 to {_LONGEST_NAME} characters.")
    if name.casefold() in _RESERVED:
        raise BadRequest("Name in use", f'"{name}" is one of the styles. Choose another name.')
    return name


def _free_name(name: str, taken: set[str]) -> str:
    free, number = name, 2
    while free.casefold() in taken:
        free, number = f"{name} ({number})", number + 1
    return free


def _text(value: object) -> str:
    """As `--set` reads it back."""
    if isinstance(value, tuple):
        return "; ".join(str(each) for each in value) + (";" if len(value) == 1 else "")
    return ("on" if value else "off") if isinstance(value, bool) else str(value)
