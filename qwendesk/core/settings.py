"""The settings table, built from the annotated fields of the option structs.

An option is declared once, at its field. Defaults, validation, `--set key=value`, help texts, the settings pages and
the docs all come from this table.
"""

import functools
import math
import re
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal, TypeVar

import msgspec

from qwendesk.core.errors import BadOption
from qwendesk.core.number_format import show_number
from qwendesk.core.translation import mark, tr

OptionsT = TypeVar("OptionsT", bound=msgspec.Struct)


class Setting(msgspec.Struct, frozen=True):
    """The description of one option, in its field's `Annotated[...]`."""

    label: str
    flag: str
    """llama.cpp's flag for this option; "" if there is none."""
    help: str
    """One or two sentences on what it does and costs."""
    section: str
    unit: str = ""
    low: float | None = None
    high: float | None = None
    source: str = ""
    pattern: str = ""
    """Regular expression that must match the whole text, or each text of a list; "" allows any text."""
    example: str = ""
    """Description of a valid text; required with a pattern."""
    placeholder: str = ""
    """An example of a list in the words of llama.cpp, shown in the empty field; not translated."""
    minus_one: str = ""
    """The word for -1, which the window shows in its place; "" if -1 is an ordinary number."""
    choice_help: Mapping[str, str] = {}
    """Help of each value; the window shows it in place of `help` while the value is chosen."""
    is_block: bool = False
    """The text may have several lines, and leading and trailing white space is significant."""
    page: str = ""
    """The page of the window that shows the option; "" for the settings page."""
    basic: bool = False
    """Set on the first level of the window, without opening Advanced or all options."""
    openai: str = ""
    """The field of requests in OpenAI's API; "" if there is none. The server's other APIs take it too."""
    llama_server: str = ""
    """The field of requests to llama-server, for an option that isn't in OpenAI's API; "" if there is none."""
    ollama: str = ""
    """The equivalent PARAMETER of an Ollama Modelfile; "" if there is none."""
    vllm: str = ""
    """The equivalent option of `vllm serve` or key of its --override-generation-config; "" if there is none."""


class Entry(msgspec.Struct, frozen=True):
    """One row of the table: a `Setting` and the declaration of its field."""

    key: str
    setting: Setting
    type: Any
    default: Any
    choices: tuple[Any, ...]
    needs_reload: bool


@functools.cache
def table(options: type[msgspec.Struct]) -> Mapping[str, Entry]:
    """Return the rows of an option struct by key, in the order of declaration."""
    needs_reload = bool(getattr(options, "needs_reload", False))
    rows: dict[str, Entry] = {}
    for field in msgspec.structs.fields(options):
        setting = next((note for note in getattr(field.type, "__metadata__", ()) if isinstance(note, Setting)), None)
        if setting is None:
            continue
        plain = typing.get_args(field.type)[0]
        default = field.default if field.default is not msgspec.NODEFAULT else None
        rows[field.name] = Entry(field.name, setting, plain, default, _choices(plain), needs_reload)
    return types.MappingProxyType(rows)


def apply_assignments(options: OptionsT, assignments: Mapping[str, str]) -> OptionsT:
    """Return `options` with the values that `assignments` gives as text, by key.

    Raises BadOption for unknown keys and bad values.
    """
    rows = table(type(options))
    changes: dict[str, Any] = {}
    for key, text in assignments.items():
        if key not in rows:
            sentence = tr("There is no option “{0}”. Known options: {1}.", key, ", ".join(rows))
            raise BadOption(tr("Unknown option"), sentence)
        changes[key] = parse(rows[key], text)
    return msgspec.structs.replace(options, **changes)


def parse(entry: Entry, text: str) -> Any:
    """Return the value that `text` stands for. Commas separate items of a list, or semicolons if there are any.

    Raises BadOption for a text that is not a valid value.
    """
    if not entry.setting.is_block:
        text = text.strip()
    try:
        value = _convert(entry.type, text)
    except (ValueError, msgspec.ValidationError):
        raise _bad_value(entry, text) from None
    check(entry, value)
    return value


def check(entry: Entry, value: Any) -> None:
    """Raise BadOption for a number out of range or that is none, and a text that does not match the pattern.

    Each text of a list must match it.
    """
    for text in value if isinstance(value, tuple) else (value,):
        if isinstance(text, str) and entry.setting.pattern and re.fullmatch(entry.setting.pattern, text) is None:
            raise _bad_value(entry, text)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return
    low, high = entry.setting.low, entry.setting.high
    is_number = isinstance(value, int) or math.isfinite(value)
    if not is_number or (low is not None and value < low) or (high is not None and value > high):
        raise _bad_value(entry, f"{value:g}" if isinstance(value, float) else str(value))


def check_all(options: msgspec.Struct) -> None:
    """Raise BadOption for the first invalid value of `options`."""
    for key, entry in table(type(options)).items():
        check(entry, getattr(options, key))


def _bad_value(entry: Entry, text: str) -> BadOption:
    return BadOption(tr("Bad value"), tr("{0} can't be “{1}”. Accepted: {2}.", entry.key, text, accepted_values(entry)))


def accepted_values(entry: Entry) -> str:
    """Return a description of the values that `entry` accepts: "auto, on, off", "a number from 0 up to 2"."""
    words = [", ".join(str(choice) for choice in entry.choices)] if entry.choices else []
    kinds = typing.get_args(entry.type) if _is_union(entry.type) else (entry.type,)
    if bool in kinds:
        words.append("true, false")
    elif int in kinds or float in kinds:
        words.append(_range_text(lowest_number(entry), entry.setting.high, is_whole=int in kinds))
        if entry.setting.minus_one:
            words.append(tr("-1 ({0})", tr(entry.setting.minus_one)))
    elif not words:
        usual = mark("a list") if typing.get_origin(entry.type) is tuple else mark("text")
        words.append(tr(entry.setting.example or usual))
    return "; ".join(words)


def _range_text(low: float | None, high: float | None, *, is_whole: bool) -> str:
    limits = [show_number(each) for each in (low, high) if each is not None]
    match (low is None, high is None):
        case (True, True):
            return tr("a whole number") if is_whole else tr("a number")
        case (False, True):
            return tr("a whole number from {0}", *limits) if is_whole else tr("a number from {0}", *limits)
        case (True, False):
            return tr("a whole number up to {0}", *limits) if is_whole else tr("a number up to {0}", *limits)
        case _:
            source = mark("a whole number from {0} up to {1}") if is_whole else mark("a number from {0} up to {1}")
            return tr(source, *limits)


def lowest_number(entry: Entry) -> float | None:
    """Return the lowest number that `entry` accepts, apart from a -1 with a word of its own; None if there is none."""
    low = entry.setting.low
    return 0 if entry.setting.minus_one and low == -1 else low


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
