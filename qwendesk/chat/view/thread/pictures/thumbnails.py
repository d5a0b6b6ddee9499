"""Previews and thumbnails of pictures: checked before they are attached, and opened at full size.

The engine reads the file itself. These functions only show it, and refuse unusable files at once.
"""

import asyncio
import hashlib
import io
from pathlib import Path
from typing import Final

import msgspec
from PySide6.QtCore import QMimeData, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetrics, QImage, QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QToolButton

from qwendesk.chat.chat_state import IncognitoImages
from qwendesk.core.errors import BadRequest
from qwendesk.core.files import file_stamp, write_whole
from qwendesk.core.messages import ImagePart
from qwendesk.core.paths import cache_folder
from qwendesk.core.translation import tr
from qwendesk.decoding.images import DecodedImage, ImageError, decode_image, inspect_image
from qwendesk.widgets.drag_and_drop import picture_mime
from qwendesk.widgets.icons import pixmap
from qwendesk.widgets.theme_keeper import current_theme

SUFFIXES: Final = ("png", "jpg", "jpeg", "webp", "avif", "gif", "tif", "tiff", "bmp")
# Longest side of a thumbnail in pixels, which is sharp at 220 logical pixels on a screen with scale 2.
THUMBNAIL_SIDE: Final = 440


class ImagePreview(msgspec.Struct, frozen=True):
    """A picture file that was checked. Width and height are in pixels, after applying the orientation."""

    path: Path
    width: int
    height: int
    thumbnail: QImage
    data: bytes = b""
    """The bytes of a picture without a file; `path` is only its name then."""


def load_preview(path: Path, data: bytes | None = None) -> ImagePreview:
    """Check a picture file or its bytes, and return a preview.

    Raise BadRequest with a message if it has none of the formats in `FORMATS` of decoding or is too large.
    """
    image, width, height = load_full(path, THUMBNAIL_SIDE, data)
    return ImagePreview(path, width, height, image, data or b"")


def store_pasted_image(image: QImage, incognito_images: IncognitoImages | None) -> ImagePart:
    """Save a picture from the clipboard as PNG, named by its hash, in the app's cache or in `incognito_images`.

    Raise BadRequest if it cannot be saved.
    """
    return store_image_data(_png(image), incognito_images)


def store_image_data(data: bytes, incognito_images: IncognitoImages | None) -> ImagePart:
    """Save the bytes of a picture file, named by its hash, in the app's cache or in `incognito_images`.

    Raise BadRequest if it isn't a picture or cannot be saved.
    """
    try:
        ending = inspect_image(Path(tr("Pasted picture")), data).format.lower()
    except ImageError as error:
        if error.kind == "not_an_image":
            sentence = tr(
                "QwenDesk can't read the pasted picture. Copy it again, or save it as a PNG file and attach that."
            )
            raise BadRequest(tr("Unknown format"), sentence) from error
        raise
    if incognito_images is not None:
        return incognito_images.add(data, f"pasted.{ending}")
    sha256 = hashlib.sha256(data).hexdigest()
    path = cache_folder() / "pasted" / f"{sha256}.{ending}"
    try:
        if not path.exists():
            write_whole(path, data)
        stamp = file_stamp(path.stat())
    except OSError as error:
        raise BadRequest(tr("Picture not saved"), tr("Couldn't save the pasted picture: {0}", error)) from error
    return ImagePart(str(path), sha256, file_stamp=stamp)


def _png(image: QImage) -> bytes:
    from PIL import Image

    opaque = image.convertToFormat(QImage.Format.Format_RGBA8888)
    data = io.BytesIO()
    size = (opaque.width(), opaque.height())
    Image.frombuffer("RGBA", size, bytes(opaque.constBits()), "raw", "RGBA", opaque.bytesPerLine(), 1).save(data, "PNG")
    return data.getvalue()


def load_full(path: Path, longest_side: int, data: bytes | None = None) -> tuple[QImage, int, int]:
    """Return the picture, reduced to `longest_side` pixels if larger, and the file's width and height.

    Raise BadRequest as `load_preview` does.
    """
    decoded = decode_image(path, data, longest_side=longest_side)
    return _qimage(decoded), decoded.facts.width, decoded.facts.height


def _qimage(decoded: DecodedImage) -> QImage:
    facts = decoded.facts
    has_alpha = facts.mode == "RGBA"
    layout = QImage.Format.Format_RGBA8888 if has_alpha else QImage.Format.Format_RGB888
    row_bytes = facts.pixel_width * (4 if has_alpha else 3)
    image = QImage(decoded.pixels, facts.pixel_width, facts.pixel_height, row_bytes, layout)
    # A copy, because the image doesn't keep the bytes alive, with 4 bytes per pixel, which Qt draws fastest.
    return image.convertToFormat(QImage.Format.Format_RGBA8888) if not has_alpha else image.copy()


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

    def __init__(self, path: Path, largest: QSize, name: str = "") -> None:
        """`name` is shown in place of the file's."""
        super().__init__()
        self._path = path
        self._name = name or path.name
        self._largest = largest
        self._image: QImage | None = None
        self._error = ""
        self.note = ""
        """A short remark for the tooltip."""
        self.setFixedSize(largest.height(), largest.height())
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setAccessibleName(tr("Picture {0}", self._name))
        self.setToolTip(tr("{0}: click to view full size", self._name))
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
            self.setToolTip(tr("{0} ({1}): click to view full size", self._name, self.note))

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
        for row, (text, role) in enumerate(((self._name, "text"), (self._error, "text_dim"))):
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
