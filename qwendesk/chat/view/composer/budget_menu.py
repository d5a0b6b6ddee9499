"""The menu next to the Thinking button that limits how long the model may think."""

from PySide6.QtCore import Signal
from PySide6.QtGui import QAction, QActionGroup
from PySide6.QtWidgets import QWidget

from qwendesk.core.number_format import show_count
from qwendesk.core.translation import tr, tr_n
from qwendesk.widgets.popups import Menu

BUDGETS = (256, 512, 2048, 8192)
CUSTOM_BUDGET = -2
"""Placeholder for a number that the user has yet to enter."""


class BudgetMenu(Menu):
    chosen = Signal(int)
    """Tokens, -1 for no limit, or CUSTOM_BUDGET."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("composer.menu.budget")
        self.setToolTipsVisible(True)
        self._group = QActionGroup(self)
        self._actions: dict[int, QAction] = {}
        self._tips: dict[int, str] = {}
        self._add(-1, "unlimited", tr("Unlimited"), tr("The model thinks for as long as it needs"))
        for tokens in BUDGETS:
            text = tr_n("{0} token", "{0} tokens", tokens)
            self._add(
                tokens, str(tokens), text, tr("The model must answer after {0} tokens of thinking", show_count(tokens))
            )
        self._add(CUSTOM_BUDGET, "custom", tr("Custom…"), tr("Choose another number of tokens"))

    def show_budget(self, tokens: int) -> None:
        """Check the entry of the current budget."""
        self._actions.get(tokens, self._actions[CUSTOM_BUDGET]).setChecked(True)

    def show_reason(self, reason: str) -> None:
        """Grey the limits, with the reason as their tooltip; "" enables them."""
        for tokens, action in self._actions.items():
            action.setEnabled(not reason or tokens == -1)
            action.setToolTip(self._tips[tokens] if action.isEnabled() else reason)

    def _add(self, tokens: int, name: str, text: str, tip: str) -> None:
        action = self.addAction(text)
        action.setObjectName(f"composer.thinking.budget.{name}")
        action.setCheckable(True)
        action.setToolTip(tip)
        self._tips[tokens] = tip
        action.triggered.connect(lambda _checked=False: self.chosen.emit(tokens))
        self._group.addAction(action)
        self._actions[tokens] = action
