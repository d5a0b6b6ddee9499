"""How long the model may think: the menu beside the Thinking pill."""

from PySide6.QtCore import Signal
from PySide6.QtGui import QAction, QActionGroup
from PySide6.QtWidgets import QMenu, QWidget

from qwendesk.ui.kit.text import tr, tr_n

BUDGETS = (256, 512, 2048, 8192)
CUSTOM_BUDGET = -2
"""Asks for a number of the person's own."""


class BudgetMenu(QMenu):
    """`chosen` carries tokens, -1 without a limit, or CUSTOM_BUDGET."""

    chosen = Signal(int)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setObjectName("composer.menu.budget")
        self.setToolTipsVisible(True)
        self._group = QActionGroup(self)
        self._actions: dict[int, QAction] = {}
        self._add(-1, "unlimited", tr("Unlimited"), tr("The model thinks as long as it wants"))
        for tokens in BUDGETS:
            text = tr_n("{0} token", "{0} tokens", tokens)
            self._add(tokens, str(tokens), text, tr("After {0} tokens of thought it must answer", f"{tokens:,}"))
        self._add(CUSTOM_BUDGET, "custom", tr("Custom…"), tr("Another number of tokens"))

    def show_budget(self, tokens: int) -> None:
        """Marks the one that holds."""
        self._actions.get(tokens, self._actions[CUSTOM_BUDGET]).setChecked(True)

    def _add(self, tokens: int, name: str, text: str, tip: str) -> None:
        action = self.addAction(text)
        action.setObjectName(f"composer.thinking.budget.{name}")
        action.setCheckable(True)
        action.setToolTip(tip)
        action.triggered.connect(lambda _checked=False: self.chosen.emit(tokens))
        self._group.addAction(action)
        self._actions[tokens] = action
