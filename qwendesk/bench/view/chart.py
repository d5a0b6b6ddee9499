"""The chart of the Bench page, drawn by pyqtgraph."""

import asyncio
import importlib
import math
from collections.abc import Sequence
from typing import Any

import msgspec
from PySide6.QtCore import Qt
from PySide6.QtGui import QPen
from PySide6.QtWidgets import QWidget

from qwendesk.core.number_format import show_number
from qwendesk.core.units import show_tokens
from qwendesk.widgets.kit import column
from qwendesk.widgets.tasks import window_tasks
from qwendesk.widgets.theme_keeper import app_theme, current_theme

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


class DepthChart(QWidget):
    """Draws lines over depths. The depths are as far apart as their ticks are, not as their numbers.

    pyqtgraph takes a quarter of a second to import. That happens when there are lines to draw, beside the window.
    """

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("bench.chart")
        self._tasks = window_tasks()
        self._making: asyncio.Task[None] | None = None
        self._plot: Any = None
        self._lines: tuple[ChartLine, ...] = ()
        self._depths: tuple[int, ...] = ()
        self.setFixedHeight(_HEIGHT)
        # The wheel scrolls the page.
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._column = column(spacing=0)
        self.setLayout(self._column)
        app_theme().changed.connect(self._draw)

    @property
    def is_drawn(self) -> bool:
        return self._plot is not None

    def show_lines(self, lines: Sequence[ChartLine], depths: Sequence[int]) -> None:
        """Draw `lines`, with a tick for each of `depths`."""
        if (tuple(lines), tuple(depths)) == (self._lines, self._depths):
            return
        self._lines, self._depths = tuple(lines), tuple(depths)
        summary = (f"{line.name}: {', '.join(f'{show_tokens(d)} {s:.0f}' for d, s in line.points)}" for line in lines)
        self.setAccessibleDescription("; ".join(summary))
        if self._making is None:
            self._making = self._tasks.start(self._make_plot(), owner=self)
        self._draw()

    async def _make_plot(self) -> None:
        pg = await asyncio.to_thread(importlib.import_module, "pyqtgraph")
        pg.setConfigOption("exitCleanup", False)  # Qt deletes the charts with the window
        self._plot = plot = pg.PlotWidget(enableMenu=False)
        plot.setMouseEnabled(x=False, y=False)
        plot.hideButtons()
        plot.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._column.addWidget(plot)
        self._draw()

    def _draw(self) -> None:
        if self._plot is None:
            return
        bottom, left = self._empty_axes()
        bottom.setTicks([[(index, show_tokens(depth)) for index, depth in enumerate(self._depths)]])
        for line in self._lines:
            self._draw_line(line)
        highest = max((speed for line in self._lines for _, speed in line.points), default=1.0)
        step = tick_step(1.1 * highest)
        ticks = [step * number for number in range(int(1.1 * highest / step) + 1)]
        left.setTicks([[(tick, show_number(tick)) for tick in ticks]])
        self._plot.setYRange(0, highest * 1.1, padding=0)
        self._plot.setXRange(-0.2, max(len(self._depths) - 1, 0) + 0.2, padding=0)

    def _empty_axes(self) -> tuple[Any, Any]:
        """Empty the plot, give it the background and horizontal grid of the theme, and return its axes."""
        theme = current_theme()
        self._plot.clear()
        self._plot.setBackground(theme["field"])
        bottom, left = self._plot.getAxis("bottom"), self._plot.getAxis("left")
        for axis in (bottom, left):
            axis.setPen(QPen(Qt.PenStyle.NoPen))
            axis.setTextPen(theme["text_dim"])
            axis.setZValue(-1)  # the grid is behind what is drawn
            axis.setStyle(tickFont=theme.font(11), tickLength=0)
        left.setTickPen(QPen(theme.color("border")))
        left.setGrid(255)
        return bottom, left

    def _draw_line(self, line: ChartLine) -> None:
        color = current_theme().color(line.role)
        pen = QPen(color)
        pen.setCosmetic(True)
        pen.setWidthF(2)
        if line.is_dashed:
            pen.setStyle(Qt.PenStyle.DashLine)
        xs = [self._place(depth) for depth, _ in line.points]
        self._plot.plot(
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
