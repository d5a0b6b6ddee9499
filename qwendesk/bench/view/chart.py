"""The chart of the Bench page."""

import math
from collections.abc import Sequence
from typing import Final

import msgspec
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QWidget

from qwendesk.core.number_format import show_number
from qwendesk.core.units import show_tokens
from qwendesk.widgets.theme_keeper import app_theme, current_theme

_HEIGHT: Final = 250
# Between the labels and what is drawn, and the radius of a point, in logical pixels.
_GAP: Final = 8
_RADIUS: Final = 3.0


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
    """Draws lines over depths. The depths are as far apart as their ticks are, not as their numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("bench.chart")
        self._lines: tuple[ChartLine, ...] = ()
        self._depths: tuple[int, ...] = ()
        self.setFixedHeight(_HEIGHT)
        app_theme().changed.connect(self.update)

    def show_lines(self, lines: Sequence[ChartLine], depths: Sequence[int]) -> None:
        """Draw `lines`, with a tick for each of `depths`."""
        self._lines, self._depths = tuple(lines), tuple(depths)
        summary = (f"{line.name}: {', '.join(f'{show_tokens(d)} {s:.0f}' for d, s in line.points)}" for line in lines)
        self.setAccessibleDescription("; ".join(summary))
        self.update()

    @property
    def _highest(self) -> float:
        """The speed at the upper edge."""
        return 1.1 * max((speed for line in self._lines for _, speed in line.points), default=1.0)

    def paintEvent(self, _event: QPaintEvent) -> None:
        theme = current_theme()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(theme.font(11))
        painter.fillRect(self.rect(), theme.color("field"))
        metrics, step = painter.fontMetrics(), tick_step(self._highest)
        speeds = [step * number for number in range(int(self._highest / step) + 1)]
        left = max(metrics.horizontalAdvance(show_number(speed)) for speed in speeds) + 2 * _GAP
        area = QRectF(self.rect()).adjusted(left, _GAP, -_GAP, -metrics.height() - 2 * _GAP)
        self._draw_axes(painter, area, speeds)
        for line in self._lines:
            self._draw_line(painter, area, line)
        painter.end()

    def _draw_axes(self, painter: QPainter, area: QRectF, speeds: Sequence[float]) -> None:
        theme, line = current_theme(), painter.fontMetrics().height()
        for speed in speeds:
            y = self._point(area, 0, speed).y()
            painter.setPen(theme.color("border"))
            painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y))
            painter.setPen(theme.color("text_dim"))
            room = QRectF(0, y - line, area.left() - _GAP, 2 * line)
            painter.drawText(room, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, show_number(speed))
        width = area.width() / max(1, len(self._depths))
        for number, depth in enumerate(self._depths):
            room = QRectF(area.left() + number * width, area.bottom() + _GAP, width, line)
            painter.drawText(room, Qt.AlignmentFlag.AlignHCenter, show_tokens(depth))

    def _draw_line(self, painter: QPainter, area: QRectF, line: ChartLine) -> None:
        color = current_theme().color(line.role)
        points = [self._point(area, self._in_ticks(depth), speed) for depth, speed in line.points]
        painter.setPen(QPen(color, 2, Qt.PenStyle.DashLine if line.is_dashed else Qt.PenStyle.SolidLine))
        painter.drawPolyline(QPolygonF(points))
        if not line.is_dashed:
            painter.setBrush(color)
            for point in points:
                painter.drawEllipse(point, _RADIUS, _RADIUS)

    def _point(self, area: QRectF, in_ticks: float, speed: float) -> QPointF:
        x = area.left() + (in_ticks + 0.5) / max(1, len(self._depths)) * area.width()
        return QPointF(x, area.bottom() - speed / self._highest * area.height())

    def _in_ticks(self, depth: int) -> float:
        """Return where a depth is between the ticks: 1.5 is halfway between the second and the third."""
        depths = self._depths
        for index in range(1, len(depths)):
            if depth <= depths[index]:
                before = depths[index - 1]
                return index - 1 + max(0.0, depth - before) / (depths[index] - before)
        return float(max(len(depths) - 1, 0))
