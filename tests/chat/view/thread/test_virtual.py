"""A long chat has few widgets, keeps its scroll position, and is reachable completely."""

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QMouseEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QMainWindow,
    QPlainTextEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from qwendesk.chat.view.answer.section_pane import SectionPane
from qwendesk.chat.view.thread.assistant_message import AssistantMessage
from qwendesk.chat.view.thread.pictures.thumbnails import PreviewCache
from qwendesk.chat.view.thread.thread_view import ThreadView
from qwendesk.core.conversation import Answer, Conversation, Turn
from qwendesk.core.messages import text_message
from qwendesk.widgets.theme_keeper import ThemeKeeper

TURNS = 1000


def answer_text(number: int) -> str:
    lines = number % 7 + 1
    return "\n\n".join(f"Line {line} of answer {number}, with some words to fill it." for line in range(lines))


def long_chat(turns: int = TURNS) -> Conversation:
    return Conversation(
        turns=tuple(
            Turn(
                id=number,
                question=text_message("user", f"Question {number}"),
                answer=Answer(text=answer_text(number), stop_reason="eos"),
            )
            for number in range(1, turns + 1)
        )
    )


@pytest.fixture
def view(keeper: ThemeKeeper, app: QApplication) -> Iterator[ThreadView]:
    view = ThreadView(PreviewCache())
    view.resize(900, 600)
    view.show()
    yield view
    view.close()
    view.deleteLater()


def settle(view: ThreadView, app: QApplication) -> None:
    """Let everything that was put off happen."""
    for _ in range(4):
        app.sendPostedEvents(None, QEvent.Type.LayoutRequest.value)
        app.processEvents()
    view.create_nearby_rows()
    app.processEvents()
    while view.is_busy:
        app.processEvents()


def top_of(view: ThreadView, name: str) -> int:
    widget = view.findChild(QWidget, name)
    assert widget is not None
    return widget.mapTo(view, widget.rect().topLeft()).y()


def test_only_rows_near_the_viewport_have_widgets(view: ThreadView, app: QApplication) -> None:
    view.show_conversation(long_chat())
    settle(view, app)
    assert len(view.rows) == 2 * TURNS
    assert 2 <= len(view.live_rows()) <= 40
    assert view.is_following
    last = view.answer(TURNS)
    assert last is not None
    assert 0 < last.mapTo(view, last.rect().bottomLeft()).y() <= view.height()
    assert view.answer(3) is None


def test_scrolling_through_a_long_chat_keeps_few_widgets(view: ThreadView, app: QApplication) -> None:
    view.show_conversation(long_chat(60))
    bar = view.verticalScrollBar()
    seen = set()
    while bar.value() > 0:
        bar.setValue(bar.value() - 300)
        settle(view, app)
        seen |= set(view.live_rows())
        assert len(view.live_rows()) <= 40
    assert seen == set(range(120))


