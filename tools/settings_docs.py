"""Writes docs/settings.md from the settings tables: `python -m tools.settings_docs`."""

from pathlib import Path

import msgspec

from qwendesk.core.app_options import AppOptions
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.options import LoadOptions
from qwendesk.core.settings import Entry, accepted_values, table

FILE = Path(__file__).resolve().parent.parent / "docs" / "settings.md"

_HEAD = """# Settings

Made by `python -m tools.settings_docs` from the tables in `qwendesk/core`; change those, not this page.

The key is the name everywhere: in the settings file, in `--set key=value` and in the window's search. Options in \
**bold** are on the first level of the window; the others are under Advanced, those for loading a model under All \
options.

llama.cpp has options that QwenDesk doesn't offer, such as other PCs as graphics cards. The \
[guide](guide/options.md#what-isnt-offered) lists them.
"""
_PARTS: tuple[tuple[type[msgspec.Struct], str, str], ...] = (
    (
        AppOptions,
        "The app",
        "Kept in `settings.json` in the user's configuration folder. Each takes effect at once, the language at the "
        "next start.",
    ),
    (LoadOptions, "Loading a model", "Changing one needs a reload of the model."),
    (GenerationOptions, "Making an answer", "Sent with every question; none needs a reload."),
)


def page() -> str:
    """The whole document."""
    return "\n".join([_HEAD, *(_part(*part) for part in _PARTS)])


def _part(options: type[msgspec.Struct], title: str, sentence: str) -> str:
    lines = [f"## {title}", "", sentence, ""]
    entries = table(options).values()
    for section in dict.fromkeys(entry.setting.section for entry in entries):
        lines += [f"### {section}", "", "| option | key | default | takes | what it does |", "|---|---|---|---|---|"]
        lines += [_row(entry) for entry in entries if entry.setting.section == section]
        lines.append("")
    return "\n".join(lines)


def _row(entry: Entry) -> str:
    setting = entry.setting
    label = f"**{setting.label}**" if setting.basic else setting.label
    takes = accepted_values(entry)
    unit = f" ({setting.unit})" if setting.unit else ""
    flag = f" llama.cpp: `{setting.flag}`." if setting.flag else ""
    source = f" Source: {setting.source}." if setting.source else ""
    cells = (label, f"`{entry.key}`", _default(entry), takes + unit, f"{setting.help}{flag}{source}")
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _default(entry: Entry) -> str:
    value = entry.default
    if value is None:
        return "none: has to be given"
    if isinstance(value, bool):
        return "`true`" if value else "`false`"
    if value in ("", ()):
        return "empty"
    text = f"`{value:g}`" if isinstance(value, float) else f"`{str(value)!r}`".replace("'", "")
    return f"{text} ({entry.setting.minus_one})" if entry.setting.minus_one and value == -1 else text


def main() -> None:
    FILE.write_text(page(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
