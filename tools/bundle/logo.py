"""The logo as pictures, for packages and icons."""

from pathlib import Path

from PySide6.QtCore import QByteArray, QSize
from PySide6.QtGui import QImage, QPainter
from PySide6.QtSvg import QSvgRenderer

from tools.setup.project import ROOT, SetupError

LOGO_COLOUR = "#6C5CF0"
"""The accent as fill of both themes (resources/themes)."""
_SIZES = (48, 128, 256)
"""Sides that desktops ask for, in pixels."""


def draw_icons(folder: Path) -> None:
    """The logo in the sizes that desktops ask for, below `folder`, which is laid out like an icon theme."""
    svg = logo_svg(LOGO_COLOUR)
    for side in _SIZES:
        path = folder / f"{side}x{side}" / "apps" / "qwendesk.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        if not logo_image(svg, side).save(str(path)):
            raise SetupError(f"The icon {path} could not be written.")


def logo_svg(colour: str) -> str:
    """The logo's drawing, whose lines are black in the file, in another colour."""
    text = (ROOT / "resources" / "icons" / "logo.svg").read_text(encoding="utf-8")
    return text.replace('"#000"', f'"{colour}"')


def logo_image(svg: str, side: int) -> QImage:
    """The logo on nothing, `side` pixels wide and high."""
    image = QImage(QSize(side, side), QImage.Format.Format_ARGB32)
    image.fill(0)
    painter = QPainter(image)
    QSvgRenderer(QByteArray(svg.encode())).render(painter)
    painter.end()
    return image
