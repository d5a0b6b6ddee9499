"""Formulas of which a part was missing in the drawing: now all of it is drawn, or all of its source is shown."""

import pytest
from PySide6.QtWidgets import QApplication, QWidget

from qwendesk.chat.view.answer.answer_view import AnswerView
from qwendesk.chat.view.answer.formulas import FormulaCache, draw
from qwendesk.widgets.theme_keeper import ThemeKeeper
from tests.field.grid import SERVER, Kind, Way, case

MISSING_PART = Kind(
    "A part of a formula vanishes without a word",
    dict.fromkeys((Way.CLI, *SERVER, Way.MCP, Way.IMPORT), "only the window draws formulas"),
)

# Formulas of which a part was dropped or became a box, and one that draws the same and was right.
DRAWN = {
    "latex2mathml#564": (r"\mathop{argmax}_{x} f", r"\operatorname*{argmax}_{x} f"),
    "a spaced operator": (r"\mathop{\rm arg\,max}_{x} f", r"\operatorname*{arg max}_{x} f"),
    "an operator in an operator": (r"\operatorname*{\mathrm{argmax}}_{x} f", r"\operatorname*{argmax}_{x} f"),
    "a class of spacing": (r"a \mathrel{=} b", "a {=} b"),
    "anything-llm#5766": (r"\operatorname{Re}z>0", r"\operatorname{Re} z > 0"),
    "carloskiki/pulldown-latex#16": ("80% = 0.8", r"80\% = 0.8"),
    "a percent sign at a line's end": ("x = 80%\n+ y", r"x = 80\% + y"),
    "a row's spacing": (r"\begin{aligned} a &= b \\[4pt] c &= d \end{aligned}",
                        r"\begin{aligned} a &= b \\ c &= d \end{aligned}"),
    "an equation's environment": (r"\begin{equation} a = b \end{equation}", "a = b"),
    "no number of its own": (r"\begin{align} a &= b \nonumber \\ c &= d \end{align}",
                             r"\begin{align*} a &= b \\ c &= d \end{align*}"),
    "gathered lines": (r"\begin{gathered} a \\ b + c \end{gathered}", r"\begin{matrix} a \\ b + c \end{matrix}"),
    "cases in display style": (r"\begin{dcases} a \\ b \end{dcases}", r"\begin{cases} a \\ b \end{cases}"),
    "an aligned pair of columns": (r"\begin{alignedat}{2} a &= b & c &= d \end{alignedat}",
                                   r"\begin{aligned} a &= b & c &= d \end{aligned}"),
    "no padding": (r"\begin{array}{@{}l@{}} a \\* b \end{array}", r"\begin{array}{l} a \\ b \end{array}"),
    "a tag": (r"a = b \tag{1}", r"a = b \qquad\text{(1)}"),
    "a tag without brackets": (r"a = b \tag*{*}", r"a = b \qquad\text{*}"),
    "a sum as an operator": (r"\mathop{\sum}\limits_{i} i", r"\sum_{i} i"),
    "a brace on the right": (r"\begin{rcases} a \\ b \end{rcases} c",
                             r"\left.\begin{array}{ll} a \\ b \end{array}\right\} c"),
    "signs in a text": (r"\text{a & b < c, \$5}", r"\text{a}\text{ & b < c, \$5}"),
    "a label": (r"a = b \label{eq:1}", "a = b"),
    "a formula in a text": (r"\text{for $x > 1$}", r"\text{for }{x > 1}"),
    "handcalcs#60": (r"\textrm{where 50% of it}", r"\textrm{where 50}\%\textrm{ of it}"),
}  # fmt: skip


@case(MISSING_PART, Way.WINDOW, report="latex2mathml#564, anything-llm#5766, pulldown-latex#16", before="failed")
@pytest.mark.parametrize(("source", "same"), DRAWN.values(), ids=list(DRAWN))
def test_all_of_a_formula_is_drawn(source: str, same: str) -> None:
    found, expected = draw(source, displayed=True), draw(same, displayed=True)
    assert found is not None
    assert found == expected


