"""Formulas are drawn in the text's colour and copied as source. Those that can't be drawn are shown as source."""

import pytest
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QApplication, QWidget

from qwendesk.chat.view.answer.answer_view import AnswerView
from qwendesk.chat.view.answer.formulas import INK, FormulaCache, draw, is_drawable, nesting
from qwendesk.widgets.theme_keeper import ThemeKeeper
from tests.chat.view.answer.formula_commands import COUNTED, FURTHER


def wait_for(shelf: FormulaCache, app: QApplication) -> None:
    while shelf.is_busy:
        app.processEvents()


def inked(view: AnswerView, color: QColor) -> int:
    """Pixels in about this colour."""
    image = view.grab().toImage()
    near = 0
    for y in range(image.height()):
        for x in range(image.width()):
            found = image.pixelColor(x, y)
            near += abs(found.red() - color.red()) + abs(found.green() - color.green()) < 60
    return near


def test_formulas_are_drawn_with_their_letters(keeper: ThemeKeeper, app: QApplication) -> None:
    page = QWidget()
    shelf = FormulaCache(page)
    page.setStyleSheet(f"background: {keeper.theme['window']}")
    view = AnswerView(page, shelf)
    view.resize(200, 40)
    page.show()
    view.show_whole("$$xyz$$")
    assert view.toPlainText() == "xyz"
    wait_for(shelf, app)
    assert view.toPlainText() == "\ufffc"
    assert inked(view, keeper.theme.color("text")) > 10
    view.selectAll()
    view.copy()
    assert QApplication.clipboard().text() == "$$xyz$$"
    page.deleteLater()


def test_each_formula_is_drawn_only_once(keeper: ThemeKeeper, app: QApplication) -> None:
    page = QWidget()
    asked: list[str] = []

    def run(source: str, displayed: bool) -> None:
        asked.append(source)

    shelf = FormulaCache(page, run)
    view = AnswerView(page, shelf)
    view.show_whole("$a$ and $a$ and $b$")
    wait_for(shelf, app)
    assert sorted(asked) == ["a", "b"]
    assert view.toPlainText() == "a and a and b"
    page.deleteLater()


def test_nesting_depth_is_checked_before_drawing() -> None:
    assert nesting(r"\frac{\sqrt{a^{2}}}{b}") == 3
    assert is_drawable(r"\alpha\beta\gamma\delta\epsilon\zeta\eta\theta\iota")
    assert not is_drawable("{" * 8 + "x" + "}" * 8)
    assert not is_drawable(r"\sqrt" * 12 + "x")
    assert not is_drawable("x" * 10_000)
    assert draw(r"\frac{", displayed=True) is None


def test_drawing_a_formula_does_not_change_the_code_that_streams_below_it(
    keeper: ThemeKeeper, app: QApplication
) -> None:
    page = QWidget()
    shelf = FormulaCache(page)
    view, whole = AnswerView(page, shelf), AnswerView(page, shelf)
    view.add("So $x^2$ and $$y_1$$ hold.\n\n```python\nfirst = 1\n")
    view.draw_now()
    panes = [section.pane for section in view.sections]
    wait_for(shelf, app)
    view.add("second = 2\n```\n\n$$z$$\n\nThe end.")
    view.finish()
    wait_for(shelf, app)
    whole.show_whole(view.markdown)
    assert view.toPlainText() == whole.toPlainText()
    assert "first = 1\nsecond = 2" in view.toPlainText()
    assert view.toPlainText().count("\ufffc") == 3
    assert [section.pane for section in view.sections][: len(panes)] == panes
    page.deleteLater()


@pytest.mark.parametrize("source", (COUNTED | FURTHER).values())
def test_what_models_write_most_is_drawn_in_the_texts_colour(source: str) -> None:
    for displayed in (False, True):
        drawing = draw(source, displayed=displayed)
        assert drawing is not None
        assert "black" not in drawing.svg
        assert INK in drawing.svg
