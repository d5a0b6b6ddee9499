"""The looks in which each picture is taken: a theme, a size of the window and a scale of the screen."""

from collections.abc import Sequence
from itertools import product
from typing import Final

import msgspec
from PySide6.QtWidgets import QWidget

from qwendesk.widgets.theme import Theme, load_theme
from qwendesk.widgets.theme_keeper import ThemeKeeper, app_theme

_THEMES: Final = ("dark", "light", "contrast-dark", "contrast-light")
_HEIGHTS: Final = {1920: 1080, 1280: 800, 960: 720, 900: 640, 560: 720}
"""Width of the window in logical pixels: its height."""
_SCALES: Final = ("1", "1.5", "2")


class Look(msgspec.Struct, frozen=True):
    """The window's theme, its width in logical pixels, and the scale of the screen."""

    theme: str
    width: int
    scale: str

    def __str__(self) -> str:
        return f"{self.theme}-{self.width}@{self.scale}"

    def apply(self, window: QWidget) -> None:
        """Give the theme to the application and the size to `window`."""
        keeper = app_theme()
        if isinstance(keeper, LookTheme):
            keeper.show(self.theme)
        window.resize(self.width, _HEIGHTS[self.width])


class LookTheme(ThemeKeeper):
    """Shows any theme. The offscreen platform has no colour scheme that high contrast could follow."""

    _shown = "dark"

    def show(self, name: str) -> None:
        self._shown = name
        self.choose("contrast" if name.startswith("contrast") else "light" if name == "light" else "dark")

    def _wanted(self) -> Theme:
        return load_theme(self._shown, self.text_scale)


ALL_LOOKS: Final = (
    *(Look(theme, width, scale) for scale, width, theme in product(_SCALES[:2], (1280, 960, 560), ("dark", "light"))),
    Look("dark", 1920, "1"),
    Look("contrast-dark", 1280, "1"),
    Look("contrast-light", 1280, "1"),
)


def read_looks(text: str) -> tuple[Look, ...]:
    """Return the looks named in `text`, such as "dark-1280@1,light-560@1.5". Raise ValueError for one we don't have."""
    return tuple(_read_look(name.strip()) for name in text.split(","))


def by_scale(looks: Sequence[Look]) -> dict[str, tuple[Look, ...]]:
    """Return the looks by the scale of the screen, which holds for a whole process."""
    return {scale: tuple(look for look in looks if look.scale == scale) for scale in {each.scale: 0 for each in looks}}


def _read_look(name: str) -> Look:
    rest, _, scale = name.partition("@")
    theme, _, width = rest.rpartition("-")
    if theme not in _THEMES or not width.isdigit() or int(width) not in _HEIGHTS or scale not in _SCALES:
        raise ValueError(f"There is no look called {name}. Looks are named like dark-1280@1 or contrast-light-560@1.5.")
    return Look(theme, int(width), scale)
