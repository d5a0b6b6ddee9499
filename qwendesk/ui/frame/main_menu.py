"""The menu of the top bar, made from the table of actions each time it is opened."""

from collections.abc import Mapping

from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu, QWidget

from qwendesk.ui.frame.actions import COMMANDS, GROUPS, ActionId
from qwendesk.ui.kit.text import tr

_LAST = "App"
"""This group's actions stand in the menu itself, the others' in one submenu each."""


def main_menu(parent: QWidget, actions: Mapping[ActionId, QAction]) -> QMenu:
    """Ends itself when it is closed."""
    menu = QMenu(parent)
    menu.setObjectName("menu")
    menu.setAccessibleName(tr("Menu"))
    for group in GROUPS:
        mine = [action for key, action in actions.items() if COMMANDS[key].group == group and key != "menu"]
        if group == _LAST:
            menu.addSeparator()
            menu.addActions(mine)
        elif mine:
            submenu = menu.addMenu(tr(group))
            submenu.setObjectName(f"menu.{group.lower()}")
            submenu.addActions(mine)
    menu.aboutToHide.connect(menu.deleteLater)
    return menu
