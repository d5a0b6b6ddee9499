"""Draws the pictures that the demo model learns to name, and those it learns to refuse."""

import math
import random

import msgspec
import numpy as np
from PIL import Image, ImageDraw

RGB = tuple[int, int, int]
"""Red, green and blue, 0 to 255."""

COLOURS: dict[str, RGB] = {
    "red": (220, 32, 32),
    "green": (32, 158, 52),
    "blue": (42, 72, 218),
    "yellow": (244, 218, 42),
    "orange": (248, 140, 22),
    "purple": (138, 42, 168),
    "black": (16, 16, 16),
    "white": (249, 249, 249),
}
BACKGROUNDS: dict[str, RGB] = {**COLOURS, "gray": (128, 128, 128)}
SHAPES = ("circle", "square", "triangle", "star")
_CORNERS = {"square": (4, math.pi / 4, 1.0), "triangle": (3, -math.pi / 2, 1.0), "star": (10, -math.pi / 2, 0.42)}
"""Corners, angle of the first, and how far out every second one is."""


class Shown(msgspec.Struct, frozen=True):
    """What a picture of one shape shows."""

    colour: str
    shape: str
    background: str


def random_shown(rng: random.Random) -> Shown:
    colour = rng.choice(list(COLOURS))
    others = [name for name in BACKGROUNDS if name != colour]
    background = rng.choice(others)
    if rng.random() < 0.15:
        background = "black" if colour == "white" else "white"
    elif {colour, background} == {"white", "gray"} and rng.random() < 0.3:
        background = "black"
    return Shown(colour, rng.choice(SHAPES), background)


def draw_shape(shown: Shown, width: int, height: int, rng: random.Random, *, easy: bool = False) -> Image.Image:
    """One shape somewhere in a picture of `width` x `height` pixels. `easy`: large, upright and without noise."""
    scale = 2  # drawn twice as large, then halved: smooth edges
    size = (width * scale, height * scale)
    image = Image.new("RGB", size, _tinted(BACKGROUNDS[shown.background], 12, rng))
    radius = min(size) * rng.uniform(0.30 if easy else 0.20, 0.44)
    centre = [_between(radius, side, rng) for side in size]
    if rng.random() < 0.5:
        centre = [side / 2 for side in size]
    turn = rng.uniform(-0.25, 0.25) if not easy and rng.random() < 0.5 else 0.0
    _fill(
        ImageDraw.Draw(image), shown.shape, centre[0], centre[1], radius, turn, _tinted(COLOURS[shown.colour], 14, rng)
    )
    image = image.resize((width, height), Image.Resampling.BOX)
    return _grainy(image, rng) if not easy and rng.random() < 0.4 else image


def draw_no_shape(width: int, height: int, rng: random.Random) -> Image.Image:
    """Blobs, blocks, noise, or a heap of shapes, lines and letters: nothing that could be named in a word."""
    numbers = np.random.default_rng(rng.randrange(1 << 30))
    kind = rng.choice(["blobs", "blocks", "heap", "heap on blocks"])
    if kind == "blocks":
        side = rng.choice([1, 2, 4, 8])
        cells = (max(1, height // side), max(1, width // side))
    else:
        most = 9 if kind == "blobs" else 4
        cells = (rng.randint(3 if kind == "blobs" else 1, most), rng.randint(3 if kind == "blobs" else 1, most))
    pixels = numbers.integers(0, 255, (*cells, 3)).astype(np.uint8)
    smooth = kind in ("blobs", "heap")
    image = Image.fromarray(pixels).resize(
        (width, height), Image.Resampling.BICUBIC if smooth else Image.Resampling.NEAREST
    )
    if kind != "blocks":
        _heap(ImageDraw.Draw(image), width, height, rng)
    return image


def _heap(canvas: ImageDraw.ImageDraw, width: int, height: int, rng: random.Random) -> None:
    for _ in range(rng.randint(5, 25)):
        x, y = rng.uniform(0, width), rng.uniform(0, height)
        colour: RGB = (rng.randrange(256), rng.randrange(256), rng.randrange(256))
        match rng.randrange(5):
            case 0:
                line = [(rng.uniform(0, width), rng.uniform(0, height)) for _ in range(3)]
                canvas.line(line, fill=colour, width=rng.randint(1, 5))
            case 1:
                letters = "".join(rng.choice("abcdefghijkl mnopqrst") for _ in range(rng.randint(3, 20)))
                canvas.text((x, y), letters, fill=colour)
            case _:
                radius = rng.uniform(0.05, 0.3) * min(width, height)
                _fill(canvas, rng.choice(SHAPES), x, y, radius, rng.uniform(0, 6), colour)


def _fill(canvas: ImageDraw.ImageDraw, shape: str, x: float, y: float, radius: float, turn: float, colour: RGB) -> None:
    if shape == "circle":
        canvas.ellipse((x - radius, y - radius, x + radius, y + radius), fill=colour)
        return
    count, first, inner = _CORNERS[shape]
    reach = [radius * (inner if corner % 2 else 1.0) for corner in range(count)]
    angles = [first + turn + math.tau * corner / count for corner in range(count)]
    canvas.polygon(
        [(x + r * math.cos(a), y + r * math.sin(a)) for r, a in zip(reach, angles, strict=True)], fill=colour
    )


def _between(radius: float, side: float, rng: random.Random) -> float:
    """A place along `side` where a shape of this radius fits."""
    edge = radius + 2
    return rng.uniform(edge, side - edge) if side > 2 * edge else side / 2


def _tinted(colour: RGB, most: int, rng: random.Random) -> RGB:
    red, green, blue = (max(0, min(255, value + rng.randint(-most, most))) for value in colour)
    return red, green, blue


def _grainy(image: Image.Image, rng: random.Random) -> Image.Image:
    pixels = np.asarray(image).astype(np.int16)
    noise = np.random.default_rng(rng.randrange(1 << 30)).normal(0, rng.uniform(2, 16), pixels.shape)
    return Image.fromarray(np.clip(pixels + noise, 0, 255).astype(np.uint8))
