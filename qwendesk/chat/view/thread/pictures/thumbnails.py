"""Thumbnails of pictures, which open at full size."""

import asyncio
from pathlib import Path

from PySide6.QtCore import QMimeData, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetrics, QImage, QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QToolButton

from qwendesk.chat.chat_state import IncognitoImages
from qwendesk.chat.view.thread.pictures.previews import ImagePreview, load_preview
from qwendesk.core.errors import BadRequest
from qwendesk.core.translation import tr
from qwendesk.widgets.drag_and_drop import picture_mime
from qwendesk.widgets.icons import pixmap
from qwendesk.widgets.theme_keeper import current_theme

# Size of the placeholder for an unreadable picture.
_ERROR_SIZE = QSize(148, 84)


class PreviewCache:
    """Caches previews, so that each thumbnail is made once."""

    def __init__(self, incognito_images: IncognitoImages | None = None) -> None:
        """`incognito_images` contains the pictures without files."""
        self.incognito_images = incognito_images or IncognitoImages()
        self._pictures: dict[Path, ImagePreview] = {}

    async def load_preview(self, path: Path) -> ImagePreview:
        """Return the preview of the picture at `path`. Raise BadRequest if it is not usable."""
        if path not in self._pictures:
            self._pictures[path] = await asyncio.to_thread(load_preview, path, self.incognito_images.get(path))
        return self._pictures[path]

    def mime(self, path: Path) -> QMimeData:
        """Return the picture for other programs, as a file or as pixels."""
        return picture_mime(path, self.incognito_images.get(path))

    def forget_incognito(self) -> None:
        """Drop the previews of in-memory pictures that were cleared."""
        self._pictures = {
            path: picture
            for path, picture in self._pictures.items()
            if not picture.data or self.incognito_images.get(path)
        }


class Thumbnail(QToolButton):
    """A picture with rounded corners. Emits `opened` when it is clicked."""

    opened = Signal(str)

    def __init__(self, path: Path, largest: QSize) -> None:
        super().__init__()
        self._path = path
        self._largest = largest
        self._image: QImage | None = None
        self._error = ""
        self.note = ""
        """A short remark for the tooltip."""
        self.setFixedSize(largest.height(), largest.height())
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setAccessibleName(tr("Picture {0}", path.name))
        self.setToolTip(tr("{0}: click to view full size", path.name))
        self.clicked.connect(lambda: self.opened.emit(str(self._path)))

    async def fill(self, previews: PreviewCache) -> None:
        """Load and show the picture, or a placeholder if it cannot be read."""
        try:
            picture = await previews.load_preview(self._path)
        except BadRequest as error:
            self._show_error(error)
            return
        self.show_image(picture)
        if self.note:
            self.setToolTip(tr("{0} ({1}): click to view full size", self._path.name, self.note))

    def _show_error(self, error: BadRequest) -> None:
        self._error = error.title
        self.setFixedSize(max(self.minimumWidth(), _ERROR_SIZE.width()), _ERROR_SIZE.height())
        self.setToolTip(error.sentence)
        self.setAccessibleDescription(error.sentence)
        self.update()

    def show_image(self, picture: ImagePreview) -> None:
        self._image = picture.thumbnail
        shape = QSize(picture.width, picture.height).scaled(self._largest, Qt.AspectRatioMode.KeepAspectRatio)
        side = min(48, self._largest.height())
        self.setFixedSize(shape.expandedTo(QSize(side, side)).boundedTo(self._largest))
        self.update()

    def _paint_placeholder(self, painter: QPainter) -> None:
        """Paint the placeholder: the name and, if it is unreadable, the reason."""
        theme, middle = current_theme(), self.rect().center()
        name, color = ("picture_off", "text_warn") if self._error else ("picture", "text_dim")
        top = 14 if self._error else middle.y() - 10
        painter.drawPixmap(middle.x() - 10, top, pixmap(name, theme[color], 20, self.devicePixelRatioF()))
        if not self._error:
            return
        font = theme.font(11)
        metrics = QFontMetrics(font)
        painter.setFont(font)
        for row, (text, role) in enumerate(((self._path.name, "text"), (self._error, "text_dim"))):
            line = self.rect().adjusted(8, 42 + row * (metrics.lineSpacing() + 2), -8, 0)
            painter.setPen(theme.color(role))
            words = metrics.elidedText(text, Qt.TextElideMode.ElideMiddle, line.width())
            painter.drawText(line, Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop, words)

    def paintEvent(self, _event: QPaintEvent) -> None:
        theme = current_theme()
        painter = QPainter(self)
        painter.setRenderHints(QPainter.RenderHint.Antialiasing | QPainter.RenderHint.SmoothPixmapTransform)
        area = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        outline = QPainterPath()
        outline.addRoundedRect(area, 8, 8)
        if self._image is None:
            painter.fillPath(outline, theme.color("chip_plain"))
            self._paint_placeholder(painter)
        else:
            painter.save()
            painter.setClipPath(outline)
            shape = self._image.size().scaled(self.size(), Qt.AspectRatioMode.KeepAspectRatioByExpanding)
            corner = (self.rect().width() - shape.width()) / 2, (self.rect().height() - shape.height()) / 2
            painter.drawImage(QRectF(*corner, shape.width(), shape.height()), self._image)
            painter.restore()
        painter.setPen(QPen(theme.color("focus" if self.hasFocus() else "border"), 1))
        painter.drawPath(outline)
        painter.end()
