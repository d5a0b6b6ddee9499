"""The settings table: built from the annotated fields of the option structs, used by everything else.

An option is declared once, where its field is. Defaults, validation, `--set key=value`, help texts,
the settings pages and the docs all read this table.
"""

import functools
import re
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal, TypeVar

import msgspec

from qwendesk.core.errors import BadOption

OptionsT = TypeVar("OptionsT", bound=msgspec.Struct)


class Setting(msgspec.Struct, frozen=True):
    """What people see of one option. Goes into the field's `Annotated[...]`."""

    label: str
    flag: str
    """llama.cpp's flag for the same thing; "" where it has none."""
    help: str
    """What it does and what it costs, in a sentence or two."""
    section: str
    unit: str = ""
    low: float | None = None
    high: float | None = None
    source: str = ""
    pattern: str = ""
    """A text must match this regular expression as a whole; "" for any text."""
    example: str = ""
    """What such a text looks like; needed where there is a pattern."""
    is_block: bool = False
    """A text of several lines, taken as it was typed: blanks and line ends at its ends mean something."""
    page: str = ""
    """The page of the window where it is chosen; "" for the settings page itself."""
    basic: bool = False
    """On the first level of the settings; everything else is under Advanced."""
    ollama: str = ""
    """The PARAMETER of an Ollama Modelfile that means the same; "" where there is none."""
    vllm: str = ""
    """The option of `vllm serve`, or the key of its --override-generation-config; "" where there is none."""


class Entry(msgspec.Struct, frozen=True):
    """One row of the table: a `Setting` with what its field declares."""

    key: str
    setting: Setting
    type: Any
    default: Any
    choices: tuple[Any, ...]
    needs_reload: bool


@functools.cache
def table(options: type[msgspec.Struct]) -> Mapping[str, Entry]:
    """The rows of one option struct, by key, in the order they are declared."""
    needs_reload = bool(getattr(options, "needs_reload", False))
    hints = typing.get_type_hints(options, include_extras=True)
    rows: dict[str, Entry] = {}
    for field in msgspec.structs.fields(options):
        hint = hints[field.name]
        setting = next((note for note in getattr(hint, "__metadata__", ()) if isinstance(note, Setting)), None)
        if setting is None:
            continue
        plain = typing.get_args(hint)[0]
        default = field.default if field.default is not msgspec.NODEFAULT else None
        rows[field.name] = Entry(field.name, setting, plain, default, _choices(plain), needs_reload)
    return types.MappingProxyType(rows)


def apply_assignments(options: OptionsT, assignments: Mapping[str, str]) -> OptionsT:
    """`options` with the given `key=value` texts applied.

    Raises BadOption for a key the struct does not have, a value of the wrong type or out of range.
    """
    rows = table(type(options))
    changes: dict[str, Any] = {}
    for key, text in assignments.items():
        if key not in rows:
            known = ", ".join(rows)
            raise BadOption("Unknown option", f'There is no option "{key}". Known options: {known}.')
        changes[key] = parse(rows[key], text)
    return msgspec.structs.replace(options, **changes)


def parse(entry: Entry, text: str) -> Any:
    """The value `text` stands for. Lists are separated by commas (by semicolons where items hold commas)."""
    if not entry.setting.is_block:
        text = text.strip()
    try:
        value = _convert(entry.type, text)
    except (ValueError, msgspec.ValidationError):
        raise BadOption("Bad value", f'"{text}" is no value for {entry.key}: {expected(entry)}.') from None
    check(entry, value)
    return value


def check(entry: Entry, value: Any) -> None:
    """Raises BadOption when a number is outside the range, or a text not of the form, that the setting declares."""
    if isinstance(value, str) and entry.setting.pattern and re.fullmatch(entry.setting.pattern, value) is None:
        raise BadOption("Bad value", f'"{value}" is no value for {entry.key}: {expected(entry)}.')
    if isinstance(value, bool) or not isinstance(value, int | float):
        return
    low, high = entry.setting.low, entry.setting.high
    if (low is not None and value < low) or (high is not None and value > high):
        raise BadOption("Bad value", f"{value:g} is out of range for {entry.key}: {expected(entry)}.")


def check_all(options: msgspec.Struct) -> None:
    """Raises BadOption for the first value of `options` outside its range or not of its form."""
    for key, entry in table(type(options)).items():
        check(entry, getattr(options, key))


def expected(entry: Entry) -> str:
    """What `entry` accepts, in words: "a number from 0 to 2", "one of auto, on, off"."""
    words = [str(choice) for choice in entry.choices]
    kinds = typing.get_args(entry.type) if _is_union(entry.type) else (entry.type,)
    if bool in kinds:
        words.append("true or false")
    elif int in kinds or float in kinds:
        low, high = entry.setting.low, entry.setting.high
        limits = f" from {low:g}" if low is not None else ""
        limits += f" up to {high:g}" if high is not None else ""
        words.append(("a whole number" if int in kinds else "a number") + limits)
    elif not words:
        words.append("a list" if typing.get_origin(entry.type) is tuple else entry.setting.example or "text")
    return "use " + " or ".join(words) if len(words) < 3 else "use one of " + ", ".join(words)


_TRUE, _FALSE = {"true", "on", "yes", "1"}, {"false", "off", "no", "0"}


def _convert(kind: Any, text: str) -> Any:
    if _is_union(kind):
        return _first_that_fits(typing.get_args(kind), text)
    if typing.get_origin(kind) is Literal:
        return (
            next(choice for choice in typing.get_args(kind) if str(choice) == text)
            if text in map(str, typing.get_args(kind))
            else _refuse(text)
        )
    if typing.get_origin(kind) is tuple:
        item = typing.get_args(kind)[0]
        separator = ";" if ";" in text else ","
        return tuple(_convert(item, piece.strip()) for piece in text.split(separator) if piece.strip())
    if kind is bool:
        lowered = text.lower()
        return True if lowered in _TRUE else False if lowered in _FALSE else _refuse(text)
    return kind(text)


def _first_that_fits(kinds: tuple[Any, ...], text: str) -> Any:
    for kind in kinds:
        try:
            return _convert(kind, text)
        except ValueError:
            continue
    return _refuse(text)


def _refuse(text: str) -> Any:
    raise ValueError(text)


def _is_union(kind: Any) -> bool:
    return typing.get_origin(kind) in (typing.Union, types.UnionType)


def _choices(kind: Any) -> tuple[Any, ...]:
    kinds = typing.get_args(kind) if _is_union(kind) else (kind,)
    return tuple(choice for each in kinds if typing.get_origin(each) is Literal for choice in typing.get_args(each))
