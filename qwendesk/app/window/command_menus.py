"""Opens the main menu, the command palette and the shortcuts dialog."""

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QObject, QPoint, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QWidget

from qwendesk.app.window.main_window import MainWindow
from qwendesk.app.window.palette import MOST_RECENT, Palette
from qwendesk.app.window.shortcuts_dialog import ShortcutsDialog
from qwendesk.core.translation import tr
from qwendesk.widgets.actions import COMMANDS, GROUPS, ActionId, install, installed
from qwendesk.widgets.popups import Menu
from qwendesk.widgets.theme_keeper import app_theme

_UNGROUPED = "App"
"""The actions of this group are in the menu itself; each other group has a submenu."""

_PALETTE_TOP = 64
"""Distance of the palette from the upper edge of the window, in pixels."""


class CommandMenus(QObject):
    """Opens the menus, and remembers the most recently used commands."""

    recent_changed = Signal()

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window
        self._recent: tuple[str, ...] = ()
        install(
            window,
            {
                "palette": self.open_palette,
                "menu": self.open_menu,
                "shortcuts": self.open_shortcuts,
                "theme_system": lambda: app_theme().choose("system"),
                "theme_dark": lambda: app_theme().choose("dark"),
                "theme_light": lambda: app_theme().choose("light"),
                "theme_contrast": lambda: app_theme().choose("contrast"),
            },
        )
        window.top_bar.menu_asked.connect(self.open_menu)

    @property
    def recent(self) -> tuple[str, ...]:
        """Ids of the most recently used commands, the latest first."""
        return self._recent

    def remember(self, recent: Sequence[str]) -> None:
        """Restore the most recently used commands of an earlier run."""
        self._recent = tuple(recent)[:MOST_RECENT]

    def open_palette(self) -> None:
        palette = Palette(installed(self._window), self._recent, self._window)
        palette.chosen.connect(self._on_chosen)
        palette.open_at(self._window, _PALETTE_TOP)

    def open_menu(self) -> None:
        button = self._window.top_bar.menu_button
        menu = _main_menu(self._window, installed(self._window))
        width = menu.sizeHint().width()
        menu.popup(button.mapToGlobal(QPoint(button.width() - width, button.height() + 4)))

    def open_shortcuts(self) -> None:
        ShortcutsDialog(installed(self._window), self._window).open()

    def _on_chosen(self, key: str) -> None:
        self._recent = (key, *(each for each in self._recent if each != key))[:MOST_RECENT]
        self.recent_changed.emit()


def _main_menu(parent: QWidget, actions: Mapping[ActionId, QAction]) -> Menu:
    """Build the menu from the table of commands. It deletes itself when it is closed."""
    menu = Menu(parent)
    menu.setObjectName("menu")
    menu.setAccessibleName(tr("Menu"))
    for group in GROUPS:
        mine = [action for key, action in actions.items() if COMMANDS[key].group == group and key != "menu"]
        if group == _UNGROUPED:
            menu.addSeparator()
            menu.addActions(mine)
        elif mine:
            submenu = menu.add_submenu(tr(group), f"menu.{group.lower()}")
            submenu.addActions(mine)
    menu.aboutToHide.connect(menu.deleteLater)
    return menu
