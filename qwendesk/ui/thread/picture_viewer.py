"""One picture at full size, as large as the window lets it be."""

import asyncio
from pathlib import Path

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QImage, QKeySequence, QMouseEvent, QPainter, QPaintEvent, QShortcut
from PySide6.QtWidgets import QDialog, QWidget

from qwendesk.core.errors import BadRequest
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.thread.pictures import load_full

_LONGEST_SIDE = 4096


class PictureViewer(QDialog):
    """Shows a picture until it is clicked or Esc is pressed. Does not block the window."""

    def __init__(self, keeper: ThemeKeeper, path: Path, parent: QWidget) -> None:
        super().__init__(parent)
        self._keeper = keeper
        self._image: QImage | None = None
        self._sentence = tr("Opening {0}…", path.name)
        self.setObjectName("picture.viewer")
        self.setWindowTitle(path.name)
        self.setAccessibleName(tr("Picture {0}", path.name))
        self.setToolTip(tr("Click or press Esc to close"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.resize(parent.window().size() * 0.8)
        QShortcut(QKeySequence(Qt.Key.Key_Escape), self, self.close)

    def has_picture(self) -> bool:
        """Whether the picture is there, rather than a sentence."""
        return self._image is not None

    async def load(self, path: Path) -> None:
        try:
            self._image = await asyncio.to_thread(load_full, path, _LONGEST_SIDE)
        except BadRequest as error:
            self._sentence = error.sentence
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        theme = self._keeper.theme
        painter = QPainter(self)
        painter.fillRect(self.rect(), theme.color("window"))
        if self._image is None:
            painter.setPen(theme.color("text_dim"))
            painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, self._sentence)
        else:
            painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
            room = self.rect().adjusted(16, 16, -16, -16).size()
            shape = self._image.size()
            if shape.width() > room.width() or shape.height() > room.height():
                shape = shape.scaled(room, Qt.AspectRatioMode.KeepAspectRatio)
            left, top = (self.width() - shape.width()) / 2, (self.height() - shape.height()) / 2
            painter.drawImage(QRectF(left, top, shape.width(), shape.height()), self._image)
        painter.end()

    def mousePressEvent(self, _event: QMouseEvent) -> None:
        self.close()
