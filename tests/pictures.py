"""Pictures for tests, drawn when they are needed: one coloured shape, the kind the demo model can name."""

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw

RGB = tuple[int, int, int]
"""Red, green and blue, 0 to 255."""
COLOURS: dict[str, RGB] = {
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
"""Gray is a background only: the demo model knows no gray shape."""
SHAPE_COLOURS = tuple(colour for colour in COLOURS if colour != "gray")
SHAPES = ("circle", "square", "triangle", "star")
_POINTS = {"square": (4, math.pi / 4, 1.0), "triangle": (3, -math.pi / 2, 1.0), "star": (10, -math.pi / 2, 0.42)}
"""For each shape but the circle: corners, angle of the first one, and how far out every second corner is."""


@dataclass(frozen=True)
class Look:
    """How a shape lies in its picture: by default upright in the middle, in clean colours."""

    radius: float = 0.36
    """From the middle of the shape to its corners, as a share of the picture's side; so are the two below."""
    across: float = 0.5
    down: float = 0.5
    turn: float = 0.0
    """Radians, clockwise."""
    shape_tint: RGB = (0, 0, 0)
    """Added to the colour; the sum stays within 0 to 255."""
    background_tint: RGB = (0, 0, 0)
    grain: float = 0.0
    """Standard deviation of the noise on every pixel, of 255."""
    grain_seed: int = 0


@dataclass(frozen=True)
class ShapePicture:
    """One shape in a square picture, `side` pixels wide."""

    colour: str
    shape: str
    background: str = "white"
    side: int = 128
    look: Look = Look()

    def draw(self) -> Image.Image:
        """The picture, smooth at the edges (drawn twice as large, then halved)."""
        look, size = self.look, self.side * 2
        image = Image.new("RGB", (size, size), _tinted(self.background, look.background_tint))
        pen, fill = ImageDraw.Draw(image), _tinted(self.colour, look.shape_tint)
        x, y, radius = size * look.across, size * look.down, size * look.radius
        if self.shape == "circle":
            pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=fill)
        else:
            corners, first, inner = _POINTS[self.shape]
            points = []
            for index in range(corners):
                angle = look.turn + first + 2 * math.pi * index / corners
                reach = radius * (inner if index % 2 else 1.0)
                points.append((x + reach * math.cos(angle), y + reach * math.sin(angle)))
            pen.polygon(points, fill=fill)
        image = image.resize((self.side, self.side), Image.Resampling.BOX)
        return _grained(image, look) if look.grain else image


def varied_shapes(count: int, seed: int) -> Iterator[ShapePicture]:
    """Every colour and shape in turn, the rest drawn by chance as in the demo model's training.

    That is: 64 to 256 pixels; another colour or gray behind; a shape of 40 to 88% of the picture's side, half of them
    anywhere in it, half of them turned by up to 14 degrees; colours a little off; grain on four of ten.
    """
    rng = random.Random(seed)
    for index in range(count):
        colour = SHAPE_COLOURS[index % len(SHAPE_COLOURS)]
        shape = SHAPES[index // len(SHAPE_COLOURS) % len(SHAPES)]
        background = rng.choice([name for name in COLOURS if name != colour])
        yield ShapePicture(colour, shape, background, rng.randint(64, 256), _varied_look(rng))


def blocks_picture(rng: random.Random) -> Image.Image:
    """Blocks of any colours, square like the others: a picture that shows no shape at all."""
    cells, side = rng.randint(12, 96), rng.randint(64, 256)
    blocks = Image.frombytes("RGB", (cells, cells), rng.randbytes(cells * cells * 3))
    return blocks.resize((side, side), Image.Resampling.NEAREST)


def _varied_look(rng: random.Random) -> Look:
    radius = rng.uniform(0.20, 0.44)
    in_the_middle, upright, clean = rng.random() < 0.5, rng.random() < 0.5, rng.random() < 0.6
    # Two of 128 pixels: no shape touches the edge.
    low, high = radius + 2 / 128, 1 - radius - 2 / 128
    return Look(
        radius=radius,
        across=0.5 if in_the_middle else rng.uniform(low, high),
        down=0.5 if in_the_middle else rng.uniform(low, high),
        turn=0.0 if upright else rng.uniform(-0.25, 0.25),
        shape_tint=_tint(rng, 8),
        background_tint=_tint(rng, 6),
        grain=0.0 if clean else rng.uniform(2, 16),
        grain_seed=rng.randrange(2**30),
    )


def _tint(rng: random.Random, most: int) -> RGB:
    return rng.randint(-most, most), rng.randint(-most, most), rng.randint(-most, most)


def _tinted(colour: str, tint: RGB) -> RGB:
    red, green, blue = (min(max(value + extra, 0), 255) for value, extra in zip(COLOURS[colour], tint, strict=True))
    return red, green, blue


def _grained(image: Image.Image, look: Look) -> Image.Image:
    pixels = np.asarray(image, dtype=np.float64)
    noise = np.random.default_rng(look.grain_seed).normal(0.0, look.grain, pixels.shape)
    return Image.fromarray(np.clip(pixels + noise, 0, 255).astype(np.uint8))
