"""Dragging out of the window and dropping files onto it."""

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QEvent, QMimeData, QObject, QPoint, Qt, QUrl
from PySide6.QtGui import QDrag, QImage, QMouseEvent, QPixmap
from PySide6.QtWidgets import QAbstractButton, QApplication, QFrame, QLabel, QVBoxLayout, QWidget

_SIDE = 96


def is_drag(pressed: QPoint, now: QPoint) -> bool:
    """Return True if the mouse has moved far enough since the press to start a drag."""
    return (now - pressed).manhattanLength() >= QApplication.startDragDistance()


class DragStart(QObject):
    """Calls `begin` once when a press on `widget` becomes a drag. Clicks still work."""

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
    """Return the MIME data of files for other programs."""
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    return mime


def picture_mime(path: Path, data: bytes | None) -> QMimeData:
    """Return the MIME data of an image file; `data` are its bytes if there is no file."""
    if not data:
        return files_mime(path)
    mime = QMimeData()
    mime.setImageData(QImage.fromData(data))
    return mime


def run_drag(source: QWidget, mime: QMimeData) -> None:
    """Drag `mime` with a thumbnail of `source` at the pointer until it is dropped."""
    drag = QDrag(source)
    drag.setMimeData(mime)
    look: QPixmap = source.grab()
    if max(look.width(), look.height()) > 2 * _SIDE:
        look = look.scaled(
            2 * _SIDE, _SIDE, Qt.AspectRatioMode.KeepAspectRatio, Qt.TransformationMode.SmoothTransformation
        )
    drag.setPixmap(look)
    drag.exec(Qt.DropAction.CopyAction)


def make_draggable(widget: QWidget, mime: Callable[[], QMimeData]) -> DragStart:
    """Let users drag from `widget` into other programs. `mime` returns the data to drag."""
    # A lambda, so that `run_drag` is looked up when it is called and tests can replace it.
    return DragStart(widget, lambda: run_drag(widget, mime()))


class DropTarget(QFrame):
    """Covers the page while files are dragged over it. It ignores the mouse, so the window gets the drop."""

    def __init__(self, page: QWidget) -> None:
        super().__init__(page)
        self.setObjectName("drop.target")
        self.setProperty("kind", "drop")
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._text = QLabel()
        self._text.setProperty("kind", "heading")
        column = QVBoxLayout(self)
        column.addWidget(self._text, 0, Qt.AlignmentFlag.AlignCenter)
        page.installEventFilter(self)
        self.hide()

    def show_over_page(self, text: str) -> None:
        """Show over the page what happens with what is dropped."""
        self._text.setText(text)
        self._cover()
        self.show()
        self.raise_()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() is QEvent.Type.Resize:
            self._cover()
        return super().eventFilter(watched, event)

    def _cover(self) -> None:
        page = self.parentWidget()
        if page is not None:
            self.setGeometry(page.rect().adjusted(12, 12, -12, -12))
