"""A window that shows the pictures of a chat, one at a time, to zoom and to move."""

import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import (
    QFocusEvent,
    QGuiApplication,
    QImage,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QShortcut,
    QWheelEvent,
)
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from qwendesk.chat.chat_state import IncognitoImages
from qwendesk.chat.view.thread.pictures.clip_strip import frame_name
from qwendesk.chat.view.thread.pictures.thumbnails import load_full
from qwendesk.core.errors import BadRequest
from qwendesk.core.messages import ImagePart
from qwendesk.core.translation import tr
from qwendesk.widgets.buttons import IconButton, TextButton, describe
from qwendesk.widgets.drag_and_drop import is_drag, picture_mime
from qwendesk.widgets.file_dialogs import ask_where_to_save
from qwendesk.widgets.question_dialog import Dialog
from qwendesk.widgets.tasks import window_tasks
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


# Larger pictures are shown as a copy with this longer side, because 60 megapixels would take 240 MB.
_LONGEST_SIDE = 4096


class PictureViewer(Dialog):
    """A viewer that closes on Esc or a click outside the picture. It doesn't block the window."""

    shown = Signal(str)
    """Path of the picture that is now shown."""

    def __init__(
        self,
        pictures: Sequence[ImagePart],
        index: int,
        parent: QWidget,
        incognito_images: IncognitoImages,
    ) -> None:
        super().__init__(parent)
        self._incognito_images = incognito_images
        self._tasks = window_tasks()
        self._pictures, self._index = tuple(pictures), index
        self._image: QImage | None = None
        self.setObjectName("picture.viewer")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.resize(parent.window().size() * 0.85)
        self.canvas = PictureCanvas()
        self.canvas.left.connect(self.close)
        self.canvas.zoomed.connect(self._show_zoom)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addLayout(self._bar())
        column.addWidget(self.canvas, 1)
        keys = (
            ("Esc", self.close), ("Ctrl+C", self.copy), ("Ctrl+S", self.ask_where), ("PgUp", self.show_before),
            ("PgDown", self.show_next), ("Ctrl++", lambda: self.canvas.zoom_by(1)),
            ("Ctrl+-", lambda: self.canvas.zoom_by(-1)), ("Ctrl+0", self.canvas.fit),
        )  # fmt: skip
        for key, run in keys:
            QShortcut(QKeySequence(key), self, run)
        self.canvas.setFocus()
        self._show(index)

    def has_picture(self) -> bool:
        """Whether a picture is shown, not an error."""
        return self.canvas.has_picture

    @property
    def path(self) -> Path:
        return Path(self._pictures[self._index].path)

    @property
    def name(self) -> str:
        """The name of the picture: its file's, or of a frame, that of the clip and the time."""
        frame = self._pictures[self._index].frame
        return self.path.name if frame is None else frame_name(frame.clip, frame.time_s)

    def show_before(self) -> None:
        self._show(self._index - 1)

    def show_next(self) -> None:
        self._show(self._index + 1)

    def copy(self) -> None:
        """Copy the picture as pixels and as a file."""
        if self._image is not None:
            mime = picture_mime(self.path, self._incognito_images.get(self.path))
            mime.setImageData(self._image)
            QGuiApplication.clipboard().setMimeData(mime)

    def ask_where(self) -> None:
        source = self.path

        def save(target: str) -> None:
            self._tasks.start(_save(source, Path(target), self._incognito_images.get(source)))

        title, name = tr("Save the picture"), _short(source.name)
        ask_where_to_save(self, "picture.save_dialog", title, name, save, kind="pictures")

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Handle the arrow keys that the picture does not need."""
        if event.key() == Qt.Key.Key_Left:
            self.show_before()
        elif event.key() == Qt.Key.Key_Right:
            self.show_next()
        else:
            super().keyPressEvent(event)

    def _show(self, index: int) -> None:
        if not 0 <= index < len(self._pictures):
            return
        self._index = index
        self._image = None
        self.setWindowTitle(self.name)
        self.setAccessibleName(tr("Picture {0}", self.name))
        self.canvas.setAccessibleName(tr("Picture {0}", self.name))
        self.canvas.show_text(tr("Opening {0}…", self.name))
        self._before.setEnabled(index > 0)
        self._next.setEnabled(index + 1 < len(self._pictures))
        several = len(self._pictures) > 1
        for button in (self._before, self._next):
            button.setVisible(several)
        place = tr("{0} of {1}", index + 1, len(self._pictures)) if several else ""
        is_frame = self._pictures[index].frame is not None
        self._place.setText(" · ".join(filter(None, (place, self.name if is_frame else ""))))
        self._tasks.start(self._load(self.path), self)

    async def _load(self, path: Path) -> None:
        try:
            image, width, height = await asyncio.to_thread(
                load_full, path, _LONGEST_SIDE, self._incognito_images.get(path)
            )
        except BadRequest as error:
            if path == self.path:
                self.canvas.show_text(error.sentence)
            return
        if path == self.path:
            self._image = image
            self.canvas.show_image(image, width, height)
            self.shown.emit(str(path))

    def _show_zoom(self) -> None:
        percent = round(100 * self.canvas.scale * self.devicePixelRatioF())
        self._zoom.setText(tr("{0}%", percent) if self.canvas.has_picture else "")

    def _bar(self) -> QHBoxLayout:
        self._before = IconButton("left")
        describe(self._before, "picture.before", tr("Previous picture"), shortcut="PgUp")
        self._before.clicked.connect(self.show_before)
        self._next = IconButton("right")
        describe(self._next, "picture.next", tr("Next picture"), shortcut="PgDown")
        self._next.clicked.connect(self.show_next)
        self._place, self._zoom = QLabel(), QLabel()
        for label in (self._place, self._zoom):
            label.setProperty("kind", "small")
        self._place.setObjectName("picture.place")
        self._zoom.setObjectName("picture.zoom")
        fit = TextButton(tr("Fit"), kind="quiet")
        describe(fit, "picture.fit", tr("Fit"), tr("Fit to the window"), "0")
        fit.clicked.connect(self.canvas.fit)
        own = TextButton(tr("1:1"), kind="quiet")
        describe(own, "picture.own", tr("1:1"), tr("Actual size"), "1")
        own.clicked.connect(lambda: self.canvas.zoom_to(1 / self.devicePixelRatioF()))
        copy = IconButton("copy")
        describe(copy, "picture.copy", tr("Copy the picture"), shortcut="Ctrl+C")
        copy.clicked.connect(self.copy)
        save = IconButton("download")
        describe(save, "picture.save", tr("Save as…"), shortcut="Ctrl+S")
        save.clicked.connect(self.ask_where)
        close = IconButton("close")
        describe(close, "picture.close", tr("Close"), shortcut="Esc")
        close.clicked.connect(self.close)
        row = QHBoxLayout()
        row.setContentsMargins(12, 8, 12, 8)
        row.setSpacing(6)
        left: tuple[QWidget, ...] = (self._before, self._next, self._place)
        right: tuple[QWidget, ...] = (self._zoom, fit, own, copy, save, close)
        for widget in left:
            row.addWidget(widget)
        row.addStretch(1)
        for widget in right:
            row.addWidget(widget)
        return row


async def _save(source: Path, target: Path, data: bytes | None) -> None:
    """Save a picture at `target`. Raise BadRequest if the file cannot be written."""
    try:
        if data is not None:
            await asyncio.to_thread(target.write_bytes, data)
        else:
            await asyncio.to_thread(shutil.copyfile, source, target)
    except shutil.SameFileError:
        return
    except OSError as error:
        sentence = tr('Couldn\'t save "{0}": {1}. Choose another location.', target.name, error.strerror or error)
        raise BadRequest(tr("Picture not saved"), sentence) from error


def _short(name: str) -> str:
    """Return a short name for a stored picture, whose file name is the 64 digits of its hash."""
    stem, dot, ending = name.rpartition(".")
    return f"picture-{stem[:8]}.{ending}" if dot and len(stem) == 64 else name
