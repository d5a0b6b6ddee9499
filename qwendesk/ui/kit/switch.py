"""An on-off switch."""

from PySide6.QtCore import QEvent, QRectF, QSize, Qt, QVariantAnimation
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton

from qwendesk.ui.kit.theme_keeper import ThemeKeeper

_WIDTH, _HEIGHT, _EDGE = 40, 22, 3
_RING = 4
"""Room around the track for the ring of the focus, with a gap: on the accent it could not be told from it."""


class Switch(QAbstractButton):
    """Checked is on. Click, Space or a screen reader changes it; the knob slides where motion is not reduced."""

    def __init__(self, keeper: ThemeKeeper) -> None:
        super().__init__()
        self._keeper = keeper
        self._knob = QVariantAnimation(self)
        self._knob.valueChanged.connect(self.update)
        self.setCheckable(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setFixedSize(self.sizeHint())
        self.toggled.connect(self._on_toggled)
        keeper.changed.connect(self.update)

    def sizeHint(self) -> QSize:
        return QSize(_WIDTH + 2 * _RING, _HEIGHT + 2 * _RING)

    @property
    def knob_place(self) -> float:
        """Where the knob is drawn: 0 is off, 1 is on, between while it slides."""
        running = self._knob.state() is QVariantAnimation.State.Running
        return float(self._knob.currentValue()) if running else float(self.isChecked())

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.EnabledChange:
            self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        theme = self._keeper.theme
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        track = QRectF(_RING, _RING, _WIDTH, _HEIGHT)
        on, works = self.isChecked(), self.isEnabled()
        ground = ("fill" if works else "fill_off") if on else "card"
        knob = ("on_fill" if works else "on_fill_off") if on else "text_dim"
        painter.setPen(QColor(theme["fill" if on and works else "text_dim"]))
        painter.setBrush(QColor(theme[ground]))
        painter.drawRoundedRect(track, _HEIGHT / 2, _HEIGHT / 2)
        side = _HEIGHT - 2 * _EDGE
        left = track.left() + _EDGE + self.knob_place * (_WIDTH - 2 * _EDGE - side)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(theme[knob]))
        painter.drawEllipse(QRectF(left, track.top() + _EDGE, side, side))
        if self.hasFocus():
            painter.setPen(QPen(QColor(theme["focus"]), 2))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(track.adjusted(-3, -3, 3, 3), _HEIGHT / 2 + 3, _HEIGHT / 2 + 3)
        painter.end()

    def _on_toggled(self, on: bool) -> None:
        if self.isVisible():
            self._keeper.motion.slide(self._knob, float(not on), float(on))
