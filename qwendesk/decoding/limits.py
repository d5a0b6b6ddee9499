"""Limits for picture and PDF files, and the sizes that pictures are reduced to."""

from qwendesk.core.units import MIB

MAX_FILE_BYTES = 256 * MIB
"""Larger picture and PDF files are refused before they are read."""
MAX_DECODED_BYTES = 512 * MIB
"""Larger pictures are refused before decoding: above 134 megapixels of 4 bytes, or 67 of 16-bit RGBA."""
MAX_PROCESS_BYTES = 2048 * MIB
"""Memory of the decoding process. A picture at the limit takes two to three times its size."""
TIME_LIMIT_S = 120.0
"""A PDF of 2,000 pages takes about 20 s."""


def fit_longest_side(width: int, height: int, longest_side: int) -> tuple[int, int]:
    """Return the size of the same shape with at most `longest_side` pixels a side, and no side less than 1."""
    scale = longest_side / max(width, height)
    return (width, height) if scale >= 1 else (max(1, round(width * scale)), max(1, round(height * scale)))


def fit_pixels(width: int, height: int, max_pixels: int) -> tuple[int, int]:
    """Return the size of the same shape with at most `max_pixels` pixels, and no side less than 1."""
    scale = (max_pixels / (width * height)) ** 0.5
    return (width, height) if scale >= 1 else (max(1, int(width * scale)), max(1, int(height * scale)))
