"""The small curve of speeds in the meter bar."""

from collections.abc import Sequence

from PySide6.QtCore import QPointF, QRectF, QSize
from PySide6.QtGui import QPainter, QPaintEvent, QPen, QPolygonF
from PySide6.QtWidgets import QWidget

from qwendesk.widgets.theme_keeper import app_theme, current_theme

_CURVE_SIZE = QSize(80, 20)


class Sparkline(QWidget):
    """The latest speeds as a curve without numbers."""

    def __init__(self) -> None:
        super().__init__()
        self._values: tuple[float, ...] = ()
        self._role = "text_good"
        self.setFixedSize(_CURVE_SIZE)
        app_theme().changed.connect(self.update)

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
        painter.setPen(QPen(current_theme().color(self._role), 1.5))
        painter.drawPolyline(curve(self._values, area, max(self._values)))
        painter.end()


def curve(values: Sequence[float], area: QRectF, highest: float) -> QPolygonF:
    """Return a curve of the values from left to right over the whole area, with `highest` at its top."""
    step = area.width() / max(len(values) - 1, 1)
    scale = area.height() / highest if highest > 0 else 0.0
    return QPolygonF(
        [QPointF(area.left() + index * step, area.bottom() - value * scale) for index, value in enumerate(values)]
    )
