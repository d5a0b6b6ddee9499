"""Switching chats and versions and opening search hits keeps reading positions, drafts and edits."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit, QListView, QPlainTextEdit

from qwendesk.chat.view.chat_switcher import read_position
from qwendesk.chat.view.thread.thread_view import ThreadView
from qwendesk.core.chats import ReadPosition, edits_key
from qwendesk.widgets.text_pane import TextPane
from tests.fakes.engine import ScriptedAnswer
from tests.window_desk import Desk

_LONG = "\n\n".join(f"Paragraph {n} says what has to be said about number {n}." for n in range(120))
_NEARLY = 3
"""Pixels by which a place may differ: heights are measured anew."""


async def open_file(desk: Desk, folder: Path) -> Desk:
    desk.parts.chats.start(folder)
    await desk.until(lambda: desk.parts.chats.services.chat_list.state.value.is_loaded)
    return desk


async def ask(desk: Desk, question: str, text: str, reasoning: str = "") -> None:
    """In a new chat; done when the list has it."""
    desk.click("chats.new")
    desk.client.answers.append(ScriptedAnswer(text=text, reasoning=reasoning, chunk=500))
    await desk.ask(question)
    await desk.until(lambda: not thread(desk).is_busy)
    await desk.until(
        lambda: any(each.title == question for each in desk.parts.chats.services.chat_list.chats.summaries.values())
    )


async def go_to(desk: Desk, title: str) -> None:
    service = desk.parts.chats.services.chat_list
    await service.open(next(each.id for each in service.chats.summaries.values() if each.title == title))
    await desk.until(lambda: bool(turns := desk.parts.chat.conversation.turns) and turns[0].question.text == title)


def place(desk: Desk) -> ReadPosition:
    return read_position(desk.window.chat_page.thread_view.position(), desk.parts.chat.conversation.turns)


async def scroll_to_the_middle(desk: Desk) -> ReadPosition:
    """Scroll into a later section of the long answer, as soon as so much of it is laid out."""

    def scrolled() -> bool:
        bar = thread(desk).verticalScrollBar()
        bar.setValue(bar.maximum() // 2)
        return place(desk).section > 0

    await desk.until(scrolled)
    return place(desk)


def thread(desk: Desk) -> ThreadView:
    return desk.window.chat_page.thread_view


@pytest.fixture
def home(qt_loop: asyncio.Runner, desk: Desk, tmp_path: Path) -> Desk:
    return qt_loop.run(open_file(desk, tmp_path))


async def test_the_reading_position_in_a_long_answer_is_restored(qt_loop: object, home: Desk) -> None:
    await ask(home, "Long", _LONG)
    before = await scroll_to_the_middle(home)
    await ask(home, "Other", "Short.")

    await go_to(home, "Long")

    await home.until(lambda: place(home).node_id == before.node_id)
    assert place(home).section == before.section
    assert abs(place(home).offset - before.offset) <= _NEARLY


async def test_another_version_of_an_answer_below_does_not_scroll(qt_loop: object, home: Desk) -> None:
    await ask(home, "Long", _LONG)
    home.client.answers += [ScriptedAnswer(text="One."), ScriptedAnswer(text="Another. " * 80, chunk=50)]
    await home.ask("Again?")
    chat = home.parts.chat
    await chat.regenerate(chat.conversation.turns[-1].id)
    await home.until(lambda: chat.conversation.turns[-1].answer_version == (2, 2) and not chat.busy)
    before = await scroll_to_the_middle(home)

    chat.show_version(chat.conversation.turns[-1].id, "answer", -1)

    await home.until(lambda: chat.conversation.turns[-1].answer.text == "One.")
    assert (place(home).node_id, place(home).section) == (before.node_id, before.section)
    assert abs(place(home).offset - before.offset) <= _NEARLY


@pytest.mark.parametrize("where", ["answer", "question", "thought"])
async def test_a_search_hit_is_scrolled_to_and_marked(qt_loop: object, home: Desk, where: str) -> None:
    text = _LONG.replace("about number 60", "about a zebra") if where == "answer" else _LONG
    await ask(
        home, "Where is the zebra?" if where == "question" else "Long", text, "A zebra?" if where == "thought" else ""
    )
    await ask(home, "Other", "Short.")
    field, hits = home.find("chats.search", QLineEdit), home.find("chats.hits", QListView)
    field.setText("zebra")
    if where == "thought":
        home.click("chats.search.thoughts")
    await home.until(lambda: hits.isVisible() and hits.model().rowCount() > 0)
    last = hits.model().index(hits.model().rowCount() - 1, 0)

    hits.setCurrentIndex(last)
    QTest.keyClick(hits, Qt.Key.Key_Return)

    await home.until(lambda: len(home.parts.chat.conversation.turns[0].answer.text) > 100)
    await home.until(lambda: marked(home) == {"zebra"})
    assert all(0 <= y < thread(home).viewport().height() for y in marked_at(home))
    field.clear()
    if where != "thought":
        assert marked(home) == set()


def marked(desk: Desk) -> set[str]:
    return {mark.cursor.selectedText() for pane in panes(desk) for mark in pane.extraSelections()}


def marked_at(desk: Desk) -> list[int]:
    """How far below the top of the view marked words are."""
    view = thread(desk).viewport()
    return [
        pane.viewport().mapTo(view, pane.cursorRect(mark.cursor).topLeft()).y()
        for pane in panes(desk)
        for mark in pane.extraSelections()
    ]


def panes(desk: Desk) -> list[TextPane]:
    return [pane for pane in thread(desk).findChildren(TextPane) if pane.isVisible()]


async def test_unsaved_edit_survives_switching_chats(
    qt_loop: object, home: Desk, make_desk: Callable[[], Desk], tmp_path: Path
) -> None:
    await ask(home, "First", "Yes.")
    turn = home.parts.chat.conversation.turns[0].id
    home.click(f"thread.question.edit.{turn}")
    QTest.keyClicks(editor(home), " of all")
    await ask(home, "Other", "No.")

    await go_to(home, "First")

    await home.until(lambda: has_editor(home))
    assert editor(home).toPlainText() == "First of all"
    QTest.keyClicks(editor(home), "!")
    await home.parts.chats.services.chat_list.wait_for_writes()
    again = await open_file(make_desk(), tmp_path)  # as after a crash: the first one was not closed
    await again.until(lambda: has_editor(again))
    assert editor(again).toPlainText() in ("First of all!", "!First of all")
    QTest.keyClick(editor(again), Qt.Key.Key_Escape)
    service = again.parts.chats.services.chat_list
    assert (await service.drafts.get(edits_key(service.current_id))).text == ""


async def test_refused_edit_stays_in_its_editor(qt_loop: object, home: Desk) -> None:
    await ask(home, "First", "Yes.")
    turn = home.parts.chat.conversation.turns[0].id
    home.click(f"thread.question.edit.{turn}")
    QTest.keyClicks(editor(home), " of all")
    home.client.answers.append(ScriptedAnswer(text="Long. " * 50, tokens_per_second=0.1))
    home.parts.tasks.start(home.parts.chat.send("Second"))
    await home.until(lambda: home.parts.chat.busy)

    QTest.keyClick(editor(home), Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)

    await home.until(lambda: "Wait for the answer" in home.window.chat_page.composer.notice)
    service = home.parts.chats.services.chat_list
    assert "First of all" in (await service.drafts.get(edits_key(service.current_id))).text
    await home.parts.chat.stop()
    await home.until(lambda: not home.parts.chat.busy)


def has_editor(desk: Desk) -> bool:
    return any(each.isVisible() for each in editors(desk))


def editor(desk: Desk) -> QPlainTextEdit:
    return next(each for each in editors(desk) if each.isVisible())


def editors(desk: Desk) -> list[QPlainTextEdit]:
    return [
        each
        for each in thread(desk).findChildren(QPlainTextEdit)
        if each.objectName().startswith("thread.editor.text.")
    ]
