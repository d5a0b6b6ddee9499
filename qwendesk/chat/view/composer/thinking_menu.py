"""The menus next to the Thinking button: how long the model may think, and how much where its template takes an
effort.
"""

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtGui import QAction, QActionGroup
from PySide6.QtWidgets import QWidget

from qwendesk.core.number_format import show_count
from qwendesk.core.translation import tr, tr_n
from qwendesk.widgets.popups import Menu
from qwendesk.widgets.rows.option_texts import choice_text

BUDGETS = (256, 512, 2048, 8192)
# Placeholder for a number that the user has yet to enter.
CUSTOM_BUDGET = -2


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
        title = self.addAction(tr("Think for at most"))
        title.setObjectName("composer.thinking.budget.title")
        title.setEnabled(False)
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
