"""The chart of auto-tune: a bar for each set of options that was tried. Imported late, because of pyqtgraph."""

from collections.abc import Sequence

import pyqtgraph as pg
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QSizePolicy

from qwendesk.bench.tune_text import TuneLine
from qwendesk.widgets.theme_keeper import app_theme, current_theme

pg.setConfigOption("exitCleanup", False)  # Qt deletes the charts with the window

_HEIGHT = 180
_LEAST_SPAN = 5.0
"""Per cent that the axis shows at least in each direction, so that small differences don't look large."""
_MOST_LOSS = 20.0
"""What is slower by more per cent than this, and than the best gain, goes beyond the chart: gains are what matters."""


class TuneChart(pg.PlotWidget):  # type: ignore[misc]
    """Draws the gain of each line in per cent, numbered like the table. What was found is in the accent colour."""

    def __init__(self) -> None:
        super().__init__(enableMenu=False)
        self.setObjectName("tune.chart")
        self._lines: tuple[TuneLine, ...] = ()
        self.setFixedHeight(_HEIGHT)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setMouseEnabled(x=False, y=False)
        self.hideButtons()
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)  # the wheel scrolls the page
        app_theme().changed.connect(self._draw)
        self._draw()

    def show_lines(self, lines: Sequence[TuneLine]) -> None:
        """Draw a bar for each line that has a gain."""
        if tuple(lines) == self._lines:
            return
        self._lines = tuple(lines)
        self.setAccessibleDescription("; ".join(f"{line.name}: {line.remark}" for line in lines if line.remark))
        self._draw()

    def _draw(self) -> None:
        theme = current_theme()
        self.clear()
        self.setBackground(theme["field"])
        for side in ("left", "bottom"):
            axis = self.getAxis(side)
            axis.setPen(pg.mkPen(None))
            axis.setTextPen(theme["text_dim"])
            axis.setStyle(tickFont=theme.font(11), tickLength=0)
        self.getAxis("left").setTickPen(pg.mkPen(theme["border"]))
        self.getAxis("left").setGrid(255)
        self.getAxis("left").setZValue(-1)  # the grid is behind the bars
        self.getAxis("bottom").setTicks([[(number, str(number)) for number in range(1, len(self._lines) + 1)]])
        gains = [line.gain_percent or 0.0 for line in self._lines]
        brushes = [theme.color("accent" if line.is_found else "text_off") for line in self._lines]
        if gains:
            numbers = list(range(1, len(gains) + 1))
            self.addItem(pg.BarGraphItem(x=numbers, height=gains, width=0.6, brushes=brushes, pen=pg.mkPen(None)))
        self.addItem(pg.InfiniteLine(pos=0, angle=0, pen=pg.mkPen(theme["text_dim"])))
        highest = max(_LEAST_SPAN, *gains, 0.0)
        lowest = max(min(-_LEAST_SPAN, *gains, 0.0), -max(highest, _MOST_LOSS))
        self.setYRange(lowest * 1.1, highest * 1.1, padding=0)
        self.setXRange(0.4, max(len(gains), 8) + 0.6, padding=0)
