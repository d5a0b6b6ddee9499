"""Converts LaTeX to SVG with ziamath. Pure Python, no Qt. It is slow, so call it on a separate thread.

Formulas are untrusted: one that would take long or become large is shown as source.
"""

import re
import warnings
from typing import Final

import msgspec

NOMINAL: Final = 24.0
"""The text size in pixels for which formulas are drawn. They are scaled when painted."""
INK: Final = f"#{0x010203:06x}"
"""Placeholder for the text colour in a drawing. It is never shown itself."""
MAX_FORMULA_LENGTH: Final = 600
MAX_FORMULA_DEPTH: Final = 7
"""Maximum depth of nesting. ziamath's work doubles with each level."""
MAX_SVG_LENGTH: Final = 400_000
_MAX_WIDTH, _MAX_HEIGHT = 4_000.0, 1_200.0
_OPENING = re.compile(r"\\(?:left|begin)\b|[{\[]")
_CLOSING = re.compile(r"\\(?:right|end)\b|[}\]]")
_BARE_CHAIN = re.compile(r"(?:(?:\\[a-zA-Z]+|[\^_])\s*)+")
_TAKES_ARGUMENT = re.compile(
    r"[\^_]|\\(?:sqrt|[dtc]?frac|[dt]?binom|(?:wide)?hat|(?:wide)?tilde|bar|vec|d{1,4}ot|check|breve|acute|grave|"
    r"over\w*|under\w*|math\w+|text\w*|boxed|cancel|not|left|stackrel|overset|underset|operatorname|pmod|root|color|x\w+)"
)
_FORBIDDEN_TAG = re.compile(rb"<(?!/|svg\b|path\b|rect\b|g\b|use\b|symbol\b|line\b|polygon\b|defs\b|title\b)")
_FORBIDDEN_COMMAND = re.compile(
    r"\\(?:def|newcommand|renewcommand|let|input|include|href|url|includegraphics|class|style|html\w*)\b"
)


class Drawing(msgspec.Struct, frozen=True):
    """An SVG for text of NOMINAL pixels in INK, and its bounding box in the same pixels."""

    svg: str
    width: float
    height: float
    depth: float
    """How far the box extends below the baseline."""


def is_drawable(source: str) -> bool:
    """Return True if a formula is short enough, and not nested too deeply, to be drawn."""
    text = source.strip()
    if (
        not text
        or len(text) > MAX_FORMULA_LENGTH
        or _FORBIDDEN_COMMAND.search(text)
        or any(ord(each) < 32 for each in text if each not in "\n\t")
    ):
        return False
    return nesting(text) <= MAX_FORMULA_DEPTH


def nesting(source: str) -> int:
    """Return the nesting depth of a formula.

    Brackets, environments, and commands that follow each other without brackets count.
    """
    marks = sorted(
        [(found.start(), 1) for found in _OPENING.finditer(source)]
        + [(found.start(), -1) for found in _CLOSING.finditer(source)]
    )
    depth = deepest = 0
    for _, step in marks:
        depth = max(0, depth + step)
        deepest = max(deepest, depth)
    chains = [len(_TAKES_ARGUMENT.findall(chain[0])) for chain in _BARE_CHAIN.finditer(source)]
    return deepest + max(0, max(chains, default=0) - 1)


def draw(source: str, *, displayed: bool) -> Drawing | None:
    """Return the drawing; None if ziamath cannot read the formula, or its result is too large or not only shapes."""
    if not is_drawable(source):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # from ziamath's font package when it reads its own files
        return _draw(source, displayed=displayed)


def _draw(source: str, *, displayed: bool) -> Drawing | None:
    # Imported here because it takes 0.3 s, and only chats with formulas need it.
    from ziamath.config import config  # noqa: PLC0415
    from ziamath.zmath import Latex  # noqa: PLC0415

    config.svg2 = False  # with SVG 2, Qt draws nothing but the bars
    try:
        formula = Latex(" ".join(source.split()), size=NOMINAL, color=INK, inline=not displayed)
        svg = formula.svg()
    except (RecursionError, MemoryError):
        return None
    except Exception:  # noqa: BLE001  -- latex2mathml and ziamath raise anything for text that is no formula
        return None
    box = re.search(r'viewBox="(\S+) (\S+) (\S+) (\S+)"', svg)
    if (
        box is None
        or len(svg) > MAX_SVG_LENGTH
        or _FORBIDDEN_TAG.search(svg.encode())
        or "url(" in svg
        or 'href="http' in svg
    ):
        return None
    top, width, height = float(box[2]), float(box[3]), float(box[4])
    if not (0 < width <= _MAX_WIDTH and 0 < height <= _MAX_HEIGHT):
        return None
    return Drawing(svg, width, height, top + height)
