"""Rows for a setting with a few values: a switch, buttons or a menu."""

from typing import Any

import msgspec
from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction

from qwendesk.core.settings import Entry
from qwendesk.core.translation import language_names, tr
from qwendesk.widgets.buttons import ChevronButton, TextButton, describe
from qwendesk.widgets.controls import Switch
from qwendesk.widgets.layouts import FlowLayout
from qwendesk.widgets.popups import Menu
from qwendesk.widgets.rows.option_texts import choice_text
from qwendesk.widgets.rows.setting_row import SettingRow


class BoolRow(SettingRow):
    """A row with a switch."""

    def __init__(self, entry: Entry, prefix: str) -> None:
        super().__init__(entry, prefix)
        self._switch = Switch()
        self._switch.clicked.connect(lambda: self.chosen.emit(self._switch.isChecked()))
        self.put_editor(self._switch)

    def tabulate(self) -> None:
        super().tabulate()
        self._editors.addStretch(1)

    def _show(self, value: Any) -> None:
        self._switch.setChecked(bool(value))


_SIDE_BY_SIDE = 4
# Minimum width of the help text in pixels. If there is less space, the buttons wrap first.
_NARROWEST_HELP = 130


class ChoiceRow(SettingRow):
    """A row of buttons, or a menu in a table or if there are many values.

    The value "dark" has the object name "settings.appearance.theme.dark".
    """

    def __init__(self, entry: Entry, prefix: str, *, in_table: bool = False) -> None:
        super().__init__(entry, prefix)
        self._buttons: dict[Any, TextButton] = {}
        self._actions: dict[Any, QAction] = {}
        if len(entry.choices) <= _SIDE_BY_SIDE and not in_table:
            self._make_buttons()
        else:
            self._make_menu()

    def _make_buttons(self) -> None:
        line = FlowLayout(spacing=6)
        line.setAlignment(Qt.AlignmentFlag.AlignVCenter)
        self._editors.addLayout(line)
        self._help.setMinimumWidth(_NARROWEST_HELP)
        for choice in self.entry.choices:
            button = TextButton(self.text_of(choice), kind="tab")
            button.setCheckable(True)
            self.put_editor(button, str(choice), line)
            button.setAccessibleName(tr("{0}: {1}", tr(self.entry.setting.label), self.text_of(choice)))
            button.clicked.connect(lambda _checked=False, choice=choice: self._choose(choice))
            self._buttons[choice] = button

    def _make_menu(self) -> None:
        self._open = ChevronButton()
        self._open.setProperty("leading", "true")
        self._open.clicked.connect(self._open_menu)
        self.put_editor(self._open)
        self._menu = Menu(self)
        for choice in self.entry.choices:
            action = self._menu.addAction(self.text_of(choice))
            action.setObjectName(f"{self.name}.{choice}")
            action.setCheckable(True)
            action.triggered.connect(lambda _checked=False, choice=choice: self._choose(choice))
            self._actions[choice] = action

    def text_of(self, choice: Any) -> str:
        """Return the label of a value."""
        return choice_text(choice)

    def _open_menu(self) -> None:
        self._menu.open_at(self._open)

    def _choose(self, choice: Any) -> None:
        # A click unchecks the checked button. Check it again in case nothing changes.
        self._check(choice)
        self.chosen.emit(choice)

    def _check(self, value: Any) -> None:
        for choice, button in self._buttons.items():
            button.setChecked(choice == value)
        for choice, action in self._actions.items():
            action.setChecked(choice == value)

    def hide_choice(self, choice: Any, *, is_hidden: bool) -> None:
        """Leave out a value of the menu that can't be chosen here."""
        self._actions[choice].setVisible(not is_hidden)

    def _show(self, value: Any) -> None:
        self._check(value)
        if value in self.entry.setting.choice_help:
            self._help.setText(tr(self.entry.setting.choice_help[value]))
        if self._actions:
            self._open.setText(self.text_of(value))
            describe(
                self._open, self.name, tr("{0}: {1}", tr(self.entry.setting.label), self.text_of(value)),
                self._open.toolTip(),
            )  # fmt: skip


class LanguageRow(ChoiceRow):
    """A row for the window's language. Languages are listed by their own names; "" is the system's.

    After another language is chosen, a button offers the necessary restart.
    """

    restart_asked = Signal()

    def __init__(self, entry: Entry, prefix: str) -> None:
        self._names = language_names()
        self._first_value: Any = None
        super().__init__(msgspec.structs.replace(entry, choices=("", *self._names)), prefix)
        self._restart = TextButton(tr("Restart"))
        describe(self._restart, f"{self.name}.restart", tr("Restart"), tr("Quit and start again in this language"))
        self._restart.clicked.connect(self.restart_asked)
        self._restart.hide()
        self._texts.addWidget(self._restart, 0, Qt.AlignmentFlag.AlignLeft)

    def text_of(self, choice: Any) -> str:
        return self._names.get(choice) or (tr("Follow the system") if not choice else str(choice))

    def _show(self, value: Any) -> None:
        super()._show(value)
        if self._first_value is None:
            self._first_value = value
        self._restart.setVisible(value != self._first_value)

    def _reset_tip(self) -> str:
        return tr("Reset to default: {0}", tr("Follow the system"))
