"""The app's options for widgets, and for what the window itself draws from them."""

from typing import Any

from PySide6.QtCore import QObject, Signal

from qwendesk.core.app_options import AppOptions
from qwendesk.core.errors import BadOption, QwenDeskError
from qwendesk.services.settings import SettingsService
from qwendesk.ui.kit.theme_keeper import ThemeKeeper


class SettingsBridge(QObject):
    """The app's options for widgets."""

    changed = Signal()
    """`options` are others now."""
    refused = Signal(str, str)
    """Key, and why its value does not hold."""
    not_saved = Signal(str)
    """The change holds until the app ends; a sentence says why."""

    def __init__(self, service: SettingsService, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._service = service
        self._end = service.subscribe(self._on_options)

    @property
    def options(self) -> AppOptions:
        return self._service.options

    def change(self, key: str, value: Any) -> None:
        try:
            self._service.change({key: value})
        except BadOption as error:
            self.refused.emit(key, error.sentence)
        except QwenDeskError as error:
            self.not_saved.emit(error.sentence)

    def reset(self, key: str) -> None:
        """Back to the default."""
        self.change(key, getattr(AppOptions(), key))

    def close(self) -> None:
        """No news any more."""
        self._end()

    def _on_options(self, _options: AppOptions) -> None:
        self.changed.emit()


class Look(QObject):
    """Keeps the look (theme, density, motion, text size) as the options say.

    What the person chose elsewhere (Ctrl +, rail) becomes an option.
    """

    def __init__(self, keeper: ThemeKeeper, settings: SettingsBridge) -> None:
        super().__init__()
        self._keeper, self._settings = keeper, settings
        self._theme, self._percent = keeper.choice, round(keeper.text_scale * 100)
        keeper.chosen.connect(self._on_chosen)
        settings.changed.connect(self._on_options)
        self._options = settings.options

    def apply(self, *, with_theme: bool) -> None:
        """Show what the options say; `with_theme` False keeps a theme that was asked for at the start."""
        options = self._settings.options
        self._percent = options.zoom_percent
        self._keeper.set_text_scale(options.zoom_percent / 100)
        self._keeper.set_density(options.density)
        self._keeper.motion.choose(options.reduced_motion)
        if with_theme:
            self._theme = options.theme
            self._keeper.choose(options.theme)

    def close(self) -> None:
        """The theme's keeper lives longer than one window."""
        self._keeper.chosen.disconnect(self._on_chosen)
        self._settings.changed.disconnect(self._on_options)

    def _on_options(self) -> None:
        before, options = self._options, self._settings.options
        self._options = options
        if options.zoom_percent != before.zoom_percent:
            self._percent = options.zoom_percent
            self._keeper.set_text_scale(options.zoom_percent / 100)
        self._keeper.set_density(options.density)
        self._keeper.motion.choose(options.reduced_motion)
        if options.theme != before.theme:
            self._theme = options.theme
            self._keeper.choose(options.theme)

    def _on_chosen(self) -> None:
        # Compared with what was shown and not with the options: a theme given at the start is not remembered.
        percent, theme = round(self._keeper.text_scale * 100), self._keeper.choice
        if percent != self._percent:
            self._percent = percent
            self._settings.change("zoom_percent", percent)
        if theme != self._theme:
            self._theme = theme
            self._settings.change("theme", theme)
