"""The stacked bar of memory and the small curve of speeds: both open the last five minutes."""

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPainterPath, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QAbstractButton, QSizePolicy, QWidget

from qwendesk.services.meters.bars import Segment
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.meters.texts import SEGMENT_ROLES

_THICK = 10
_BAR_SIZE = QSize(210, 24)
_CURVE_SIZE = QSize(80, 20)


class VramBar(QAbstractButton):
    """Painted segments in proportion; a thin gap between two."""

    def __init__(self, keeper: ThemeKeeper) -> None:
        super().__init__()
        self._keeper = keeper
        self._segments: tuple[Segment, ...] = ()
        self._spills = False
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        keeper.changed.connect(self.update)

    def show_segments(self, segments: tuple[Segment, ...], *, spills: bool = False) -> None:
        if (segments, spills) != (self._segments, self._spills):
            self._segments, self._spills = segments, spills
            self.update()

    @property
    def segments(self) -> tuple[Segment, ...]:
        return self._segments

    def sizeHint(self) -> QSize:
        return _BAR_SIZE

    def paintEvent(self, _event: QPaintEvent) -> None:
        theme = self._keeper.theme
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        area = QRectF(0, (self.height() - _THICK) / 2, self.width(), _THICK).adjusted(2, 0, -2, 0)
        outline = QPainterPath()
        outline.addRoundedRect(area, _THICK / 2, _THICK / 2)
        painter.save()
        painter.setClipPath(outline)
        painter.fillRect(area, theme.color("meter_free"))
        left = area.left()
        total = sum(each.n_bytes for each in self._segments) or 1
        by_kind = {each.kind: each.n_bytes for each in self._segments}
        for kind, role in SEGMENT_ROLES:
            width = area.width() * by_kind.get(kind, 0) / total
            if kind != "free" and width > 0:
                painter.fillRect(QRectF(left, area.top(), max(width - 1, 0.5), _THICK), theme.color(role))
            left += width
        if self._spills:
            painter.fillRect(QRectF(area.right() - 8, area.top(), 8, _THICK), theme.color("meter_spill"))
        painter.restore()
        if self.hasFocus():
            painter.setPen(QPen(theme.color("focus"), 1))
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 2.5, -0.5, -2.5), 8, 8)
        painter.end()


class Sparkline(QWidget):
    """The last speeds as a curve, without numbers; those stand beside it."""

    def __init__(self, keeper: ThemeKeeper) -> None:
        super().__init__()
        self._keeper = keeper
        self._values: tuple[float, ...] = ()
        self._role = "text_good"
        self.setFixedSize(_CURVE_SIZE)
        keeper.changed.connect(self.update)

    def show_values(self, values: Sequence[float], role: str) -> None:
        values = tuple(values)
        if (values, role) != (self._values, self._role):
            self._values, self._role = values, role
            self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        if len(self._values) < 2:
            return
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        area = QRectF(self.rect()).adjusted(1, 3, -1, -3)
        painter.setPen(QPen(self._keeper.theme.color(self._role), 1.5))
        painter.drawPolyline(curve(self._values, area, max(self._values)))
        painter.end()


def curve(values: Sequence[float], area: QRectF, highest: float) -> QPolygonF:
    """The values from left to right over the whole area; `highest` touches its top."""
    step = area.width() / max(len(values) - 1, 1)
    scale = area.height() / highest if highest > 0 else 0.0
    return QPolygonF(
        [QPointF(area.left() + index * step, area.bottom() - value * scale) for index, value in enumerate(values)]
    )
