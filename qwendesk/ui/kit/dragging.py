"""When a press becomes a drag, and how one begins: one rule for everything that can be dragged."""

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QEvent, QMimeData, QObject, QPoint, Qt, QUrl
from PySide6.QtGui import QDrag, QImage, QMouseEvent, QPixmap
from PySide6.QtWidgets import QAbstractButton, QApplication, QWidget

_SIDE = 96


def is_drag(pressed: QPoint, now: QPoint) -> bool:
    """Whether the mouse went so far, in logical pixels, that more than a click is meant."""
    return (now - pressed).manhattanLength() >= QApplication.startDragDistance()


class DragStart(QObject):
    """Watches a widget, and calls `begin` once when a press on it becomes a drag; a click stays a click."""

    def __init__(self, widget: QWidget, begin: Callable[[], None]) -> None:
        super().__init__(widget)
        self._widget = widget
        self._begin = begin
        self._pressed: QPoint | None = None
        widget.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if not isinstance(event, QMouseEvent):
            return False
        place = event.globalPosition().toPoint()
        if event.type() is QEvent.Type.MouseButtonPress and event.button() is Qt.MouseButton.LeftButton:
            self._pressed = place
        elif event.type() is QEvent.Type.MouseButtonRelease:
            self._pressed = None
        elif event.type() is QEvent.Type.MouseMove and self._pressed is not None and is_drag(self._pressed, place):
            self._pressed = None
            if isinstance(self._widget, QAbstractButton):
                self._widget.setDown(False)
            self._begin()
            return True
        return False


def files_mime(*paths: Path) -> QMimeData:
    """Files as other programs take them."""
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    return mime


def picture_mime(path: Path, data: bytes | None) -> QMimeData:
    """A picture file; with `data`, which are its bytes where there is no file, its pixels."""
    if not data:
        return files_mime(path)
    mime = QMimeData()
    mime.setImageData(QImage.fromData(data))
    return mime


def run_drag(source: QWidget, mime: QMimeData, actions: Qt.DropAction = Qt.DropAction.CopyAction) -> None:
    """Drag `mime` with a small picture of `source` at the mouse, until it is dropped somewhere."""
    drag = QDrag(source)
    drag.setMimeData(mime)
    look: QPixmap = source.grab()
    if max(look.width(), look.height()) > 2 * _SIDE:
        look = look.scaled(
            2 * _SIDE, _SIDE, Qt.AspectRatioMode.KeepAspectRatio, Qt.TransformationMode.SmoothTransformation
        )
    drag.setPixmap(look)
    drag.exec(actions)


def drag_out(widget: QWidget, mime: Callable[[], QMimeData]) -> DragStart:
    """Lets people drag from `widget` into other programs what `mime` makes then."""
    # Looked up when it happens, so that a test can see it.
    return DragStart(widget, lambda: run_drag(widget, mime()))
