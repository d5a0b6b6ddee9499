"""A formula's LaTeX to an SVG drawing, by ziamath. Pure Python, no Qt; slow enough for a thread of its own.

Whoever wrote the formula is not trusted: what would take long or grow large stays source.
"""

import re
import warnings
from typing import Final

import msgspec

NOMINAL: Final = 24.0
"""The text size, in pixels, that drawings are made for; they are scaled when they are painted."""
INK: Final = f"#{0x010203:06x}"
"""A mark in a drawing where the text's colour belongs: never on screen itself."""
LONGEST_FORMULA: Final = 600
DEEPEST_FORMULA: Final = 7
"""ziamath's work doubles with each level of nesting."""
LARGEST_SVG: Final = 400_000
_WIDEST, _TALLEST = 4_000.0, 1_200.0
_OPENING = re.compile(r"\\(?:left|begin)\b|[{\[]")
_CLOSING = re.compile(r"\\(?:right|end)\b|[}\]]")
_BARE_CHAIN = re.compile(r"(?:(?:\\[a-zA-Z]+|[\^_])\s*)+")
_TAKES_ARGUMENT = re.compile(
    r"[\^_]|\\(?:sqrt|[dtc]?frac|[dt]?binom|(?:wide)?hat|(?:wide)?tilde|bar|vec|d{1,4}ot|check|breve|acute|grave|"
    r"over\w*|under\w*|math\w+|text\w*|boxed|cancel|not|left|stackrel|overset|underset|operatorname|pmod|root|color|x\w+)"
)
_HARMLESS = re.compile(rb"<(?!/|svg\b|path\b|rect\b|g\b|use\b|symbol\b|line\b|polygon\b|defs\b|title\b)")
_COMMAND = re.compile(
    r"\\(?:def|newcommand|renewcommand|let|input|include|href|url|includegraphics|class|style|html\w*)\b"
)


class Drawing(msgspec.Struct, frozen=True):
    """An SVG for text of NOMINAL pixels, in INK, and its box in the same pixels."""

    svg: str
    width: float
    height: float
    depth: float
    """How far the box reaches below the line that text stands on."""


def is_drawable(source: str) -> bool:
    """Whether a formula is short and flat enough to be drawn; one that is not is shown as its source."""
    text = source.strip()
    if (
        not text
        or len(text) > LONGEST_FORMULA
        or _COMMAND.search(text)
        or any(ord(each) < 32 for each in text if each not in "\n\t")
    ):
        return False
    return nesting(text) <= DEEPEST_FORMULA


def nesting(source: str) -> int:
    """How deep a formula nests: brackets and environments, and commands that follow each other without any."""
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
    """The drawing; None when ziamath cannot read the formula, or what comes out is too large or not only shapes."""
    if not is_drawable(source):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of how its font package reads its own files
        return _draw(source, displayed=displayed)


def _draw(source: str, *, displayed: bool) -> Drawing | None:
    # Takes 0.3 s, and only chats with formulas need it.
    from ziamath.config import config  # noqa: PLC0415
    from ziamath.zmath import Latex  # noqa: PLC0415

    config.svg2 = False  # or Qt draws nothing but the bars
    try:
        formula = Latex(" ".join(source.split()), size=NOMINAL, color=INK, inline=not displayed)
        svg = formula.svg()
    except (RecursionError, MemoryError):
        return None
    except Exception:  # noqa: BLE001  -- latex2mathml and ziamath raise anything for text that is no formula
        return None
    box = re.search(r'viewBox="(\S+) (\S+) (\S+) (\S+)"', svg)
    if box is None or len(svg) > LARGEST_SVG or _HARMLESS.search(svg.encode()) or "url(" in svg or 'href="http' in svg:
        return None
    top, width, height = float(box[2]), float(box[3]), float(box[4])
    if not (0 < width <= _WIDEST and 0 < height <= _TALLEST):
        return None
    return Drawing(svg, width, height, top + height)
