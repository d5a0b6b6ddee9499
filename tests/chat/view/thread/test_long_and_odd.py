"""Right-to-left text, footnotes, wide tables, saving code, and blocks so long that they are split."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt, QUrl
from PySide6.QtGui import QContextMenuEvent, QTextBlock
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu, QToolButton, QWidget

from qwendesk.chat.view.answer.answer_view import AnswerView
from qwendesk.chat.view.answer.code_card import suggested_name, write_code
from qwendesk.chat.view.answer.section_pane import SectionPane
from qwendesk.core.errors import BadRequest
from qwendesk.widgets.theme_keeper import ThemeKeeper


@pytest.fixture
def view(keeper: ThemeKeeper) -> Iterator[AnswerView]:
    page = QWidget()
    page.resize(800, 600)
    view = AnswerView(page)
    view.resize(700, 100)
    page.show()
    yield view
    page.close()
    page.deleteLater()


def block_with(view: AnswerView, words: str) -> QTextBlock:
    for index in range(len(view.sections)):
        block = view.pane_at(index).document().begin()
        while block.isValid():
            if words in block.text():
                return block
            block = block.next()
    raise AssertionError(f"{words!r} is not shown")


def left_of(block: QTextBlock) -> float:
    return block.layout().lineAt(0).naturalTextRect().left()


def button(view: AnswerView, text: str) -> QToolButton:
    return next(each for each in view.findChildren(QToolButton) if each.text() == text)


def test_each_paragraph_has_its_own_direction(view: AnswerView) -> None:
    view.show_whole("An English line.\n\nשלום עולם.\n\nمرحبا بالعالم.\n\n```python\nprint(1)\n```\n\nThe end.")
    for words in ("שלום", "مرحبا"):
        assert block_with(view, words).textDirection() is Qt.LayoutDirection.RightToLeft
        assert left_of(block_with(view, words)) > view.width() / 2
    for words in ("English", "print", "The end"):
        assert left_of(block_with(view, words)) < 50


@pytest.mark.parametrize("first", [0, 95, 1234])
def test_list_numbers_are_not_clipped(view: AnswerView, first: int) -> None:
    view.show_whole("\n".join(f"{number}. Item {number}" for number in range(first, first + 10)))
    pane = view.pane_at(0)
    item = block_with(view, f"Item {first + 9}")
    numbers = item.textList()
    assert numbers is not None
    assert numbers.itemText(item) == f"{first + 9}."
    number = pane.fontMetrics().horizontalAdvance(numbers.itemText(item))
    words = pane.document().documentLayout().blockBoundingRect(item).left() + left_of(item)
    assert words - number >= 4, "it begins left of where the document does"


def test_footnote_links_to_its_text_and_back(view: AnswerView) -> None:
    middle = "\n\n".join(f"Paragraph {number}. " + "Some words. " * 20 for number in range(40))
    view.show_whole(f"A claim[^1] and more.\n\n{middle}\n\n[^1]: Where it comes from.")
    went: list[int] = []
    view.jumped.connect(went.append)
    view.pane_at(0).anchorClicked.emit(QUrl("#footnote-1"))
    assert went[-1] > view.height() * 0.8
    view.pane_at(len(view.sections) - 1).anchorClicked.emit(QUrl("#footnote-ref-1"))
    assert went[-1] < 100


def test_code_can_be_saved_with_a_suggested_file_name(view: AnswerView) -> None:
    view.show_whole("```python\nprint(1)\n```")
    offered: list[tuple[str, str]] = []
    view.code_saved.connect(lambda text, language: offered.append((text, suggested_name(language))))
    QTest.mouseClick(button(view, "Save"), Qt.MouseButton.LeftButton)
    assert offered == [("print(1)\n", "code.py")]
    assert suggested_name("a language of nobody") == "code.txt"


def test_saved_code_ends_with_a_newline(tmp_path: Path) -> None:
    asyncio.run(write_code(tmp_path / "code.py", "print('é')"))
    assert (tmp_path / "code.py").read_bytes() == "print('é')\n".encode()
    with pytest.raises(BadRequest, match="Choose another location"):
        asyncio.run(write_code(tmp_path / "missing" / "code.py", "x"))


def test_long_code_is_copied_completely_with_one_button(view: AnswerView) -> None:
    code = "".join(f"value_{number} = compute({number})\n" for number in range(700))
    view.show_whole(f"Before\n\n```python\n{code}```\n\nAfter")
    assert len(view.sections) > 2
    assert len([each for each in view.findChildren(QToolButton) if each.text() == "Copy"]) == 1
    QTest.mouseClick(button(view, "Copy"), Qt.MouseButton.LeftButton)
    assert QApplication.clipboard().text() == code.removesuffix("\n")


def test_long_tables_and_paragraphs_are_copied_completely(view: AnswerView) -> None:
    rows = "\n".join(f"| name {number} | {number} |" for number in range(150))
    words = " ".join(f"Sentence number {number} of a long paragraph." for number in range(400))
    view.show_whole(f"| a | b |\n|---|---|\n{rows}\n\n{words}")
    assert len(view.sections) > 4
    view.selectAll()
    view.copy()
    copied = QApplication.clipboard().text()
    assert all(f"name {number}" in copied for number in range(150))
    assert [f"number {number} of" in copied for number in range(400)] == [True] * 400


def test_a_wide_table_scrolls_and_a_narrow_one_does_not(view: AnswerView, app: QApplication) -> None:
    head = "|".join(f"a_rather_long_column_name_{number}" for number in range(14))
    view.show_whole(f"| a | b |\n|---|---|\n| 1 | 2 |\n\nBetween\n\n|{head}|\n|{'---|' * 14}\n|{'1|' * 14}")
    app.processEvents()
    narrow, wide = view.pane_at(0), view.pane_at(len(view.sections) - 1)
    assert narrow.horizontalScrollBar().maximum() == 0
    assert wide.horizontalScrollBar().maximum() > 100
    assert wide.width() == view.width()


def test_menu_copies_in_three_formats(view: AnswerView, app: QApplication) -> None:
    view.show_whole("Some **bold** words.")
    pane = view.findChildren(SectionPane)[0]
    place = QPoint(5, 5)

    def menu() -> QMenu:
        event = QContextMenuEvent(QContextMenuEvent.Reason.Mouse, place, pane.viewport().mapToGlobal(place))
        app.sendEvent(pane.viewport(), event)
        return next(each for each in pane.findChildren(QMenu) if each.isVisible())

    first = menu()
    assert [each.isEnabled() for each in first.actions() if not each.isSeparator()] == [False, False, False, True]
    next(each for each in first.actions() if each.text().startswith("Select")).trigger()
    first.close()
    app.sendPostedEvents(None, 0)
    second = menu()
    next(each for each in second.actions() if each.text() == "Copy as Markdown").trigger()
    assert QApplication.clipboard().text().strip() == "Some **bold** words."
    next(each for each in second.actions() if each.text() == "Copy as plain text").trigger()
    assert QApplication.clipboard().text() == "Some bold words."
    second.close()
