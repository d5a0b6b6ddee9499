"""The file of the person's own sampling presets; an exported one has the same form. Values in, values out."""

import logging
from collections.abc import Iterable
from pathlib import Path

import msgspec

from qwendesk.core.errors import BadOption, QwenDeskError
from qwendesk.core.files import decode_json, set_aside, write_whole
from qwendesk.core.options import GenerationOptions
from qwendesk.core.settings import apply_assignments, table

_logger = logging.getLogger(__name__)

FORMAT, VERSION = "qwendesk-presets", 1
_MOST_BYTES = 10_000_000
_OF_THE_CHAT = ("json_schema", "grammar", "enable_thinking", "thinking_budget")
"""What an answer is about, and what the Thinking pill says: each chat's own, in no preset."""

PRESET_KEYS = tuple(key for key in table(GenerationOptions) if key not in _OF_THE_CHAT)
"""The options a preset may hold."""


class SamplingPreset(msgspec.Struct, frozen=True):
    """Values of GenerationOptions under a name, as `--set` takes them; those it lacks are the defaults."""

    name: str
    values: dict[str, str] = {}


class _File(msgspec.Struct, frozen=True):
    format: str
    version: int
    presets: tuple[SamplingPreset, ...]


class _Head(msgspec.Struct, frozen=True):
    format: str = ""
    version: int = 0


class Read(msgspec.Struct, frozen=True):
    """What a start finds."""

    presets: tuple[SamplingPreset, ...] = ()
    problem: str = ""
    """What went wrong, in a sentence."""
    is_locked: bool = False
    """Nothing may be written over it."""


def read(file: Path) -> Read:
    """What is kept there. A file that cannot be used is set aside under another name."""
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        return Read()
    except OSError as error:
        return Read(problem=f"Your presets cannot be read: {error.strerror or error}.", is_locked=True)
    try:
        return Read(_decoded(content, file.name))
    except _Newer:
        sentence = "Your presets were written by a newer QwenDesk. They stay as they are; update QwenDesk to use them."
        return Read(problem=sentence, is_locked=True)
    except QwenDeskError as error:
        _logger.warning("%s cannot be used: %s", file, error.__cause__)
    try:
        aside = set_aside(file)
    except OSError as error:
        return Read(problem=f"The file of your presets is damaged: {error.strerror or error}.", is_locked=True)
    return Read(problem=f"The file of your presets was damaged. It lies beside the others as {aside.name}.")


def read_export(file: Path) -> tuple[SamplingPreset, ...]:
    """The presets of an exported file. Raises QwenDeskError with what is wrong; then none of them is usable."""
    try:
        if file.stat().st_size > _MOST_BYTES:
            raise QwenDeskError("Not imported", f"{file.name} is far too large to hold presets.")
        presets = _decoded(file.read_bytes(), file.name)
    except OSError as error:
        raise QwenDeskError("Not imported", f"{file.name} cannot be read: {error.strerror or error}.") from error
    for preset in presets:
        sentence = f'"{preset.name}" in {file.name} cannot be used here.'
        if not preset.name.strip() or not set(preset.values) <= set(PRESET_KEYS):
            raise QwenDeskError("Not imported", f"{sentence} It sets what no preset holds. Nothing was changed.")
        try:
            apply_assignments(GenerationOptions(), preset.values)
        except BadOption as error:
            raise QwenDeskError("Not imported", f"{sentence} {error.sentence} Nothing was changed.") from error
    if not presets:
        raise QwenDeskError("Not imported", f"{file.name} holds no preset.")
    return presets


def write(file: Path, presets: Iterable[SamplingPreset]) -> None:
    """Raises OSError."""
    whole = _File(FORMAT, VERSION, tuple(presets))
    write_whole(file, msgspec.json.format(msgspec.json.encode(whole), indent=2))


class _Newer(QwenDeskError):
    pass


def _decoded(content: bytes, name: str) -> tuple[SamplingPreset, ...]:
    try:
        head = decode_json(content, _Head)
        if head.format == FORMAT and head.version > VERSION:
            raise _Newer("Newer presets", f"{name} was written by a newer QwenDesk. Update QwenDesk to use it.")
        if head.format != FORMAT:
            raise QwenDeskError("Not presets", f"{name} holds no presets of QwenDesk.")
        return decode_json(content, _File).presets
    except msgspec.DecodeError as error:
        raise QwenDeskError("Not presets", f"{name} holds no presets of QwenDesk.") from error
