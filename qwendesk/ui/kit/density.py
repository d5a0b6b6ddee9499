"""Keeps the air between things at the chosen density."""

from PySide6.QtCore import QMargins, QObject
from PySide6.QtWidgets import QBoxLayout, QGridLayout, QLayout

from qwendesk.ui.kit.theme_keeper import ThemeKeeper

_SIDE_BY_SIDE = (QBoxLayout.Direction.LeftToRight, QBoxLayout.Direction.RightToLeft)


class Airy(QObject):
    """One layout whose margins above and below, and gaps between rows, follow the density; it ends with the layout.

    Margins at the sides stay: what stands in one line over the whole page would not any more.
    """

    def __init__(self, keeper: ThemeKeeper, layout: QLayout) -> None:
        """The layout has the margins and gaps now that are comfortable."""
        super().__init__(layout)
        self._keeper, self._layout = keeper, layout
        self._margins, self._gap = layout.contentsMargins(), _gap(layout)
        keeper.changed.connect(self._apply)
        self._apply()

    def take(self) -> None:
        """The layout was given other margins and gaps, which are the comfortable ones from now on."""
        self._margins, self._gap = self._layout.contentsMargins(), _gap(self._layout)
        self._apply()

    def _apply(self) -> None:
        theme, margins = self._keeper.theme, self._margins
        above, below = theme.space(margins.top()), theme.space(margins.bottom())
        self._layout.setContentsMargins(QMargins(margins.left(), above, margins.right(), below))
        if self._gap > 0 and isinstance(self._layout, QGridLayout):
            self._layout.setVerticalSpacing(theme.space(self._gap))
        elif self._gap > 0:
            self._layout.setSpacing(theme.space(self._gap))


def _gap(layout: QLayout) -> int:
    """Between its rows; 0 for a row, whose gaps stay."""
    if isinstance(layout, QGridLayout):
        return layout.verticalSpacing()
    is_row = isinstance(layout, QBoxLayout) and layout.direction() in _SIDE_BY_SIDE
    return 0 if is_row else layout.spacing()
