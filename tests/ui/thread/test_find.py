"""Find in chat: every place, drawn or not; keys; marks."""

from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from qwendesk.ui.kit.tasks import Tasks
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.thread.find_text import count_markdown, may_contain
from qwendesk.ui.thread.thread_view import ThreadView
from qwendesk.ui.thread.thumbnails import PictureShelf
from tests.ui.thread.test_virtual import long_chat


@pytest.fixture
def view(keeper: ThemeKeeper, app: QApplication) -> Iterator[ThreadView]:
    view = ThreadView(keeper, PictureShelf(), Tasks())
    view.resize(900, 600)
    view.show()
    view.show_conversation(long_chat(120))
    yield view
    view.close()
    view.deleteLater()


def look_for(view: ThreadView, words: str, app: QApplication) -> None:
    view.find_bar.open()
    view.find_bar.text.setText(words)
    while view.find_bar.is_searching:
        app.processEvents()


def test_it_finds_what_is_not_drawn_and_goes_there(view: ThreadView, app: QApplication) -> None:
    look_for(view, "question 7", app)
    assert len(view.find_bar.matches) == 11  # 7 and 70 to 79
    QTest.keyClick(view.find_bar.text, Qt.Key.Key_Return)
    match = view.find_bar.matches[1]
    assert view.rows[match.row].turn.id == 70
    assert match.row in view.live_rows()
    assert "2 of 11" in view.find_bar.count.text()
    QTest.keyClick(view.find_bar.text, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    QTest.keyClick(view.find_bar.text, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    assert "11 of 11" in view.find_bar.count.text()


def test_places_in_an_answer_are_marked_until_escape(view: ThreadView, app: QApplication) -> None:
    look_for(view, "of answer 50,", app)
    row = view.find_bar.matches[0].row
    answer = view.answer(view.rows[row].turn.id)
    assert answer is not None
    pane = answer.answer_view.pane_at(0)
    assert len(pane.extraSelections()) == len(view.find_bar.matches)
    QTest.keyClick(view.find_bar.text, Qt.Key.Key_Escape)
    assert view.find_bar.isHidden()
    assert pane.extraSelections() == []


def test_nothing_found_is_said(view: ThreadView, app: QApplication) -> None:
    look_for(view, "no such words", app)
    assert view.find_bar.count.text() == "Not found"


def test_marks_of_markdown_are_not_in_the_way() -> None:
    source = "Some **bold** words and `code`, [a link](https://example.org/bold).\n\n```\nbold words\n```"
    assert may_contain(source, "bold words")
    assert count_markdown(source, "bold words") == 2
    assert count_markdown(source, "bold") == 2
    assert count_markdown(source, "example") == 0
