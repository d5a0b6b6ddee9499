"""Pictures for tests, drawn when they are needed: one coloured shape, the kind the demo model can name."""

import math
from dataclasses import dataclass

from PIL import Image, ImageDraw

COLOURS = {
    "red": (214, 36, 36),
    "green": (36, 156, 56),
    "blue": (44, 76, 216),
    "yellow": (242, 214, 44),
    "orange": (246, 142, 26),
    "purple": (136, 44, 166),
    "white": (246, 246, 246),
    "black": (18, 18, 18),
    "gray": (128, 128, 128),
}
"""Red, green and blue, 0 to 255. Gray is a background only: the demo model knows no gray shape."""
SHAPES = ("circle", "square", "triangle", "star")
_POINTS = {"square": (4, math.pi / 4, 1.0), "triangle": (3, -math.pi / 2, 1.0), "star": (10, -math.pi / 2, 0.42)}
"""For each shape but the circle: corners, angle of the first one, and how far out every second corner is."""


@dataclass(frozen=True)
class ShapePicture:
    """One shape in the middle of a square picture, `side` pixels wide."""

    colour: str
    shape: str
    background: str = "white"
    side: int = 128

    def draw(self) -> Image.Image:
        """The picture, smooth at the edges (drawn twice as large, then halved)."""
        size = self.side * 2
        image = Image.new("RGB", (size, size), COLOURS[self.background])
        pen, middle, radius = ImageDraw.Draw(image), size / 2, size * 0.36
        if self.shape == "circle":
            pen.ellipse((middle - radius, middle - radius, middle + radius, middle + radius), fill=COLOURS[self.colour])
        else:
            corners, first, inner = _POINTS[self.shape]
            points = []
            for index in range(corners):
                angle, reach = first + 2 * math.pi * index / corners, radius * (inner if index % 2 else 1.0)
                points.append((middle + reach * math.cos(angle), middle + reach * math.sin(angle)))
            pen.polygon(points, fill=COLOURS[self.colour])
        return image.resize((self.side, self.side), Image.Resampling.BOX)