def test_measuring_rows_above_does_not_move_the_viewport(view: ThreadView, app: QApplication) -> None:
    view.show_conversation(long_chat())
    settle(view, app)
    bar = view.verticalScrollBar()
    bar.setValue(bar.maximum() // 2)
    settle(view, app)
    name = view.row_widget(view.top_row() + 1).objectName()
    for _ in range(12):
        before = top_of(view, name)
        bar.setValue(bar.value() - 20)
        settle(view, app)
        assert top_of(view, name) == before + 20


def test_row_that_shrinks_above_the_viewport_leaves_the_text_below_where_it_is(
    view: ThreadView, app: QApplication
) -> None:
    """An answer is measured before its text is drawn, and the viewport may begin in the room that it won't need."""
    view.show_conversation(long_chat(30))
    settle(view, app)
    bar = view.verticalScrollBar()
    bar.setValue(bar.maximum() // 2)
    settle(view, app)
    index = view.top_row()
    name = view.row_widget(index + 1).objectName()
    view._geometry.set_height(index, view._geometry.height(index) + 100)

    bar.setValue(view._geometry.bottom(index) - 30)
    settle(view, app)

    assert view.row_widget(index).height() == view._geometry.height(index)
    assert 50 <= top_of(view, name) <= 60, "30 pixels, the margin above the first row, and the gap between rows"


def test_reading_position_survives_resizing_and_switching_chats(view: ThreadView, app: QApplication) -> None:
    view.show_conversation(long_chat())
    bar = view.verticalScrollBar()
    bar.setValue(bar.maximum() // 3)
    settle(view, app)
    place = view.position()
    first = view.rows[view.top_row()].turn.id
    view.show_conversation(long_chat(2))
    settle(view, app)
    view.resize(640, 500)
    view.show_conversation(long_chat())
    view.show_position(place)
    settle(view, app)
    assert view.rows[view.top_row()].turn.id == first
    assert not view.is_following
    assert view.position().turn == place.turn
    view.follow()
    assert view.position().at_end


def test_keys_move_between_messages(view: ThreadView, app: QApplication) -> None:
    view.show_conversation(long_chat())
    settle(view, app)
    view.show_row(100)
    settle(view, app)
    for expected in (101, 102, 103):
        view.step_turn(1)
        settle(view, app)
        assert 0 <= top_of(view, view.row_widget(expected).objectName()) <= 20
    view.step_turn(-1)
    settle(view, app)
    assert 0 <= top_of(view, view.row_widget(102).objectName()) <= 20


def test_row_with_a_selection_keeps_its_widget(view: ThreadView, app: QApplication) -> None:
    view.show_conversation(long_chat())
    settle(view, app)
    answer = view.answer(TURNS)
    assert answer is not None
    answer.answer_view.selectAll()
    view.verticalScrollBar().setValue(0)
    settle(view, app)
    assert view.answer(TURNS) is answer
    answer.answer_view.copy()
    assert QApplication.clipboard().text() == answer_text(TURNS).replace("\n\n", "\n")


def test_answer_that_streams_off_screen_is_complete_when_scrolled_to(view: ThreadView, app: QApplication) -> None:
    view.show_conversation(long_chat(50))
    turn = Turn(id=99, question=text_message("user", "More?"))
    view.add_turn(turn)
    view.verticalScrollBar().setValue(0)
    settle(view, app)
    answer = view.answer(99)
    assert answer is not None
    text = "\n\n".join(f"Paragraph {number} of the new answer." for number in range(60))
    for start in range(0, len(text), 200):
        answer.write("answer", text[start : start + 200])
        answer.answer_view.draw_now()
    view.end_turn(Turn(id=99, question=turn.question, answer=Answer(text=text, stop_reason="eos")))
    settle(view, app)
    assert view.verticalScrollBar().value() == 0
    view.follow()
    settle(view, app)
    shown = view.answer(99)
    assert shown is not None
    assert shown.answer_view.toPlainText().split() == text.split()


def test_long_answer_has_few_widgets_and_all_of_its_text(view: ThreadView, app: QApplication) -> None:
    text = "\n\n".join(f"Paragraph {number}. " + "Some words of it. " * 12 for number in range(400))
    turn = Turn(id=1, question=text_message("user", "?"), answer=Answer(text=text, stop_reason="eos"))
    view.show_conversation(Conversation(turns=(turn,)))
    settle(view, app)
    answer = view.answer(1)
    assert answer is not None
    sections = answer.answer_view.sections
    assert len(sections) > 40
    assert len(view.findChildren(SectionPane)) < 25
    assert answer.answer_view.toPlainText().split() == text.split()
    answer.answer_view.selectAll()
    answer.answer_view.selection.copy("markdown")
    assert QApplication.clipboard().text() == text


def test_tab_moves_through_the_chat_and_creates_rows_on_the_way(view: ThreadView, app: QApplication) -> None:
    view.show_conversation(long_chat(30))
    view.activateWindow()
    settle(view, app)
    view.show_row(4)
    settle(view, app)
    first = view.row_widget(5)
    assert isinstance(first, AssistantMessage)
    first.answer_view.pane_at(0).setFocus()
    rows = []
    for _ in range(40):
        focus = QApplication.focusWidget()
        assert focus is not None
        index = next((i for i in view.live_rows() if view.row_widget(i).isAncestorOf(focus)), -1)
        rows.append(index)
        QTest.keyClick(focus, Qt.Key.Key_Tab)
        settle(view, app)
    inside = [index for index in rows if index >= 0]
    assert inside == sorted(inside)
    assert inside[-1] > 8


def test_dragging_beyond_the_edge_scrolls_and_extends_the_selection(view: ThreadView, app: QApplication) -> None:
    text = "\n\n".join(f"Paragraph {number}. " + "Some words of it. " * 12 for number in range(60))
    turn = Turn(id=1, question=text_message("user", "?"), answer=Answer(text=text, stop_reason="eos"))
    view.show_conversation(Conversation(turns=(turn,)))
    view.show_row(1)
    settle(view, app)
    answer = view.answer(1)
    assert answer is not None
    pane = answer.answer_view.pane_at(0)
    start = QPoint(2, 2)
    QTest.mousePress(pane.viewport(), Qt.MouseButton.LeftButton, pos=start)
    outside = view.viewport().mapToGlobal(view.viewport().rect().bottomLeft())
    outside.setY(outside.y() + 200)
    place = QPointF(pane.viewport().mapFromGlobal(outside))
    move = QMouseEvent(
        QEvent.Type.MouseMove, place, QPointF(outside), Qt.MouseButton.NoButton, Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
    )  # fmt: skip
    QApplication.sendEvent(pane.viewport(), move)
    before = view.verticalScrollBar().value()
    for _ in range(10):
        view.drag.step(outside)
    assert view.verticalScrollBar().value() > before
    answer.answer_view.copy()
    settle(view, app)
    copied = QApplication.clipboard().text()
    assert copied.startswith("Paragraph 0.")
    assert "Paragraph 5." in copied
    QTest.mouseRelease(pane.viewport(), Qt.MouseButton.LeftButton)


def test_editor_scrolled_off_screen_keeps_its_text(view: ThreadView, app: QApplication) -> None:
    view.show_conversation(long_chat(200))
    view.show_row(0)
    settle(view, app)
    edit = view.findChild(QAbstractButton, "thread.question.edit.1")
    assert edit is not None
    edit.click()
    field = view.findChild(QPlainTextEdit, "thread.editor.text.1")
    assert field is not None
    field.setPlainText("Half a thought")
    field.clearFocus()
    view.follow()
    settle(view, app)
    assert view.live_rows()[0] == 0
    assert view.live_rows()[1] > 100, "its neighbours were taken away"
    again = view.findChild(QPlainTextEdit, "thread.editor.text.1")
    assert again is not None
    assert again.toPlainText() == "Half a thought"
    cancel = view.findChild(QAbstractButton, "thread.editor.cancel.1")
    assert cancel is not None
    cancel.click()
    view.setFocus()
    view.follow()
    view.create_nearby_rows()
    assert view.live_rows()[0] > 0, "nobody works there any more"


def test_tab_out_of_the_thread_reaches_the_rest_of_the_window(keeper: ThemeKeeper, app: QApplication) -> None:
    window = QMainWindow()
    middle = QWidget()
    window.setCentralWidget(middle)
    column = QVBoxLayout(middle)
    before, after = QPushButton("before"), QPushButton("after")
    view = ThreadView(PreviewCache())
    for widget in (before, view, after):
        column.addWidget(widget)
    action = window.menuBar().addMenu("Menu").addAction("Entry")
    window.resize(900, 600)
    window.show()
    window.activateWindow()
    view.show_conversation(long_chat(1))
    settle(view, app)
    inside = view.row_widget(1)
    assert isinstance(inside, AssistantMessage)
    for key, outside in ((Qt.Key.Key_Tab, after), (Qt.Key.Key_Backtab, before)):
        inside.answer_view.pane_at(0).setFocus()
        for _ in range(40):
            focus = window.focusWidget()
            if not view.isAncestorOf(focus):
                break
            QTest.keyClick(focus, key)
        assert window.focusWidget() is outside
    view.show_conversation(long_chat(2))
    settle(view, app)
    app.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    assert action.text() == "Entry"
    window.close()
    window.deleteLater()
