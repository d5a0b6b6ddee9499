"""Themes: TOML files of base colours and roles, each read into an immutable value."""

import functools
import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec
from PySide6.QtGui import QColor, QFont, QFontDatabase, QPalette

from qwendesk.core.paths import resources_folder

_ROLE = re.compile(r"^(?P<top>\w+)(?: (?P<percent>\d{1,3})% over (?P<under>\w+))?$")
_POOR_DEFAULTS = frozenset({"dejavu sans", "sans serif", "sans", "monospace", "bitstream vera sans", "helvetica", ""})
_GOOD_FAMILIES = ("Inter", "Cantarell", "Noto Sans", "Ubuntu", "Open Sans", "Roboto", "Liberation Sans")
_MONO_FAMILIES = (
    "JetBrains Mono",
    "Cascadia Mono",
    "SF Mono",
    "Menlo",
    "Consolas",
    "Noto Sans Mono",
    "DejaVu Sans Mono",
    "Liberation Mono",
    "monospace",
)


class Theme(msgspec.Struct, frozen=True, kw_only=True):
    """The look of the window: a colour for each role, font families and the text scale."""

    name: str
    is_dark: bool
    roles: Mapping[str, str]
    """Colours as #RRGGBB, by role."""
    text_scale: float = 1.0
    is_compact: bool = False

    def __getitem__(self, role: str) -> str:
        """Return the colour of a role as #RRGGBB. Raise KeyError if the theme lacks it."""
        return self.roles[role]

    def color(self, role: str) -> QColor:
        return QColor(self.roles[role])

    def px(self, size: float) -> int:
        """Return a text size in logical pixels at the chosen zoom."""
        return max(8, round(size * self.text_scale))

    def space(self, pixels: int) -> int:
        """Return a gap or padding in logical pixels at the chosen density; compact is about two thirds.

        Comfortable values are multiples of 4; compact ones are even, so that their halves are whole.
        """
        return min(pixels, max(1, 2 * round(pixels / 3))) if self.is_compact else pixels

    def height(self, pixels: int) -> int:
        """Return the minimum height of a field or list row at the chosen density; compact is 4 pixels less."""
        return pixels - 4 if self.is_compact else pixels

    def font(self, size: float, weight: QFont.Weight = QFont.Weight.Normal) -> QFont:
        font = QFont(list(ui_families()))
        font.setPixelSize(self.px(size))
        font.setWeight(weight)
        return font

    def mono_font(self, size: float) -> QFont:
        font = QFont(list(mono_families()))
        font.setStyleHint(QFont.StyleHint.Monospace)
        font.setPixelSize(self.px(size))
        return font


def theme_folder() -> Path:
    return resources_folder() / "themes"


def load_theme(name: str, text_scale: float = 1.0, *, is_compact: bool = False) -> Theme:
    """Return the theme of resources/themes/NAME.toml. Raise ValueError if a role refers to an unknown colour."""
    return msgspec.structs.replace(_read_theme(name), text_scale=text_scale, is_compact=is_compact)


@functools.cache
def _read_theme(name: str) -> Theme:
    data: dict[str, Any] = tomllib.loads((theme_folder() / f"{name}.toml").read_text(encoding="utf-8"))
    roles = {role: resolve(rule, data["base"]) for role, rule in data["roles"].items()}
    return Theme(name=data["name"], is_dark=data["scheme"] == "dark", roles=MappingProxyType(roles))


def resolve(rule: str, base: Mapping[str, str]) -> str:
    """Return the colour of a role's rule, "NAME" or "NAME N% over NAME" (a tint), as #RRGGBB."""
    match = _ROLE.match(rule)
    if match is None or match["top"] not in base or (match["under"] or match["top"]) not in base:
        raise ValueError(f"not a colour rule of this theme: {rule}")
    if match["under"] is None:
        return base[match["top"]]
    return mix(base[match["top"]], base[match["under"]], int(match["percent"]) / 100)


def mix(top: str, under: str, share: float) -> str:
    """Return `share` (0 to 1) of the colour `top` over `under`. All three are #RRGGBB."""
    pairs = zip(_channels(top), _channels(under), strict=True)
    return "#" + "".join(f"{round(upper * share + lower * (1 - share)):02X}" for upper, lower in pairs)


def contrast(one: str, other: str) -> float:
    """Return the WCAG contrast ratio of two #RRGGBB colours, from 1 to 21."""
    light, dark = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


class _LanguageFonts:
    families: tuple[str, ...] = ()


def use_language_fonts(families: Iterable[str]) -> tuple[str, ...]:
    """Use the installed ones of `families` for letters that the window's own fonts lack. Return those."""
    _LanguageFonts.families = tuple(family for family in families if QFontDatabase.hasFamily(family))
    return _LanguageFonts.families


def ui_families() -> tuple[str, ...]:
    """Return the window's font families: the system's, or a better installed one if that is only a fallback."""
    return (*_system_families(), *_LanguageFonts.families)


def mono_families() -> tuple[str, ...]:
    """Return the font families for code, commands and reports."""
    return (*_MONO_FAMILIES, *_LanguageFonts.families)


def mono_families_css() -> str:
    """Return `mono_families` as the value of `font-family` in a style sheet."""
    return ", ".join(f'"{family}"' for family in mono_families())


@functools.cache
def _system_families() -> tuple[str, ...]:
    system = QFontDatabase.systemFont(QFontDatabase.SystemFont.GeneralFont).family()
    if system.lower() not in _POOR_DEFAULTS:
        return (system,)
    installed = set(QFontDatabase.families())
    better = next((family for family in _GOOD_FAMILIES if family in installed), "")
    return tuple(family for family in (better, system or "sans-serif") if family)


def palette(theme: Theme) -> QPalette:
    """Return the QPalette for everything that the stylesheet doesn't style: native menus, selections, placeholders."""
    result = QPalette()
    group = QPalette.ColorRole
    for role, name in (
        (group.Window, "window"),
        (group.Base, "field"),
        (group.AlternateBase, "card"),
        (group.Button, "card"),
        (group.ToolTipBase, "tooltip"),
        (group.Text, "text"),
        (group.WindowText, "text"),
        (group.ButtonText, "text"),
        (group.ToolTipText, "text"),
        (group.PlaceholderText, "text_dim"),
        (group.Highlight, "selection"),
        (group.HighlightedText, "selection_text"),
        (group.Link, "text_link"),
        (group.LinkVisited, "text_link"),
        (group.Accent, "accent"),
        (group.Mid, "border"),
    ):
        result.setColor(role, theme.color(name))
    for role in (group.Text, group.WindowText, group.ButtonText):
        result.setColor(QPalette.ColorGroup.Disabled, role, theme.color("text_off"))
    return result


def _channels(color: str) -> tuple[int, int, int]:
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)


def _luminance(color: str) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (v / 255 for v in _channels(color))]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
