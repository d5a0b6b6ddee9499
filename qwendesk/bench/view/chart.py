"""The chart of the Bench page. Only its sections import it, because pyqtgraph takes a quarter of a second."""

import math
from collections.abc import Sequence

import msgspec
import pyqtgraph as pg
from PySide6.QtCore import Qt
from PySide6.QtGui import QPen
from PySide6.QtWidgets import QSizePolicy

from qwendesk.core.number_format import show_number
from qwendesk.core.units import show_tokens
from qwendesk.widgets.theme_keeper import app_theme, current_theme

pg.setConfigOption("exitCleanup", False)  # Qt deletes the charts with the window

_HEIGHT = 250


class ChartLine(msgspec.Struct, frozen=True):
    """A line of the chart: its points are (depth in tokens, tokens per second)."""

    name: str
    role: str
    """Theme role of its colour."""
    points: tuple[tuple[int, float], ...]
    is_dashed: bool = False


def tick_step(highest: float) -> float:
    """Return a round step, with which an axis up to `highest` has two to five ticks above 0."""
    power = 10.0 ** math.floor(math.log10(highest / 4))
    return next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power * 5 >= highest)


class DepthChart(pg.PlotWidget):  # type: ignore[misc]
    """Draws lines over depths. The depths are as far apart as their ticks are, not as their numbers."""

    def __init__(self) -> None:
        super().__init__(enableMenu=False)
        self.setObjectName("bench.chart")
        self._lines: tuple[ChartLine, ...] = ()
        self._depths: tuple[int, ...] = ()
        self.setFixedHeight(_HEIGHT)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setMouseEnabled(x=False, y=False)
        self.hideButtons()
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        # The wheel scrolls the page.
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        app_theme().changed.connect(self._draw)
        self._draw()

    def show_lines(self, lines: Sequence[ChartLine], depths: Sequence[int]) -> None:
        """Draw `lines`, with a tick for each of `depths`."""
        if (tuple(lines), tuple(depths)) == (self._lines, self._depths):
            return
        self._lines, self._depths = tuple(lines), tuple(depths)
        summary = (f"{line.name}: {', '.join(f'{show_tokens(d)} {s:.0f}' for d, s in line.points)}" for line in lines)
        self.setAccessibleDescription("; ".join(summary))
        self._draw()

    def _draw(self) -> None:
        _clear(self)
        self.getAxis("bottom").setTicks([[(index, show_tokens(depth)) for index, depth in enumerate(self._depths)]])
        for line in self._lines:
            self._draw_line(line)
        highest = max((speed for line in self._lines for _, speed in line.points), default=1.0)
        step = tick_step(1.1 * highest)
        ticks = [step * number for number in range(int(1.1 * highest / step) + 1)]
        self.getAxis("left").setTicks([[(tick, show_number(tick)) for tick in ticks]])
        self.setYRange(0, highest * 1.1, padding=0)
        self.setXRange(-0.2, max(len(self._depths) - 1, 0) + 0.2, padding=0)

    def _draw_line(self, line: ChartLine) -> None:
        color = current_theme().color(line.role)
        pen = QPen(color)
        pen.setCosmetic(True)
        pen.setWidthF(2)
        if line.is_dashed:
            pen.setStyle(Qt.PenStyle.DashLine)
        xs = [self._place(depth) for depth, _ in line.points]
        self.plot(
            xs, [speed for _, speed in line.points], pen=pen, antialias=True,
            symbol=None if line.is_dashed else "o", symbolSize=6, symbolBrush=color, symbolPen=None,
        )  # fmt: skip

    def _place(self, depth: int) -> float:
        """Return where a depth is between the ticks."""
        depths = self._depths
        for index in range(1, len(depths)):
            if depth <= depths[index]:
                before = depths[index - 1]
                return index - 1 + max(0.0, depth - before) / (depths[index] - before)
        return float(max(len(depths) - 1, 0))


def _clear(plot: pg.PlotWidget) -> None:
    """Empty a plot and give it the background, axes and horizontal grid of the theme."""
    theme = current_theme()
    plot.clear()
    plot.setBackground(theme["field"])
    for side in ("left", "bottom"):
        axis = plot.getAxis(side)
        axis.setPen(pg.mkPen(None))
        axis.setTextPen(theme["text_dim"])
        axis.setZValue(-1)  # the grid is behind what is drawn
        axis.setStyle(tickFont=theme.font(11), tickLength=0)
    plot.getAxis("left").setTickPen(pg.mkPen(theme["border"]))
    plot.getAxis("left").setGrid(255)
