"""A picture that can be zoomed and moved with the mouse and keyboard."""

from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QFocusEvent, QImage, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QWheelEvent
from PySide6.QtWidgets import QWidget

from qwendesk.core.translation import tr
from qwendesk.widgets.drag_and_drop import is_drag
from qwendesk.widgets.theme_keeper import current_theme

_ZOOM_STEP = 1.25
_MIN_SCALE, _MAX_SCALE = 0.02, 16.0
_PAN_PIXELS = 60


class PictureCanvas(QWidget):
    """Emits `zoomed` when the scale changes and `left` when a point outside the picture is clicked."""

    zoomed = Signal()
    left = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._image: QImage | None = None
        self._width = self._height = 0
        self._sentence = ""
        self._by_key = False
        self._scale: float | None = None
        """Logical pixels of the window per pixel of the picture; None fits the picture into the window."""
        self._centre = QPointF()
        """The point of the picture at the centre of the window."""
        self._pressed: QPointF | None = None
        self._dragged_from: QPointF | None = None
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setObjectName("picture.canvas")
        self.setToolTip(tr("Scroll or press + and - to zoom, 0 to fit, 1 for actual size, and the arrow keys to move"))

    @property
    def has_picture(self) -> bool:
        return self._image is not None

    @property
    def scale(self) -> float:
        return self._fitting() if self._scale is None else self._scale

    def show_text(self, sentence: str) -> None:
        """Show a text instead of a picture."""
        self._image, self._sentence = None, sentence
        self.update()

    def show_image(self, image: QImage, width: int, height: int) -> None:
        """Show a picture. `width` and `height` are the file's size in pixels; `image` may be a smaller copy."""
        self._image, self._width, self._height = image, width, height
        self.fit()

    def fit(self) -> None:
        self._scale = None
        self._centre = QPointF(self._width / 2, self._height / 2)
        self._changed()

    def zoom_to(self, scale: float, at: QPointF | None = None) -> None:
        """Set the scale, keeping the point `at` of the window (default: the centre) in place."""
        scale = max(_MIN_SCALE, min(_MAX_SCALE, scale))
        middle = QPointF(self.width() / 2, self.height() / 2)
        offset = (at or middle) - middle
        self._centre += offset / self.scale - offset / scale
        self._scale = scale
        self._changed()

    def zoom_by(self, steps: float, at: QPointF | None = None) -> None:
        self.zoom_to(self.scale * _ZOOM_STEP**steps, at)

    def move_by(self, across: float, down: float) -> None:
        """Move the picture by pixels of the window."""
        self._centre += QPointF(across, down) / self.scale
        self._changed()

    def focusInEvent(self, event: QFocusEvent) -> None:
        """Draw a focus ring only if the focus arrived by Tab."""
        super().focusInEvent(event)
        self._by_key = event.reason() in (Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason)

    def wheelEvent(self, event: QWheelEvent) -> None:
        if self._image is not None and event.angleDelta().y():
            self.zoom_by(event.angleDelta().y() / 120, event.position())
        event.accept()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        moves = {Qt.Key.Key_Up: (0, -_PAN_PIXELS), Qt.Key.Key_Down: (0, _PAN_PIXELS)}
        if self._is_larger():
            moves |= {Qt.Key.Key_Left: (-_PAN_PIXELS, 0), Qt.Key.Key_Right: (_PAN_PIXELS, 0)}
        key = Qt.Key(event.key())
        if self._image is None or event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            super().keyPressEvent(event)
        elif key in moves:
            self.move_by(*moves[key])
        elif key in (Qt.Key.Key_Plus, Qt.Key.Key_Equal):
            self.zoom_by(1)
        elif key == Qt.Key.Key_Minus:
            self.zoom_by(-1)
        elif key == Qt.Key.Key_0:
            self.fit()
        elif key == Qt.Key.Key_1:
            self.zoom_to(1 / self.devicePixelRatioF())
        else:
            super().keyPressEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() is Qt.MouseButton.LeftButton:
            self._pressed = event.position()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._pressed is None:
            return
        if self._dragged_from is None and is_drag(self._pressed.toPoint(), event.position().toPoint()):
            self._dragged_from = self._pressed
            self.setCursor(Qt.CursorShape.ClosedHandCursor)
        if self._dragged_from is not None:
            delta = self._dragged_from - event.position()
            self._dragged_from = event.position()
            self.move_by(delta.x(), delta.y())

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        was_click = self._pressed is not None and self._dragged_from is None
        self._pressed = self._dragged_from = None
        self.unsetCursor()
        if was_click and not self._target().contains(event.position()):
            self.left.emit()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if self._scale is None:
            self.zoom_to(1 / self.devicePixelRatioF(), event.position())
        else:
            self.fit()

    def paintEvent(self, _event: QPaintEvent) -> None:
        theme = current_theme()
        painter = QPainter(self)
        painter.fillRect(self.rect(), theme.color("window"))
        if self._image is None:
            painter.setPen(theme.color("text_dim"))
            painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter | Qt.TextFlag.TextWordWrap, self._sentence)
        else:
            # Enlarged pixels must stay sharp.
            painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, self.scale < 4)
            painter.drawImage(self._target(), self._image)
        if self._by_key and self.hasFocus():
            painter.setPen(theme.color("focus"))
            painter.drawRect(self.rect().adjusted(0, 0, -1, -1))
        painter.end()

    def _fitting(self) -> float:
        """Return the scale that fits the picture into the window, at most 1."""
        if not self._width or not self._height:
            return 1.0
        return min(1.0, (self.width() - 32) / self._width, (self.height() - 32) / self._height)

    def _is_larger(self) -> bool:
        return self._width * self.scale > self.width() or self._height * self.scale > self.height()

    def _target(self) -> QRectF:
        """Return the picture's rectangle in the window."""
        scale = self.scale
        middle = QPointF(self.width() / 2, self.height() / 2)
        corner = middle - self._centre * scale
        return QRectF(corner.x(), corner.y(), self._width * scale, self._height * scale)

    def _changed(self) -> None:
        self._centre.setX(max(0.0, min(float(self._width), self._centre.x())))
        self._centre.setY(max(0.0, min(float(self._height), self._centre.y())))
        self.update()
        self.zoomed.emit()
