"""Texts of option rows, made from an Entry. No widgets here."""

import typing
from typing import Any

from qwendesk.core.flags import spellings
from qwendesk.core.number_format import show_number
from qwendesk.core.settings import Entry, lowest_number
from qwendesk.core.translation import join_list, join_sentences, mark, tr

# Labels of values. Technical terms such as q8_0, mmap and yarn have none and are shown unchanged.
_CHOICES = {
    "auto": mark("Auto"),
    "on": mark("On"),
    "off": mark("Off"),
    "system": mark("Follow the system"),
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
    "minimal": mark("Minimal"),
    "low": mark("Low"),
    "medium": mark("Medium"),
    "high": mark("High"),
    "xhigh": mark("Very high"),
    "max": mark("Maximum"),
    "stop": mark("Stop"),
    "drop_oldest": mark("Drop the oldest"),
    "growing": mark("Those that take VRAM"),
    "full_screen": mark("Full screen"),
    "listed": mark("Listed only"),
    "unload": mark("Unload"),
    "experts": mark("Experts to RAM"),
    "keep": mark("Keep loaded"),
    "duckduckgo": "DuckDuckGo",
    "brave": "Brave Search",
    "searxng": "SearXNG",
    "next_message": mark("With my next message"),
    "ask": mark("Ask"),
    "automatic": mark("Automatically"),
    "never": mark("Never"),
}


def section_slug(entry: Entry) -> str:
    """Return the section's first word for object names: "network"."""
    return entry.setting.section.lower().split()[0]


def choice_text(choice: Any) -> str:
    """Return the label of a value. Technical terms are returned unchanged."""
    return tr(_CHOICES.get(choice, str(choice)))


def value_text(entry: Entry, value: Any) -> str:
    """Return a value as shown to users: "On", "1 GB", "none"."""
    if isinstance(value, bool):
        return tr("On") if value else tr("Off")
    if value in entry.choices:
        return choice_text(value)
    if is_special(entry, value):
        return tr(entry.setting.minus_one)
    text = edit_text(value)
    if not text:
        return tr("empty")
    return _with_unit(entry, text)


def is_special(entry: Entry, value: Any) -> bool:
    """Return True for a -1 that is shown as a word."""
    return bool(entry.setting.minus_one) and value == -1


def edit_text(value: Any) -> str:
    """Return a value as text that core.settings.parse reads back."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):
        return f"{value:g}" if float(f"{value:g}") == value else repr(value)
    if isinstance(value, tuple):
        pieces = [edit_text(item) for item in value]
        return "; ".join(pieces) + (";" if len(pieces) == 1 and "," in pieces[0] else "")
    return "" if value is None else str(value)


def help_text(entry: Entry) -> str:
    """Return the help text with its source."""
    setting = entry.setting
    return join_sentences(tr(setting.help), tr("Source: {0}.", tr(setting.source)) if setting.source else "")


def tooltip(entry: Entry) -> str:
    """Return the tooltip: the label, llama.cpp's name for the option, the range, and what an empty field means."""
    setting = entry.setting
    lines = [
        tr(setting.label),
        tr("llama.cpp: {0}", setting.flag) if setting.flag else "",
        range_text(entry),
        tr("Empty: {0}", tr(setting.minus_one)) if setting.minus_one else "",
    ]
    return "\n".join(line for line in lines if line)


def range_text(entry: Entry) -> str:
    """Return the allowed range, as in "From 0 to 256 GB"; "" if there is none."""
    low, high = lowest_number(entry), entry.setting.high
    if low is not None and high is not None:
        return tr("From {0} to {1}", show_number(low), _with_unit(entry, show_number(high)))
    return tr("From {0}", _with_unit(entry, show_number(low))) if low is not None else ""


def _with_unit(entry: Entry, number: str) -> str:
    return f"{number} {tr(entry.setting.unit)}" if entry.setting.unit else number


def search_words(entry: Entry) -> str:
    """Return the text that is searched for an option, in lower case."""
    setting = entry.setting
    texts = (setting.label, setting.help, setting.section, *setting.choice_help.values())
    parts = (*texts, *map(tr, texts), setting.flag, entry.key, *map(str, entry.choices), *spellings(entry.key))
    return " ".join(parts).lower()


# Words that a found row names at most.
_MOST_WORDS = 3


def found_by(query: str, words: str, shown: str) -> str:
    """Return by which of its hidden words a search found something; "" if what is shown has the whole query."""
    shown = shown.lower()
    missing = [each for each in query.lower().split() if each not in shown]
    if not missing:
        return ""
    known = dict.fromkeys(word.strip(".,:;()") for word in words.lower().split())
    found = [word for word in known if any(each in word for each in missing)]
    return tr("Found by: {0}", join_list(found[:_MOST_WORDS] or [query]))


def is_number(entry: Entry) -> bool:
    kinds = (entry.type, *typing.get_args(entry.type))
    return int in kinds or float in kinds


def is_list(entry: Entry) -> bool:
    return typing.get_origin(entry.type) is tuple
