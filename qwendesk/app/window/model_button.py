"""The model button: shows the loaded model or the progress of a load, and opens the model picker."""

from PySide6.QtCore import QRect, QRectF, QSize, Qt
from PySide6.QtGui import QFontMetrics, QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QPushButton, QSizePolicy

from qwendesk.core.translation import tr
from qwendesk.engine.state import EngineState, Phase
from qwendesk.widgets.actions import COMMANDS
from qwendesk.widgets.buttons import describe
from qwendesk.widgets.display_texts import model_label
from qwendesk.widgets.icons import pixmap
from qwendesk.widgets.theme_keeper import app_theme, current_theme

_DOTS = {
    Phase.OFF: "dot_off",
    Phase.IDLE: "dot_off",
    Phase.STARTING: "dot_loading",
    Phase.LOADING: "dot_loading",
    Phase.READY: "dot_ready",
    Phase.ANSWERING: "dot_busy",
}
_PADDING = 14
_DOT = 8
_AIR = 19
"""Padding above and below the text, in total."""
_WIDEST = 460


class ModelButton(QPushButton):
    """Paints itself, because the progress of a load fills the button behind the text."""

    def __init__(self) -> None:
        super().__init__()
        self._state = EngineState()
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.setFixedHeight(self._high)
        app_theme().changed.connect(self._on_theme)
        self.show_state(self._state)

    @property
    def _high(self) -> int:
        return current_theme().px(13) + current_theme().space(_AIR)

    def _on_theme(self) -> None:
        self.setFixedHeight(self._high)
        self.updateGeometry()

    def show_state(self, state: EngineState) -> None:
        self._state = state
        label = model_label(state)
        tip = tr("Choose a model")
        if state.report is not None:
            tip = tr("{0}\nClick to choose another model", state.report.options.model)
        elif state.questions_held:
            tip = tr("Unloaded while another program needs the memory.\nClick to choose another model")
        elif state.idle_unloaded is not None:
            tip = tr("Ejected to free memory. Loads again with your next message.\nClick to choose another model")
        describe(self, "model.button", tr("Model: {0}", label), tip, COMMANDS["model_menu"].shortcut)
        if label != self.text():
            self.setText(label)
            self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        text = QFontMetrics(current_theme().font(13)).horizontalAdvance(self.text())
        return QSize(min(_WIDEST, text + 2 * _PADDING + _DOT + 8 + 22), self._high)

    def minimumSizeHint(self) -> QSize:
        return QSize(120, self._high)

    def paintEvent(self, _event: QPaintEvent) -> None:
        theme = current_theme()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        area = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        outline = QPainterPath()
        outline.addRoundedRect(area, 10, 10)
        painter.fillPath(outline, theme.color("card_hover" if self.underMouse() else "card"))
        if self._state.phase in (Phase.STARTING, Phase.LOADING):
            painter.save()
            painter.setClipPath(outline)
            painter.fillRect(
                QRectF(0, 0, self.width() * self._state.load_fraction, self.height()), theme.color("progress")
            )
            painter.restore()
        painter.setPen(QPen(theme.color("focus" if self.hasFocus() else "border"), 1))
        painter.drawPath(outline)
        painter.setPen(Qt.PenStyle.NoPen)
        role = "dot_bad" if self._state.engine_exit or self._state.failure else _DOTS[self._state.phase]
        painter.setBrush(theme.color(role))
        painter.drawEllipse(QRectF(_PADDING, (self.height() - _DOT) / 2, _DOT, _DOT))
        self._paint_text(painter)
        painter.end()

    def _paint_text(self, painter: QPainter) -> None:
        theme = current_theme()
        left = _PADDING + _DOT + 8
        room = QRect(left, 0, self.width() - left - _PADDING - 18, self.height())
        painter.setFont(theme.font(13))
        painter.setPen(theme.color("text"))
        text = painter.fontMetrics().elidedText(self.text(), Qt.TextElideMode.ElideMiddle, room.width())
        painter.drawText(room, Qt.AlignmentFlag.AlignVCenter, text)
        arrow = pixmap("down", theme["text_dim"], 14, self.devicePixelRatioF())
        painter.drawPixmap(self.width() - _PADDING - 14 + 2, (self.height() - 14) // 2, arrow)
