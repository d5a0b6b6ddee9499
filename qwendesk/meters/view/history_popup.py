"""Popup with charts of the last five minutes: used memory, spilled memory and speed of answers."""

import html
import itertools
from collections.abc import Iterator, Sequence

from PySide6.QtCore import QPoint, QRectF
from PySide6.QtGui import QPainter, QPaintEvent, QPen, QPolygonF, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from qwendesk.core.number_format import show_decimal
from qwendesk.core.plan import Comparison
from qwendesk.core.translation import tr
from qwendesk.core.units import GIB
from qwendesk.meters.meter_state import HISTORY_S, GpuBar, MeterState
from qwendesk.meters.services import MeterServices
from qwendesk.meters.view import meter_text
from qwendesk.widgets.bind import bind
from qwendesk.widgets.popups import Popover
from qwendesk.widgets.theme import Theme
from qwendesk.widgets.theme_keeper import current_theme
from qwendesk.widgets.vram_bar import SEGMENT_ROLES, segment_name

_WIDTH, _CHART_HEIGHT = 420, 90
# A role of the theme, and places with values: places from 0 to 1, None for unknown values.
_Line = tuple[str, Sequence[tuple[float, float | None]]]
# Colours of the lines of several GPUs, which repeat after the fourth.
_LINE_ROLES = ("meter_weights", "meter_context", "meter_buffers", "meter_vision")


class HistoryPopup(Popover):
    """Closes on Escape or on a click outside."""

    def __init__(self, parent: QWidget, services: MeterServices) -> None:
        super().__init__(parent)
        self._meters, self._comparisons = services.service.state, services.comparer.comparisons
        self.setObjectName("meter.history")
        self.setAccessibleName(tr("The last five minutes"))
        self.setFixedWidth(_WIDTH)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 14, 16, 14)
        column.setSpacing(8)
        heading = QLabel(tr("The last five minutes"))
        heading.setProperty("kind", "heading")
        column.addWidget(heading)
        self._memory_title = _small()
        self._memory = HistoryChart()
        self._speed_title = _small()
        self._speed_title.setObjectName("meter.history.speed")
        self._speed = HistoryChart()
        for widget in (self._memory_title, self._memory, self._speed_title, self._speed):
            column.addWidget(widget)
        row = QHBoxLayout()
        for text in (tr("5 min ago"), tr("now")):
            label = _small()
            label.setText(text)
            row.addWidget(label)
        row.insertStretch(1, 1)
        column.addLayout(row)
        self._legend = _small()
        self._legend.setObjectName("meter.history.legend")
        self._legend.setProperty("rich", True)
        column.addWidget(self._legend)
        self._compared = _small()
        self._compared.setObjectName("meter.history.compared")
        column.addWidget(self._compared)
        bind(self, self._meters, self._on_change)
        bind(self, self._comparisons, self._on_change)

    def showEvent(self, event: QShowEvent) -> None:
        self._show_history(self._meters.value, self._comparisons.value)
        super().showEvent(event)

    def _on_change(self, _change: object) -> None:
        if self.isVisible():
            self._show_history(self._meters.value, self._comparisons.value)

    def _show_history(self, meters: MeterState, compared: Sequence[Comparison]) -> None:
        theme, points = current_theme(), meters.history
        now_s = points[-1].at_s if points else 0.0
        places = [1 - (now_s - point.at_s) / HISTORY_S for point in points]
        excess = [(place, point.excess_bytes) for place, point in zip(places, points, strict=True)]
        spilled = any(point.excess_bytes for point in points)
        self._show_memory(meters, places, [("meter_spill", excess)] if spilled else [])
        speeds = [(place, point.tok_s) for place, point in zip(places, points, strict=True)]
        known = [value for _, value in speeds if value is not None]
        title = tr("No answers yet") if not known else tr("Answers, up to {0}", meter_text.rate_text(max(known)))
        self._speed_title.setText(title)
        self._speed.show_lines([("meter_buffers", speeds)], max(known, default=0.0))
        self._legend.setText(_legend(meters, theme, spilled=spilled))
        sentence = meter_text.compared_text(compared)
        self._compared.setText(tr("This model: {0}", sentence) if sentence else "")
        self._compared.setVisible(bool(sentence))

    def _show_memory(self, meters: MeterState, places: Sequence[float], more: Sequence[_Line]) -> None:
        """Show a line for each GPU, or for the RAM, and `more` lines."""
        points = meters.history
        bars = _named_bars(meters)
        if len(bars) > 1:
            totals = [bar.total_bytes for _, bar in bars]
            used = [[point.used_by_gpu.get(bar.gpu.key) for point in points] for _, bar in bars]
        else:
            totals = [max((point.total_bytes or 0 for point in points), default=0)]
            used = [[point.used_bytes for point in points]]
        name = tr("Video memory") if meters.bars else tr("RAM")
        sizes = " + ".join(show_decimal(total / GIB, 0) for total in totals)
        self._memory_title.setText(tr("{0} used, of {1} GB", name, sizes) if any(totals) else name)
        lines = [(role, list(zip(places, values, strict=True))) for role, values in zip(_roles(), used, strict=False)]
        self._memory.show_lines([*lines, *more], float(max(totals)))

    def show_above(self, anchor: QWidget) -> None:
        self.adjustSize()
        corner = anchor.mapToGlobal(QPoint(0, 0))
        self.move(corner.x(), corner.y() - self.height() - 10)
        self.show()
        self.setFocus()


