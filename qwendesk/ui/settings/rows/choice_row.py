"""A setting with a few choices: side by side when they are few, in a menu when they are many."""

from typing import Any

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QMenu

from qwendesk.core.settings import Entry
from qwendesk.ui.kit.buttons import TextButton, describe
from qwendesk.ui.kit.flow import FlowLayout
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.settings.rows.row import SettingRow
from qwendesk.ui.settings.rows.words import choice_text

_SIDE_BY_SIDE = 4
_NARROWEST_HELP = 150
"""In pixels; where the width ends, the buttons go on in the next line first."""


class ChoiceRow(SettingRow):
    """The choice "dark" is "settings.look.theme.dark": a button, or an action of the menu."""

    def __init__(self, keeper: ThemeKeeper, entry: Entry, prefix: str) -> None:
        super().__init__(keeper, entry, prefix)
        self._buttons: dict[Any, TextButton] = {}
        self._actions: dict[Any, QAction] = {}
        if len(entry.choices) <= _SIDE_BY_SIDE:
            self._make_buttons()
        else:
            self._make_menu()

    def _make_buttons(self) -> None:
        line = FlowLayout(spacing=6)
        line.setAlignment(Qt.AlignmentFlag.AlignVCenter)
        self._editors.addLayout(line)
        self._help.setMinimumWidth(_NARROWEST_HELP)
        for choice in self.entry.choices:
            button = TextButton(self.keeper, self.text_of(choice), kind="tab")
            button.setCheckable(True)
            self.put_editor(button, str(choice), line)
            button.setAccessibleName(tr("{0}: {1}", tr(self.entry.setting.label), self.text_of(choice)))
            button.clicked.connect(lambda _checked=False, choice=choice: self._choose(choice))
            self._buttons[choice] = button

    def _make_menu(self) -> None:
        self._open = TextButton(self.keeper, "", icon_name="down")
        self._open.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
        self._open.clicked.connect(self._open_menu)
        self.put_editor(self._open)
        self._menu = QMenu(self)
        for choice in self.entry.choices:
            action = self._menu.addAction(self.text_of(choice))
            action.setObjectName(f"{self.name}.{choice}")
            action.setCheckable(True)
            action.triggered.connect(lambda _checked=False, choice=choice: self._choose(choice))
            self._actions[choice] = action

    def text_of(self, choice: Any) -> str:
        """What a choice is called."""
        return choice_text(choice)

    def _open_menu(self) -> None:
        self._menu.popup(self._open.mapToGlobal(QPoint(0, self._open.height())))

    def _choose(self, choice: Any) -> None:
        # A click unchecks the one that holds; it is shown again as it is when nothing changes.
        self._check(choice)
        self.chosen.emit(choice)

    def _check(self, value: Any) -> None:
        for choice, button in self._buttons.items():
            button.setChecked(choice == value)
        for choice, action in self._actions.items():
            action.setChecked(choice == value)

    def show_auto(self, text: str) -> None:
        if "auto" in self._buttons:
            self._buttons["auto"].setText(text or self.text_of("auto"))
        elif self._actions and text:
            self._open.setText(text)

    def _show(self, value: Any) -> None:
        self._check(value)
        if self._actions:
            self._open.setText(self.text_of(value))
            describe(
                self._open, self.name, tr("{0}: {1}", tr(self.entry.setting.label), self.text_of(value)),
                self._open.toolTip(),
            )  # fmt: skip
