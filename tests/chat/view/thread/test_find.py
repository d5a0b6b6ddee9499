"""Find in chat: matches in drawn and undrawn text, keys and highlighting."""

from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from qwendesk.chat.view.answer.text_search import count_markdown, may_contain
from qwendesk.chat.view.thread.pictures.thumbnails import PreviewCache
from qwendesk.chat.view.thread.thread_view import ThreadView
from qwendesk.widgets.theme_keeper import ThemeKeeper
from tests.chat.view.thread.test_virtual import long_chat


@pytest.fixture
def view(keeper: ThemeKeeper, app: QApplication) -> Iterator[ThreadView]:
    view = ThreadView(PreviewCache())
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


def test_find_scrolls_to_matches_that_are_not_drawn_yet(view: ThreadView, app: QApplication) -> None:
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


def test_matches_are_highlighted_until_escape(view: ThreadView, app: QApplication) -> None:
    look_for(view, "of answer 50,", app)
    row = view.find_bar.matches[0].row
    answer = view.answer(view.rows[row].turn.id)
    assert answer is not None
    pane = answer.answer_view.pane_at(0)
    assert len(pane.extraSelections()) == len(view.find_bar.matches)
    QTest.keyClick(view.find_bar.text, Qt.Key.Key_Escape)
    assert view.find_bar.isHidden()
    assert pane.extraSelections() == []


def test_no_matches_are_reported(view: ThreadView, app: QApplication) -> None:
    look_for(view, "no such words", app)
    assert view.find_bar.count.text() == "Not found"


def test_a_long_answer_is_searched_in_slices() -> None:
    source = "some words\n" * 20_000 + "the last line"
    found = list(may_contain(source, "last line"))
    assert len(found) > 10
    assert found == [False] * (len(found) - 1) + [True]


def test_markdown_syntax_does_not_prevent_a_match() -> None:
    source = "Some **bold** words and `code`, [a link](https://example.org/bold).\n\n```\nbold words\n```"
    assert any(may_contain(source, "bold words"))
    assert count_markdown(source, "bold words") == 2
    assert count_markdown(source, "bold") == 2
    assert count_markdown(source, "example") == 0
