"""What ziamath lacks for the formulas of models: the lines of tables, and text in scripts that its font lacks.

Importing this module replaces ziamath's tables, texts and identifiers. It takes 0.3 s, so only `formulas.draw` does.
"""

from itertools import pairwise
from typing import Any
from xml.etree.ElementTree import Element, SubElement, fromstring

from ziafont.fonttypes import BBox
from ziamath.config import config
from ziamath.drawable import Drawable, Glyph, HLine, VLine
from ziamath.nodes.mnode import Mnode
from ziamath.nodes.mnumber import Midentifier, Mtext
from ziamath.nodes.mtable import Mtable
from ziamath.styles import MathStyle
from ziamath.tex import tex2mml
from ziamath.zmath import Math

from qwendesk.chat.markdown_rules.cjk import is_cjk
from qwendesk.chat.view.answer.formula_source import drawable_latex, is_complete, lines_of

config.svg2 = False  # with SVG 2, Qt draws nothing but the bars

# How far a wide character reaches above and below the baseline, as a share of its size.
_ASCENT, _DESCENT = 0.88, 0.12


def formula_svg(source: str, size: float, color: str, *, displayed: bool) -> str | None:
    """Return a formula as SVG; None if a part of it would be missing. Raise anything for text that is no formula."""
    latex = drawable_latex(source)
    if latex is None:
        return None
    element = fromstring(tex2mml(latex, inline=not displayed))
    if not is_complete(element):
        return None
    element.set("mathcolor", color)
    formula = Math(element, size=size)
    # ziamath draws the lines over and under letters in black, whatever the colour.
    return formula.svg().replace('="black"', f'="{color}"') if _has_all_glyphs(formula.node) else None


def _has_all_glyphs(node: Drawable) -> bool:
    if isinstance(node, Glyph):
        return bool(node.glyph.index) or node.char.isspace()
    return all(map(_has_all_glyphs, node.nodes))


class _LinedTable(Mtable, tag="mtable"):
    """A table with the lines that its attribute "class" names; see `lines_of`."""

    def _setup(self, **kwargs: Any) -> None:
        rows, columns = lines_of(self.element)
        if rows or columns:
            self.element.set("columnspacing", "1em")
            self.element.set("rowspacing", "0.5em")
        super()._setup(**kwargs)
        if rows or columns:
            self._add_lines(rows, columns, **kwargs)

    def _add_lines(self, rows: frozenset[int], columns: frozenset[int], **kwargs: Any) -> None:
        gap = self.size_px("0.25em")
        thickness = self.units_to_points(self.font.math.consts.fractionRuleThickness)
        cells = iter(zip(self.nodes, self.nodexy, strict=True))
        tops: list[float] = []
        bottoms: list[float] = []
        lefts: list[float] = []
        rights: list[float] = []
        for number, row in enumerate(self.element):
            tops.append(float("inf"))
            bottoms.append(float("-inf"))
            for column in range(len(row)):
                node, (x, y) = next(cells)
                if column == len(lefts):
                    lefts.append(float("inf"))
                    rights.append(float("-inf"))
                tops[number] = min(tops[number], y - node.bbox.ymax)
                bottoms[number] = max(bottoms[number], y - node.bbox.ymin)
                lefts[column] = min(lefts[column], x)
                rights[column] = max(rights[column], x + node.bbox.xmax)
        across, down = _between(lefts, rights, gap), _between(tops, bottoms, gap)
        outer = lefts[0] - across[0] if 0 in columns else 0.0
        self.nodexy = [(x + outer, y) for x, y in self.nodexy]
        left = across[0] if 0 in columns else lefts[0]
        right = across[-1] if len(lefts) in columns else rights[-1]
        top = down[0] if 0 in rows else tops[0]
        bottom = down[-1] if len(tops) in rows else bottoms[-1]
        for row_line in sorted(rows):
            self.nodes.append(HLine(right - left, thickness, style=self.style, **kwargs))
            self.nodexy.append((left + outer, down[row_line] - thickness / 2))
        for column_line in sorted(columns):
            self.nodes.append(VLine(bottom - top, thickness, style=self.style, **kwargs))
            self.nodexy.append((across[column_line] + outer, top))
        self.bbox = BBox(self.bbox.xmin, max(self.bbox.xmax, right) + outer, -bottom, -top)


def _between(starts: list[float], ends: list[float], gap: float) -> list[float]:
    """Return the places of lines before, between and behind rows or columns with these starts and ends."""
    inner = [(end + start) / 2 for (_, end), (start, _) in pairwise(zip(starts, ends, strict=True))]
    return [starts[0] - gap, *inner, ends[-1] + gap]


class _WideCharacter(Drawable):
    """A Chinese, Japanese or Korean character, which Qt draws with the system's font. It is one em wide."""

    def __init__(self, character: str, size: float, style: MathStyle, *, is_phantom: bool) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._character, self._size, self._style, self._is_phantom = character, size, style, is_phantom
        self.bbox = BBox(0, size, -_DESCENT * size, _ASCENT * size)

    def draw(self, x: float, y: float, svg: Element) -> tuple[float, float]:
        if not self._is_phantom:
            place = {"x": f"{x:.3f}", "y": f"{y:.3f}", "font-size": f"{self._size:.3f}", "fill": self._style.mathcolor}
            SubElement(svg, "text", place).text = self._character
        return x + self._size, y


def _replace_wide_characters(node: Mnode, **kwargs: Any) -> None:
    """Replace the characters of a text that the font lacks, and move those behind them."""
    shift = 0.0
    is_changed = False
    for at, (drawn, (x, y)) in enumerate(zip(node.nodes, node.nodexy, strict=True)):
        node.nodexy[at] = (x + shift, y)
        if isinstance(drawn, Glyph) and not drawn.glyph.index and is_cjk(drawn.char):
            wide = _WideCharacter(drawn.char, node.glyphsize, node.style, is_phantom=bool(kwargs.get("phantom")))
            shift += wide.bbox.xmax - drawn.xadvance()
            node.nodes[at] = wide
            is_changed = True
    if is_changed:
        box, size = node.bbox, node.glyphsize
        node.bbox = BBox(
            box.xmin,
            node.nodexy[-1][0] + node.nodes[-1].xadvance(),
            min(box.ymin, -_DESCENT * size),
            max(box.ymax, _ASCENT * size),
        )


class _Text(Mtext, tag="mtext"):
    def _setup(self, **kwargs: Any) -> None:
        super()._setup(**kwargs)
        _replace_wide_characters(self, **kwargs)


class _Identifier(Midentifier, tag="mi"):
    def _setup(self, **kwargs: Any) -> None:
        super()._setup(**kwargs)
        _replace_wide_characters(self, **kwargs)