# Each line that is drawn is a rectangle; the others of a formula are shapes of letters.
LINED = {
    "a table": (r"\begin{array}{|c|c|} \hline x & y \\ \hline 1 & 2 \\ \hline \end{array}", 6),
    "an augmented matrix": (r"\left[\begin{array}{cc|c} 1 & 2 & 3 \\ 4 & 5 & 6 \end{array}\right]", 1),
    "a line below the head": (r"\begin{array}{cc} x & y \\ \hline 1 & 2 \end{array}", 1),
    "a long division": (r"\begin{array}{r} 12 \\ \times 3 \\ \hline 36 \end{array}", 1),
    "a table in a table": (r"\begin{array}{c|c} \begin{array}{c} a \\ \hline b \end{array} & c \end{array}", 2),
    "no line": (r"\begin{array}{cc} x & y \\ 1 & 2 \end{array}", 0),
}


@case(MISSING_PART, Way.WINDOW, report="vscode-markdown-preview-enhanced#1511, react-latex#20", before="failed")
@pytest.mark.parametrize(("source", "lines"), LINED.values(), ids=list(LINED))
def test_the_lines_of_a_table_are_drawn(source: str, lines: int) -> None:
    drawing = draw(source, displayed=True)
    assert drawing is not None
    assert drawing.svg.count("<rect") == lines


WIDE = {
    "mathjax#3224": (r"\text{中文 bug}", "中文"),
    "autolatex#61": (r"P\{\mbox{拒绝} \mid H_0 \mbox{为真}\} = \alpha", "拒绝为真"),
    "autolatex#61, roman": (r"\mathrm{中文测试} + x = 1", "中文测试"),
    "a fraction": (r"\text{速度} = \frac{\text{路程}}{\text{时间}}", "速度路程时间"),
    "without \\text": ("总价 = 5x", "总价"),
    "Korean": (r"v_{\text{평균}} = 3", "평균"),
    "Japanese": (r"\text{こんにちは}", "こんにちは"),
}


@case(MISSING_PART, Way.WINDOW, report="markdown2pdf#115, mathjax#3224, autolatex#61, markmap#347", before="failed")
@pytest.mark.parametrize(("source", "characters"), WIDE.values(), ids=list(WIDE))
def test_chinese_in_a_formula_is_drawn_with_the_systems_font(source: str, characters: str) -> None:
    drawing = draw(source, displayed=True)
    assert drawing is not None
    assert all(f">{character}</text>" in drawing.svg for character in characters)


SHOWN_AS_SOURCE = {
    "markdown-preview-enhanced#387": r"\ce{Hg^2+ ->[I-] HgI2}",
    "obsidian-advanced-slides#40": r"\ce{x Na(NH4)HPO4}",
    "arXiv#5934": r"E \propto \ce{^{235}U}",
    "markdown2pdf#115": r"\text{مرحبا}",
    "markdown2pdf#115, Devanagari": r"\text{नमस्ते}",
    "an operator with a formula": r"\mathop{x + \frac{1}{2}}_{n}",
    "a comment": "x = a % the first\n+ y",
    "an unknown command": r"\qty{5}{m/s}",
    "an unknown environment": r"\begin{tikzcd} A \arrow[r] & B \end{tikzcd}",
    "a command in a text": r"\text{see \textbf{this}}",
    "brackets in a text": r"\text{see {this}}",
    "a dashed line": r"\begin{array}{c} a \\ \hdashline b \end{array}",
    "a partial line": r"\begin{array}{cc} a & b \\ \cline{1-2} c & d \end{array}",
    "a solid bar": r"a \rule{3cm}{1pt} b",
    "a line outside of a table": r"a \hline b",
    "an emoji": r"\text{ok 🎉}",
}


@case(MISSING_PART, Way.WINDOW, report="markdown-preview-enhanced#387, arXiv#5934, markdown2pdf#115", before="failed")
@pytest.mark.parametrize("source", SHOWN_AS_SOURCE.values(), ids=list(SHOWN_AS_SOURCE))
def test_what_cant_be_drawn_is_shown_as_its_source(keeper: ThemeKeeper, app: QApplication, source: str) -> None:
    assert draw(source, displayed=True) is None
    page = QWidget()
    formulas = FormulaCache(page)
    view = AnswerView(page, formulas)
    view.show_whole(f"$$\n{source}\n$$\n")
    while formulas.is_busy:
        app.processEvents()
    assert view.toPlainText() == source
    page.deleteLater()
