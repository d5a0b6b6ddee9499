"""Icons by semantic name: SVG line drawings from resources/icons in the colours of the theme."""

import functools
from pathlib import Path

from PySide6.QtCore import QByteArray, QPoint, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QIcon, QIconEngine, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

from qwendesk.core.paths import resources_folder


@functools.cache
def icon(name: str, color: str, size: int = 18, off_color: str = "") -> QIcon:
    """Return the icon `name` in a colour (#RRGGBB), at most `size` logical pixels wide.

    `off_color` is used while the button is disabled. Raise FileNotFoundError if there is no such icon.
    """
    if not _file(name).is_file():
        raise FileNotFoundError(_file(name))
    return QIcon(_Drawing(name, color, size, off_color or color))


class _Drawing(QIconEngine):
    """Draws an icon when it is shown, at the pixel ratio of its screen: most icons of a window are hidden at first."""

    def __init__(self, name: str, color: str, size: int, off_color: str) -> None:
        super().__init__()
        self._name, self._color, self._size, self._off_color = name, color, size, off_color

    def pixmap(self, size: QSize, mode: QIcon.Mode, state: QIcon.State) -> QPixmap:
        return self.scaledPixmap(size, mode, state, 1.0)

    def scaledPixmap(self, size: QSize, mode: QIcon.Mode, _state: QIcon.State, scale: float) -> QPixmap:
        color = self._off_color if mode is QIcon.Mode.Disabled else self._color
        return pixmap(self._name, color, min(self._size, size.width(), size.height()), scale)

    def paint(self, painter: QPainter, rect: QRect, mode: QIcon.Mode, state: QIcon.State) -> None:
        drawing = self.scaledPixmap(rect.size(), mode, state, painter.device().devicePixelRatioF())
        margin = (rect.size() - drawing.deviceIndependentSize().toSize()) / 2
        painter.drawPixmap(rect.topLeft() + QPoint(margin.width(), margin.height()), drawing)

    def clone(self) -> QIconEngine:
        copy = _Drawing(self._name, self._color, self._size, self._off_color)
        _copies.append(copy)
        return copy


# Qt deletes these, but doesn't keep Python's part of them alive. It copies an icon that is changed, and none is.
_copies: list[QIconEngine] = []


@functools.cache
def pixmap(name: str, color: str, size: int, ratio: float = 1.0) -> QPixmap:
    """Return the icon as a pixmap, `size` logical pixels wide at a device pixel ratio."""
    drawing = QPixmap(round(size * ratio), round(size * ratio))
    drawing.fill(Qt.GlobalColor.transparent)
    painter = QPainter(drawing)
    _renderer(name).render(painter, QRectF(drawing.rect()))
    painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_SourceIn)
    painter.fillRect(drawing.rect(), QColor(color))
    painter.end()
    drawing.setDevicePixelRatio(ratio)
    return drawing


@functools.cache
def _renderer(name: str) -> QSvgRenderer:
    """Return the drawing of an icon, which is read once and drawn in several colours and sizes."""
    return QSvgRenderer(QByteArray(_file(name).read_bytes()))


def _file(name: str) -> Path:
    return _folder() / f"{name}.svg"


@functools.cache
def _folder() -> Path:
    return resources_folder() / "icons"
