"""Opens what is made from the table of actions: menu, palette, shortcuts dialog."""

from collections.abc import Sequence

from PySide6.QtCore import QObject, QPoint, Signal

from qwendesk.ui.frame.actions import install, installed
from qwendesk.ui.frame.main_menu import main_menu
from qwendesk.ui.frame.main_window import MainWindow
from qwendesk.ui.frame.palette import MOST_RECENT, Palette
from qwendesk.ui.frame.shortcuts_dialog import ShortcutsDialog
from qwendesk.ui.kit.theme_keeper import ThemeKeeper


class Finder(QObject):
    """Owns which commands were used last."""

    recent_changed = Signal()

    def __init__(self, keeper: ThemeKeeper, window: MainWindow) -> None:
        super().__init__(window)
        self._keeper, self._window = keeper, window
        self._recent: tuple[str, ...] = ()
        install(
            window,
            {
                "palette": self.open_palette,
                "menu": self.open_menu,
                "shortcuts": self.open_shortcuts,
                "theme_system": lambda: keeper.choose("system"),
                "theme_dark": lambda: keeper.choose("dark"),
                "theme_light": lambda: keeper.choose("light"),
                "theme_contrast": lambda: keeper.choose("contrast"),
            },
        )
        window.top_bar.menu_asked.connect(self.open_menu)

    @property
    def recent(self) -> tuple[str, ...]:
        """Ids of commands, the last one first."""
        return self._recent

    def remember(self, recent: Sequence[str]) -> None:
        """As an earlier window knew it."""
        self._recent = tuple(recent)[:MOST_RECENT]

    def open_palette(self) -> None:
        palette = Palette(self._keeper, installed(self._window), self._recent, self._window)
        palette.chosen.connect(self._on_chosen)
        palette.open()

    def open_menu(self) -> None:
        button = self._window.top_bar.menu_button
        menu = main_menu(self._window, installed(self._window))
        width = menu.sizeHint().width()
        menu.popup(button.mapToGlobal(QPoint(button.width() - width, button.height() + 4)))

    def open_shortcuts(self) -> None:
        ShortcutsDialog(installed(self._window), self._window).open()

    def _on_chosen(self, key: str) -> None:
        self._recent = (key, *(each for each in self._recent if each != key))[:MOST_RECENT]
        self.recent_changed.emit()
