"""The part of the thinking menu that says how much the model thinks, where the chat template takes an effort."""

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtGui import QAction, QActionGroup
from PySide6.QtWidgets import QWidget

from qwendesk.core.translation import tr
from qwendesk.widgets.popups import Menu
from qwendesk.widgets.rows.option_texts import choice_text


class EffortMenu(Menu):
    chosen = Signal(str)
    """One of the template's values, or "auto" for its default."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("composer.menu.effort")
        self.setToolTipsVisible(True)
        self._group = QActionGroup(self)
        self._values: tuple[str, ...] = ()

    def show_values(self, values: Sequence[str], default: str, chosen: str) -> None:
        """Show the template's values, of which `default` is its own, and check the chosen one."""
        if tuple(values) != self._values:
            self._values = tuple(values)
            self.clear()
            for value in values:
                self._add(value, default)
        wanted = chosen if chosen in values else default
        self.setTitle(tr("Effort: {0}", choice_text(wanted or "auto")))
        for action in self.actions():
            action.setChecked(action.data() == wanted)

    def _add(self, value: str, default: str) -> None:
        name = choice_text(value)
        action = QAction(tr("{0} (default)", name) if value == default else name, self)
        action.setObjectName(f"composer.effort.{value}")
        action.setData(value)
        action.setCheckable(True)
        action.setToolTip(tr("How much the model thinks. A change processes the whole chat again."))
        # The default is not sent, so that another model's default counts after a change of the model.
        action.triggered.connect(lambda _checked=False: self.chosen.emit("auto" if value == default else value))
        self._group.addAction(action)
        self.addAction(action)
