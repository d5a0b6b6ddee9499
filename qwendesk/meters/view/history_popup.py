"""Popup with charts of the last five minutes: used memory, spilled memory and speed of answers."""

from collections.abc import Sequence

from PySide6.QtCore import QPoint, QRectF, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from qwendesk.core.number_format import show_decimal
from qwendesk.core.plan import Comparison
from qwendesk.core.translation import tr
from qwendesk.core.units import GIB
from qwendesk.meters.meter_state import HISTORY_S, MeterState
from qwendesk.meters.view import meter_text
from qwendesk.widgets.popups import Popover
from qwendesk.widgets.theme import Theme
from qwendesk.widgets.theme_keeper import current_theme
from qwendesk.widgets.vram_bar import SEGMENT_ROLES, segment_name

_WIDTH, _CHART_HEIGHT = 420, 90


class HistoryPopup(Popover):
    """Closes on Escape or on a click outside."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
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
        self._memory = _Chart()
        self._speed_title = _small()
        self._speed_title.setObjectName("meter.history.speed")
        self._speed = _Chart()
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
        self._legend.setTextFormat(Qt.TextFormat.RichText)
        column.addWidget(self._legend)
        self._compared = _small()
        self._compared.setObjectName("meter.history.compared")
        column.addWidget(self._compared)

    def show_history(self, meters: MeterState, compared: Sequence[Comparison] = ()) -> None:
        theme, points = current_theme(), meters.history
        now_s = points[-1].at_s if points else 0.0
        places = [1 - (now_s - point.at_s) / HISTORY_S for point in points]
        total = max((point.total_bytes or 0 for point in points), default=0)
        used = [(place, point.used_bytes) for place, point in zip(places, points, strict=True)]
        excess = [(place, point.excess_bytes) for place, point in zip(places, points, strict=True)]
        spilled = any(point.excess_bytes for point in points)
        name = tr("Video memory") if meters.bars else tr("RAM")
        self._memory_title.setText(tr("{0} used, of {1} GB", name, show_decimal(total / GIB, 0)) if total else name)
        lines = [("meter_weights", used)] + ([("meter_spill", excess)] if spilled else [])
        self._memory.show_lines(lines, float(total))
        speeds = [(place, point.tok_s) for place, point in zip(places, points, strict=True)]
        known = [value for _, value in speeds if value is not None]
        title = tr("No answers yet") if not known else tr("Answers, up to {0}", meter_text.rate_text(max(known)))
        self._speed_title.setText(title)
        self._speed.show_lines([("meter_buffers", speeds)], max(known, default=0.0))
        self._legend.setText(_legend(meters, theme, spilled=spilled))
        sentence = meter_text.compared_text(compared)
        self._compared.setText(tr("This model: {0}", sentence) if sentence else "")
        self._compared.setVisible(bool(sentence))

    def show_above(self, anchor: QWidget) -> None:
        self.adjustSize()
        corner = anchor.mapToGlobal(QPoint(0, 0))
        self.move(corner.x(), corner.y() - self.height() - 10)
        self.show()
        self.setFocus()


class _Chart(QWidget):
    """Lines over five minutes, with gaps where values are unknown."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: list[tuple[str, list[tuple[float, float | None]]]] = []
        self._highest = 0.0
        self.setFixedHeight(_CHART_HEIGHT)

    def show_lines(self, lines: Sequence[tuple[str, Sequence[tuple[float, float | None]]]], highest: float) -> None:
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
    """Return the colours of the memory bar with their current numbers, as HTML."""
    rows = []
    for bar in meters.bars[:1]:
        by_kind = {each.kind: each.n_bytes for each in bar.segments}
        for kind, role in SEGMENT_ROLES:
            if by_kind.get(kind):
                colour = theme["text_dim"] if kind == "free" else theme[role]
                text = f"{segment_name(kind)} {show_decimal(by_kind[kind] / GIB, 1)} GB"
                rows.append(f'<span style="color:{colour}">■</span> {text}')
    if spilled:
        rows.append(f'<span style="color:{theme["meter_spill"]}">■</span> {tr("Shared memory")}')
    half = (len(rows) + 1) // 2
    return "<br>".join("&nbsp;&nbsp;&nbsp;".join(part) for part in (rows[:half], rows[half:]) if part)


def _small() -> QLabel:
    label = QLabel()
    label.setProperty("kind", "small")
    return label
