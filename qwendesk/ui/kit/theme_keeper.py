"""Which theme is shown: follows the system or the person's choice, and tells every widget that paints."""

from typing import Literal

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QApplication

from qwendesk.ui.kit.motion import Motion
from qwendesk.ui.kit.stylesheet import stylesheet
from qwendesk.ui.kit.theme import Theme, load_theme, palette

ThemeChoice = Literal["system", "dark", "light", "contrast"]
Density = Literal["comfortable", "compact"]
_SMALLEST, _LARGEST, _STEP = 0.8, 1.6, 0.1


class ThemeKeeper(QObject):
    """Owns the current Theme and applies it to the whole application."""

    changed = Signal()
    """`theme` is another one now; emitted after palette and stylesheet are applied."""
    chosen = Signal()
    """`choice` or `text_scale` was given, also when the theme stays as it looks."""

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

    @property
    def theme(self) -> Theme:
        return self._theme

    @property
    def choice(self) -> ThemeChoice:
        return self._choice

    @property
    def text_scale(self) -> float:
        """1.0 is the normal size of text."""
        return self._text_scale

    def choose(self, choice: ThemeChoice) -> None:
        self._choice = choice
        self._refresh()
        self.chosen.emit()

    def set_text_scale(self, scale: float) -> None:
        """1.0 is the normal size; what is too small or too large is brought into range."""
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
        """Larger (positive) or smaller text; 0 goes back to the normal size."""
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
        """Dark or light, or more contrast."""
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
