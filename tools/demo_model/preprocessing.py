"""What llama.cpp's mtmd does to a picture before the vision encoder (qwen3vl_merger), and to its tokens, in numpy.

Sizes are rounded in 32-bit floats as there: a picture must give the same number of tokens in training and in the app.
"""

import math

import numpy as np
import numpy.typing as npt
from PIL import Image

from tools.demo_model.dimensions import PATCH

CELL = 2 * PATCH
"""Pixels along one token: the merger joins two patches each way."""
_MIN_PIXELS, _MAX_PIXELS = 8 * CELL**2, 4096 * CELL**2
"""mtmd's limits for Qwen3-VL's encoder: 8 to 4,096 tokens."""


def encoded_size(width: int, height: int) -> tuple[int, int]:
    """Pixels the encoder sees of a picture of this size: whole cells, about its shape, within the limits."""
    wide, high = _rounded(width), _rounded(height)
    if wide * high > _MAX_PIXELS:
        shrink = np.float32(math.sqrt(width * height / _MAX_PIXELS))
        wide, high = (max(CELL, math.floor(np.float32(side) / shrink / CELL) * CELL) for side in (width, height))
    elif wide * high < _MIN_PIXELS:
        grow = np.sqrt(np.float32(_MIN_PIXELS) / (np.float32(height) * np.float32(width)))
        wide, high = (math.ceil(np.float32(side) * grow / np.float32(CELL)) * CELL for side in (width, height))
    return wide, high


def fitted(image: Image.Image) -> npt.NDArray[np.uint8]:
    """The pixels, height x width x 3, that the encoder sees: resized, with black bars where the shape differs."""
    wide, high = encoded_size(*image.size)
    if image.size == (wide, high):
        return np.asarray(image)
    width, height = image.size
    scale = min(np.float32(wide) / np.float32(width), np.float32(high) / np.float32(height))
    inner = min(math.ceil(np.float32(width) * scale), wide), min(math.ceil(np.float32(height) * scale), high)
    pixels = np.zeros((high, wide, 3), np.uint8)
    left, top = (wide - inner[0]) // 2, (high - inner[1]) // 2
    pixels[top : top + inner[1], left : left + inner[0]] = np.asarray(image.resize(inner, Image.Resampling.BICUBIC))
    return pixels


def patches(pixels: npt.NDArray[np.uint8]) -> npt.NDArray[np.float32]:
    """`pixels` as rows of one patch each (3 x 16 x 16 values of -1 to 1), the four of a token one after another."""
    high, wide, _ = pixels.shape
    values = pixels.astype(np.float32) / 127.5 - 1
    cells = values.reshape(high // CELL, 2, PATCH, wide // CELL, 2, PATCH, 3).transpose(0, 3, 1, 4, 6, 2, 5)
    return np.ascontiguousarray(cells).reshape(-1, 3 * PATCH * PATCH)


def place(is_picture: npt.NDArray[np.bool_], grid: tuple[int, int] | None) -> npt.NDArray[np.int64]:
    """Positions, 3 x tokens: text counts on in all three, a picture's tokens by their row and column, and what follows
    one begins after its longer side."""
    positions = np.broadcast_to(np.arange(len(is_picture)), (3, len(is_picture))).copy()
    if grid is None:
        return positions
    high, wide = grid
    first = int(is_picture.argmax())
    inside = np.arange(high * wide)
    after = first + high * wide
    positions[:, first:after] = first + np.stack([inside * 0, inside // wide, inside % wide])
    positions[:, after:] += max(high, wide) - high * wide
    return positions


def _rounded(side: int) -> int:
    """Whole cells, halves up; at least one."""
    return max(CELL, math.floor(float(np.float32(side) / np.float32(CELL)) + 0.5) * CELL)