class HistoryChart(QWidget):
    """Lines over five minutes, with gaps where values are unknown."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: list[_Line] = []
        self._highest = 0.0
        self.setFixedHeight(_CHART_HEIGHT)

    @property
    def n_lines(self) -> int:
        return len(self._lines)

    def show_lines(self, lines: Sequence[_Line], highest: float) -> None:
        self._lines = [(role, list(points)) for role, points in lines]
        self._highest = highest
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        theme = current_theme()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        area = QRectF(self.rect()).adjusted(1, 4, -1, -2)
        painter.setPen(QPen(theme.color("divider"), 1))
        for share in (0.0, 0.5, 1.0):
            height = area.bottom() - share * area.height()
            painter.drawLine(round(area.left()), round(height), round(area.right()), round(height))
        for role, points in self._lines:
            painter.setPen(QPen(theme.color(role), 1.5))
            for piece in _pieces(points):
                painter.drawPolyline(self._polygon(piece, area))
        painter.end()

    def _polygon(self, points: Sequence[tuple[float, float]], area: QRectF) -> QPolygonF:
        scale = area.height() / self._highest if self._highest > 0 else 0.0
        polygon = QPolygonF()
        for place, value in points:
            x, y = area.left() + place * area.width(), area.bottom() - value * scale
            polygon.append(QPoint(round(x), round(y)).toPointF())
        return polygon


def _pieces(points: Sequence[tuple[float, float | None]]) -> list[list[tuple[float, float]]]:
    """Return the runs of two or more known values."""
    pieces: list[list[tuple[float, float]]] = [[]]
    for place, value in points:
        if value is None:
            pieces.append([])
        else:
            pieces[-1].append((place, value))
    return [piece for piece in pieces if len(piece) > 1]


def _legend(meters: MeterState, theme: Theme, *, spilled: bool) -> str:
    """Return the colours of the memory bar, or of the lines of several GPUs, with their current numbers, as HTML."""
    bars = _named_bars(meters)
    rows = list(_gpu_rows(bars) if len(bars) > 1 else _segment_rows(bars))
    if spilled:
        rows.append(("meter_spill", tr("Shared memory")))
    texts = [f'<span style="color:{theme[role]}">■</span> {html.escape(text)}' for role, text in rows]
    per_line = 1 if len(bars) > 1 else max((len(texts) + 1) // 2, 1)
    lines = (texts[start : start + per_line] for start in range(0, len(texts), per_line))
    return "<br>".join("&nbsp;&nbsp;&nbsp;".join(line) for line in lines)


def _gpu_rows(bars: Sequence[tuple[str, GpuBar]]) -> Iterator[tuple[str, str]]:
    """Yield the role and the text of the line of each GPU."""
    for role, (name, bar) in zip(_roles(), bars, strict=False):
        yield role, f"{name} · {meter_text.pair_text(bar.used_bytes, bar.total_bytes)}"


def _segment_rows(bars: Sequence[tuple[str, GpuBar]]) -> Iterator[tuple[str, str]]:
    """Yield the role and the text of each segment."""
    for _, bar in bars:
        by_kind = {each.kind: each.n_bytes for each in bar.segments}
        for kind, role in SEGMENT_ROLES:
            if by_kind.get(kind):
                text = f"{segment_name(kind)} {show_decimal(by_kind[kind] / GIB, 1)} GB"
                yield "text_dim" if kind == "free" else role, text


def _named_bars(meters: MeterState) -> list[tuple[str, GpuBar]]:
    return meter_text.named_bars(meters.bars, meters.snapshot.gpus if meters.snapshot is not None else ())


def _roles() -> Iterator[str]:
    return itertools.cycle(_LINE_ROLES)


def _small() -> QLabel:
    label = QLabel()
    label.setProperty("kind", "small")
    return label
