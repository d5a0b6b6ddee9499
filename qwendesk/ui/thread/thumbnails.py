"""Pictures shown small, each opening at full size."""

import asyncio
from pathlib import Path

from PySide6.QtCore import QMimeData, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetrics, QImage, QPainter, QPainterPath, QPaintEvent, QPen
from PySide6.QtWidgets import QToolButton

from qwendesk.core.errors import BadRequest
from qwendesk.services.chat.held import HeldPictures
from qwendesk.ui.kit.dragging import picture_mime
from qwendesk.ui.kit.icons import pixmap
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.thread.pictures import Picture, look_at

_TROUBLE = QSize(148, 84)
"""Of the placeholder for a picture that cannot be read: its name and two words."""


class PictureShelf:
    """Remembers the pictures that were looked at, so that a thumbnail is made once."""

    def __init__(self, held: HeldPictures | None = None) -> None:
        """`held` are those that are no files."""
        self.held = held or HeldPictures()
        self._pictures: dict[Path, Picture] = {}

    async def look_at(self, path: Path) -> Picture:
        """The picture at `path`. Raises BadRequest when it is none."""
        if path not in self._pictures:
            self._pictures[path] = await asyncio.to_thread(look_at, path, self.held.get(path))
        return self._pictures[path]

    def mime(self, path: Path) -> QMimeData:
        """The picture as other programs take it: as a file, or as pixels where there is none."""
        return picture_mime(path, self.held.get(path))

    def forget_held(self) -> None:
        """Nothing stays of pictures that were no files and are not held any more."""
        self._pictures = {
            path: picture for path, picture in self._pictures.items() if not picture.data or self.held.get(path)
        }


class Thumbnail(QToolButton):
    """One picture with rounded corners; `opened` when it is clicked."""

    opened = Signal(str)

    def __init__(self, keeper: ThemeKeeper, path: Path, largest: QSize) -> None:
        super().__init__()
        self._keeper = keeper
        self._path = path
        self._largest = largest
        self._image: QImage | None = None
        self._trouble = ""
        self.note = ""
        """What else is to be known of it, in a few words."""
        self.setFixedSize(largest.height(), largest.height())
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setAccessibleName(tr("Picture {0}", path.name))
        self.setToolTip(tr("{0}: click to see it in full size", path.name))
        self.clicked.connect(lambda: self.opened.emit(str(self._path)))

    async def fill(self, shelf: PictureShelf) -> None:
        """Draw the picture; one that cannot be read any more says so in its place."""
        try:
            picture = await shelf.look_at(self._path)
        except BadRequest as error:
            self._show_trouble(error)
            return
        self.show_image(picture)
        if self.note:
            self.setToolTip(tr("{0} ({1}): click to see it in full size", self._path.name, self.note))

    def _show_trouble(self, error: BadRequest) -> None:
        self._trouble = error.title
        self.setFixedSize(max(self.minimumWidth(), _TROUBLE.width()), _TROUBLE.height())
        self.setToolTip(error.sentence)
        self.setAccessibleDescription(error.sentence)
        self.update()

    def show_image(self, picture: Picture) -> None:
        self._image = picture.thumbnail
        shape = QSize(picture.width, picture.height).scaled(self._largest, Qt.AspectRatioMode.KeepAspectRatio)
        side = min(48, self._largest.height())
        self.setFixedSize(shape.expandedTo(QSize(side, side)).boundedTo(self._largest))
        self.update()

    def _paint_placeholder(self, painter: QPainter) -> None:
        """While the picture is read; for one that cannot be, its name and what is wrong."""
        theme, middle = self._keeper.theme, self.rect().center()
        name, color = ("picture_off", "text_warn") if self._trouble else ("picture", "text_dim")
        top = 14 if self._trouble else middle.y() - 10
        painter.drawPixmap(middle.x() - 10, top, pixmap(name, theme[color], 20, self.devicePixelRatioF()))
        if not self._trouble:
            return
        font = theme.font(11)
        metrics = QFontMetrics(font)
        painter.setFont(font)
        for row, (text, role) in enumerate(((self._path.name, "text"), (self._trouble, "text_dim"))):
            line = self.rect().adjusted(8, 42 + row * (metrics.lineSpacing() + 2), -8, 0)
            painter.setPen(theme.color(role))
            words = metrics.elidedText(text, Qt.TextElideMode.ElideMiddle, line.width())
            painter.drawText(line, Qt.AlignmentFlag.AlignHCenter | Qt.AlignmentFlag.AlignTop, words)

    def paintEvent(self, _event: QPaintEvent) -> None:
        theme = self._keeper.theme
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
