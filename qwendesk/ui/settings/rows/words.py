"""What the rows of settings say, made from an Entry. No widgets here."""

import typing
from typing import Any

from qwendesk.core.settings import Entry
from qwendesk.ui.kit.text import mark, tr

_CHOICES = {
    "auto": mark("Auto"),
    "on": mark("On"),
    "off": mark("Off"),
    "system": mark("As the system"),
    "dark": mark("Dark"),
    "light": mark("Light"),
    "contrast": mark("High contrast"),
    "comfortable": mark("Comfortable"),
    "compact": mark("Compact"),
    "gpu": mark("GPU"),
    "cpu": mark("CPU"),
    "all": mark("All"),
    "none": mark("None"),
    "speed": mark("Speed"),
    "balanced": mark("Balanced"),
    "long_context": mark("Long context"),
    "stop": mark("Stop"),
    "drop_oldest": mark("Drop the oldest"),
}
"""Words for choices that are not the field's own terms; q8_0, mmap and yarn stay as they are."""


def section_slug(entry: Entry) -> str:
    """The section's first word, for names: "network"."""
    return entry.setting.section.lower().split()[0]


def choice_text(choice: Any) -> str:
    """ "As the system" for system; a term of the field is left as it is."""
    return tr(_CHOICES.get(choice, str(choice)))


def value_text(entry: Entry, value: Any) -> str:
    """A value for reading: "On", "1 GB", "none"."""
    if isinstance(value, bool):
        return tr("On") if value else tr("Off")
    if value in entry.choices:
        return choice_text(value)
    text = edit_text(value)
    if not text:
        return tr("empty")
    return f"{text} {tr(entry.setting.unit)}" if entry.setting.unit else text


def edit_text(value: Any) -> str:
    """A value as core.settings.parse reads it back."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        return f"{value:g}" if float(f"{value:g}") == value else repr(value)
    if isinstance(value, tuple):
        pieces = [edit_text(item) for item in value]
        return "; ".join(pieces) + (";" if len(pieces) == 1 and "," in pieces[0] else "")
    return "" if value is None else str(value)


def help_text(entry: Entry) -> str:
    """The help with its source."""
    setting = entry.setting
    return tr("{0} Source: {1}.", tr(setting.help), tr(setting.source)) if setting.source else tr(setting.help)


def tooltip(entry: Entry) -> str:
    """Label, what llama.cpp calls it, and what the value may be."""
    setting = entry.setting
    lines = [tr(setting.label), tr("llama.cpp: {0}", setting.flag) if setting.flag else "", range_text(entry)]
    return "\n".join(line for line in lines if line)


def range_text(entry: Entry) -> str:
    """ "From 0 to 256 GB"; "" where there is no limit."""
    low, high, unit = entry.setting.low, entry.setting.high, tr(entry.setting.unit)
    if low is not None and high is not None:
        return tr("From {0} to {1} {2}", _number(low), _number(high), unit).rstrip()
    return tr("From {0} {1}", _number(low), unit).rstrip() if low is not None else ""


def search_words(entry: Entry) -> str:
    """All text a search looks through, in small letters."""
    setting = entry.setting
    parts = (setting.label, setting.help, setting.flag, setting.section, entry.key, *map(str, entry.choices))
    return " ".join(parts).lower()


def is_number(entry: Entry) -> bool:
    kinds = (entry.type, *typing.get_args(entry.type))
    return int in kinds or float in kinds


def is_list(entry: Entry) -> bool:
    return typing.get_origin(entry.type) is tuple


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:g}"
