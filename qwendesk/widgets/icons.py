"""Icons by semantic name: SVG line drawings from resources/icons in the colours of the theme."""

import functools

from PySide6.QtCore import QByteArray, QRectF, Qt
from PySide6.QtGui import QColor, QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

from qwendesk.core.paths import resources_folder

_PIXEL_RATIOS = (1.0, 1.25, 1.5, 2.0, 3.0)


@functools.cache
def icon(name: str, color: str, size: int = 18, off_color: str = "") -> QIcon:
    """Return the icon `name` in a colour (#RRGGBB), `size` logical pixels wide.

    `off_color` is used while the button is disabled. Raise FileNotFoundError if there is no such icon.
    """
    result = QIcon()
    for ratio in _PIXEL_RATIOS:
        result.addPixmap(pixmap(name, color, size, ratio), QIcon.Mode.Normal)
        if off_color:
            result.addPixmap(pixmap(name, off_color, size, ratio), QIcon.Mode.Disabled)
    return result


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
    return QSvgRenderer(QByteArray((resources_folder() / "icons" / f"{name}.svg").read_bytes()))
