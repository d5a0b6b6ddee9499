"""A stacked bar of a device's memory, and the names of its segments."""

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QSizePolicy

from qwendesk.core.devices import Segment, SegmentKind
from qwendesk.core.translation import tr
from qwendesk.widgets.theme_keeper import app_theme, current_theme

_THICK = 10
_BAR_SIZE = QSize(210, 24)
# The segments from left to right, with their theme roles.
SEGMENT_ROLES: tuple[tuple[SegmentKind, str], ...] = (
    ("weights", "meter_weights"),
    ("context", "meter_context"),
    ("buffers", "meter_buffers"),
    ("vision", "meter_vision"),
    ("other", "meter_other"),
    ("free", "meter_free"),
)


class VramBar(QAbstractButton):
    """A bar of proportional segments separated by thin gaps."""

    def __init__(self) -> None:
        super().__init__()
        self._segments: tuple[Segment, ...] = ()
        self._spills = False
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        app_theme().changed.connect(self.update)

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
        theme = current_theme()
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


def segment_name(kind: SegmentKind) -> str:
    return {
        "weights": tr("Weights"),
        "context": tr("Context"),
        "buffers": tr("Buffers"),
        "vision": tr("Pictures"),
        "other": tr("Other apps"),
        "free": tr("Free"),
    }[kind]
