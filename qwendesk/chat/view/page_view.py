"""A page of a document as a picture, as wide as there is room, to scroll through."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QPixmap, QResizeEvent
from PySide6.QtWidgets import QFrame, QLabel, QScrollArea

from qwendesk.core.translation import tr


class PageView(QScrollArea):
    def __init__(self, content: bytes) -> None:
        """`content` is that of an image file."""
        super().__init__()
        self._pixmap = QPixmap()
        self._pixmap.loadFromData(content)
        self._label = QLabel()
        self._label.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._label.setObjectName("source.picture.page")
        self.setObjectName("source.picture")
        self.setAccessibleName(tr("Page"))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setWidgetResizable(True)
        self.setWidget(self._label)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        ratio = self.devicePixelRatioF()
        width = min(round(self.viewport().width() * ratio), self._pixmap.width())
        if width > 0:
            drawn = self._pixmap.scaledToWidth(width, Qt.TransformationMode.SmoothTransformation)
            drawn.setDevicePixelRatio(ratio)
            self._label.setPixmap(drawn)
