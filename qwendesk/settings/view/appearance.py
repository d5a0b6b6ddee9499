"""Keeps the look of the window (theme, density, motion, text size) and the options in sync."""

from PySide6.QtCore import QObject

from qwendesk.core.app_options import AppOptions
from qwendesk.settings.service import SettingsService
from qwendesk.widgets.theme_keeper import app_theme


class AppearanceSync(QObject):
    """Applies the options to the theme, and saves what the user changes elsewhere (Ctrl +, the rail)."""

    def __init__(self, settings: SettingsService) -> None:
        super().__init__()
        self._settings, self._options = settings, settings.options
        self._theme, self._percent = app_theme().choice, round(app_theme().text_scale * 100)
        app_theme().chosen.connect(self._on_chosen)
        self._unsubscribe = settings.subscribe(self._on_options)

    def apply(self, *, with_theme: bool) -> None:
        """Apply the options. Without `with_theme`, keep the theme that was given on the command line."""
        options = self._settings.options
        self._set_zoom(options)
        app_theme().set_density(options.density)
        app_theme().motion.choose(options.reduced_motion)
        if with_theme:
            self._set_theme(options)

    def close(self) -> None:
        """Disconnect from the theme, which lives longer than one window."""
        app_theme().chosen.disconnect(self._on_chosen)
        self._unsubscribe()

    def _on_options(self, options: AppOptions) -> None:
        before, self._options = self._options, options
        if options.zoom_percent != before.zoom_percent:
            self._set_zoom(options)
        app_theme().set_density(options.density)
        app_theme().motion.choose(options.reduced_motion)
        if options.theme != before.theme:
            self._set_theme(options)

    def _set_zoom(self, options: AppOptions) -> None:
        self._percent = options.zoom_percent
        app_theme().set_text_scale(options.zoom_percent / 100)

    def _set_theme(self, options: AppOptions) -> None:
        self._theme = options.theme
        app_theme().choose(options.theme)

    def _on_chosen(self) -> None:
        # Compare with what was shown instead of the options, so that a theme from the command line is not saved.
        percent, theme = round(app_theme().text_scale * 100), app_theme().choice
        if percent != self._percent:
            self._percent = percent
            self._settings.change({"zoom_percent": percent})
        if theme != self._theme:
            self._theme = theme
            self._settings.change({"theme": theme})
