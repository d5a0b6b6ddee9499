"""Chooses the theme from the system's or the user's setting, and signals changes to widgets."""

import weakref
from typing import Literal, cast

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QApplication

from qwendesk.widgets.motion import Motion
from qwendesk.widgets.stylesheet import stylesheet
from qwendesk.widgets.theme import Theme, load_theme, palette

ThemeChoice = Literal["system", "dark", "light", "contrast"]
Density = Literal["comfortable", "compact"]
_SMALLEST, _LARGEST, _STEP = 0.8, 1.6, 0.1


_PROPERTY = "qwendesk_theme_keeper"
"""Property of the QApplication that holds a weak reference to its ThemeKeeper."""


def app_theme() -> "ThemeKeeper":
    """Return the application's ThemeKeeper. Raise RuntimeError if there is none yet."""
    app = QApplication.instance()
    reference = app.property(_PROPERTY) if app is not None else None
    keeper = reference() if reference is not None else None
    if keeper is None:
        raise RuntimeError("Make a ThemeKeeper before the first widget.")
    return cast("ThemeKeeper", keeper)


def current_theme() -> Theme:
    """Return the current theme."""
    return app_theme().theme


class ThemeKeeper(QObject):
    """Owns the current Theme and applies it to the whole application."""

    changed = Signal()
    """The theme has changed. Emitted after the palette and stylesheet are applied."""
    chosen = Signal()
    """`choice` or `text_scale` was set, even if the theme hasn't changed."""

    def __init__(self, app: QApplication, choice: ThemeChoice = "system") -> None:
        super().__init__(app)
        self._app = app
        self._choice: ThemeChoice = choice
        self._text_scale = 1.0
        self._density: Density = "comfortable"
        self.motion = Motion(app, self)
        app.setStyle("Fusion")
        app.styleHints().colorSchemeChanged.connect(self._on_system_changed)
        app.styleHints().accessibility().contrastPreferenceChanged.connect(self._on_system_changed)
        self._theme = self._wanted()
        self._apply()
        app.setProperty(_PROPERTY, weakref.ref(self))

    @property
    def theme(self) -> Theme:
        return self._theme

    @property
    def choice(self) -> ThemeChoice:
        return self._choice

    @property
    def text_scale(self) -> float:
        """The text size relative to normal (1.0)."""
        return self._text_scale

    def choose(self, choice: ThemeChoice) -> None:
        self._choice = choice
        self._refresh()
        self.chosen.emit()

    def set_text_scale(self, scale: float) -> None:
        """Set the text size relative to normal (1.0), limited to the allowed range."""
        self._text_scale = round(min(_LARGEST, max(_SMALLEST, scale)), 2)
        self._refresh()
        self.chosen.emit()

    @property
    def density(self) -> Density:
        return self._density

    def set_density(self, density: Density) -> None:
        self._density = density
        self._refresh()

    def zoom(self, steps: int) -> None:
        """Make the text larger (positive) or smaller; 0 restores the normal size."""
        self.set_text_scale(1.0 if steps == 0 else self._text_scale + steps * _STEP)

    def _wanted(self) -> Theme:
        hints = self._app.styleHints()
        name: str = self._choice
        if name in ("system", "contrast"):
            is_contrast = hints.accessibility().contrastPreference() is Qt.ContrastPreference.HighContrast
            scheme = "light" if hints.colorScheme() is Qt.ColorScheme.Light else "dark"
            name = f"contrast-{scheme}" if name == "contrast" or is_contrast else scheme
        return load_theme(name, self._text_scale, is_compact=self._density == "compact")

    def _on_system_changed(self, _asked: object) -> None:
        """Follow a change of the system's colour scheme or contrast."""
        self._refresh()

    def _refresh(self) -> None:
        theme = self._wanted()
        if theme != self._theme:
            self._theme = theme
            self._apply()
            self.changed.emit()

    def _apply(self) -> None:
        self._app.setFont(self._theme.font(13))
        self._app.setPalette(palette(self._theme))
        self._app.setStyleSheet(stylesheet(self._theme))
