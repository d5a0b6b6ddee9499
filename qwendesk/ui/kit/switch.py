"""An on-off switch."""

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton

from qwendesk.ui.kit.theme_keeper import ThemeKeeper

_WIDTH, _HEIGHT, _EDGE = 40, 22, 3


class Switch(QAbstractButton):
    """Checked is on. Click, Space or a screen reader changes it."""

    def __init__(self, keeper: ThemeKeeper) -> None:
        super().__init__()
        self._keeper = keeper
        self.setCheckable(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setFixedSize(self.sizeHint())
        keeper.changed.connect(self.update)

    def sizeHint(self) -> QSize:
        return QSize(_WIDTH + 4, _HEIGHT + 4)

    def paintEvent(self, _event: QPaintEvent) -> None:
        theme = self._keeper.theme
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        track = QRectF(2, 2, _WIDTH, _HEIGHT)
        on = self.isChecked()
        if self.hasFocus():
            painter.setPen(QPen(QColor(theme["focus"]), 2))
        else:
            painter.setPen(QColor(theme["fill" if on else "text_dim"]))
        painter.setBrush(QColor(theme["fill" if on else "card"]))
        painter.drawRoundedRect(track, _HEIGHT / 2, _HEIGHT / 2)
        side = _HEIGHT - 2 * _EDGE
        left = track.right() - _EDGE - side if on else track.left() + _EDGE
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(QColor(theme["on_fill" if on else "text_dim"]))
        painter.drawEllipse(QRectF(left, track.top() + _EDGE, side, side))
        painter.end()
