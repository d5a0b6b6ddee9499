"""Icons by semantic name: our own SVG line drawings in resources/icons, tinted with a theme's colour."""

import functools

from PySide6.QtCore import QByteArray, QRectF, Qt
from PySide6.QtGui import QColor, QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

from qwendesk.core.paths import resources_folder

_PIXEL_RATIOS = (1.0, 1.25, 1.5, 2.0, 3.0)


@functools.cache
def icon(name: str, color: str, size: int = 18, off_color: str = "") -> QIcon:
    """The icon NAME in a colour (#RRGGBB), `size` logical pixels; `off_color` is used while disabled.

    Raises FileNotFoundError for a name that has no drawing.
    """
    result = QIcon()
    for ratio in _PIXEL_RATIOS:
        result.addPixmap(pixmap(name, color, size, ratio), QIcon.Mode.Normal)
        if off_color:
            result.addPixmap(pixmap(name, off_color, size, ratio), QIcon.Mode.Disabled)
    return result


@functools.cache
def pixmap(name: str, color: str, size: int, ratio: float = 1.0) -> QPixmap:
    """The drawing alone, `size` logical pixels at a device pixel ratio."""
    renderer = QSvgRenderer(QByteArray((resources_folder() / "icons" / f"{name}.svg").read_bytes()))
    drawing = QPixmap(round(size * ratio), round(size * ratio))
    drawing.fill(Qt.GlobalColor.transparent)
    painter = QPainter(drawing)
    renderer.render(painter, QRectF(drawing.rect()))
    painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_SourceIn)
    painter.fillRect(drawing.rect(), QColor(color))
    painter.end()
    drawing.setDevicePixelRatio(ratio)
    return drawing
