"""Chinese, Japanese and Korean: while text is composed, keys belong to the input method, and it stays as it is.

Where chat apps failed, by public reports: the Enter that takes a candidate sent the message, the Esc that drops one
stopped the answer or closed the dialog, arrows chose in a list, the placeholder lay over the text, and the candidates
appeared over the text or elsewhere.
"""

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit, QListWidget, QPlainTextEdit, QPushButton, QWidget

from qwendesk.widgets.actions import installed
from qwendesk.widgets.question_dialog import DialogButton, QuestionDialog
from qwendesk.widgets.theme_keeper import app_theme
from tests.chat.view.sidebar.chats_desk import ChatsDesk
from tests.fakes.engine import ScriptedAnswer
from tests.input_methods import candidates_at, commit, compose, composed, cursor_of, is_below
from tests.window_desk import Desk

_CONTROL = Qt.KeyboardModifier.ControlModifier
_KEYS = (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Escape, Qt.Key.Key_Up, Qt.Key.Key_Down, Qt.Key.Key_Tab)
_LONG = ScriptedAnswer(text="word " * 5000, tokens_per_second=300)


def press_all(field: QWidget) -> None:
    """Press each key with which an input method chooses, as one that passes all of them on."""
    for key in _KEYS:
        QTest.keyClick(field, key)


async def edit_question(desk: Desk) -> QPlainTextEdit:
    """Open the editor of a first question."""
    desk.client.answers.append(ScriptedAnswer(text="An answer."))
    await desk.ask("A question?")
    desk.click("thread.question.edit.1")
    field = desk.find("thread.editor.text.1", QPlainTextEdit)
    await desk.until(lambda: field.hasFocus() and field.width() > 200)
    return field


async def test_enter_sends_what_was_composed_only_after_it_was_committed(desk: Desk) -> None:
    desk.client.answers.append(ScriptedAnswer(text="An answer."))
    desk.composer_text.setFocus()
    commit("漢字は", rest="むずかしい")
    QTest.keyClick(desk.composer_text, Qt.Key.Key_Return)
    assert composed(desk.composer_text) == "むずかしい"
    commit("難しい")
    assert not desk.parts.chat.conversation.turns
    assert desk.composer_text.toPlainText() == "漢字は難しい"
    QTest.keyClick(desk.composer_text, Qt.Key.Key_Return)
    await desk.until(lambda: [turn.question.text for turn in desk.parts.chat.conversation.turns] == ["漢字は難しい"])


async def test_syllables_that_are_committed_one_by_one_stay_once_each(desk: Desk) -> None:
    desk.composer_text.setFocus()
    for syllable in "ㅇ아안":
        compose(syllable)
    commit("안", rest="녀")
    QTest.keyClick(desk.composer_text, Qt.Key.Key_Return)
    assert (desk.composer_text.toPlainText(), composed(desk.composer_text)) == ("안", "녀")
    commit("녕")
    assert desk.composer_text.toPlainText() == "안녕"


async def test_escape_stops_the_answer_only_while_nothing_is_composed(desk: Desk) -> None:
    desk.client.answers.append(_LONG)
    desk.send("Write a lot")
    await desk.until(lambda: desk.parts.chat.busy and desk.has("thread.message.1"))
    compose("ni hao")
    QTest.keyClick(desk.composer_text, Qt.Key.Key_Escape)
    assert not desk.window.chat_page.composer.is_stopping
    compose("")
    QTest.keyClick(desk.composer_text, Qt.Key.Key_Escape)
    assert desk.window.chat_page.composer.is_stopping
    await desk.until(lambda: not desk.parts.chat.busy)


async def test_shortcuts_wait_for_the_end_of_a_composition(desk: Desk) -> None:
    await desk.ask("A question?")
    desk.composer_text.setFocus()
    compose("zhong")
    for key in (Qt.Key.Key_N, Qt.Key.Key_K, Qt.Key.Key_2, Qt.Key.Key_Plus, Qt.Key.Key_End):
        QTest.keyClick(desk.composer_text, key, _CONTROL)
    QTest.keyClick(desk.composer_text, Qt.Key.Key_F1)
    assert (desk.window.page, app_theme().text_scale) == ("chat", 1.0)
    assert len(desk.parts.chat.conversation.turns) == 1
    assert desk.composer_text.hasFocus()
    commit("中")
    QTest.keyClick(desk.composer_text, Qt.Key.Key_N, _CONTROL)
    assert not desk.parts.chat.conversation.turns


async def test_keys_of_a_composition_neither_send_nor_close_the_editor_of_a_question(desk: Desk) -> None:
    field = await edit_question(desk)
    field.selectAll()
    compose("zhongguo")
    press_all(field)
    QTest.keyClick(field, Qt.Key.Key_Return, _CONTROL)
    assert composed(field) == "zhongguo"
    assert field.hasFocus()
    commit("中国")
    assert field.toPlainText() == "中国"
    QTest.keyClick(field, Qt.Key.Key_Return)
    await desk.until(lambda: desk.parts.chat.conversation.turns[0].question.text == "中国")


async def test_keys_of_a_composition_neither_end_nor_leave_the_renaming_of_a_chat(desk: Desk, tmp_path: Path) -> None:
    chats = await ChatsDesk(desk, tmp_path / "chats").open_file()
    await chats.ask("One")
    chats.view.setFocus()
    chats.view.setCurrentIndex(chats.index("One"))
    QTest.keyClick(chats.view, Qt.Key.Key_F2)
    editor = desk.find("chats.rename", QLineEdit)
    await desk.until(lambda: QApplication.focusWidget() is editor)
    editor.clear()
    compose("xiang")
    press_all(editor)
    assert desk.find("chats.rename", QLineEdit).isVisible()
    commit("想")
    QTest.keyClick(editor, Qt.Key.Key_Return)
    await desk.until(lambda: "想" in chats.titles)


async def test_keys_of_a_composition_choose_nothing_in_a_list_that_is_searched(desk: Desk) -> None:
    installed(desk.window)["palette"].trigger()
    query, found = desk.find("palette.query", QLineEdit), desk.find("palette.list", QListWidget)
    await desk.until(lambda: QApplication.focusWidget() is query)
    compose("sousuo")
    press_all(query)
    assert query.isVisible(), "neither Enter nor Esc closes it"
    assert found.currentRow() == 0, "arrows choose a candidate, not a command"
    compose("")
    QTest.keyClick(query, Qt.Key.Key_Down)
    assert found.currentRow() == 1
    QTest.keyClick(query, Qt.Key.Key_Escape)
    await desk.until(lambda: not desk.is_shown("palette.query"))


async def test_escape_in_a_composition_clears_no_search(desk: Desk, tmp_path: Path) -> None:
    chats = await ChatsDesk(desk, tmp_path / "chats").open_file()
    await chats.ask("One")
    search = desk.find("chats.search", QLineEdit)
    search.setFocus()
    commit("中", rest="guo")
    press_all(search)
    assert search.text() == "中"
    assert search.hasFocus()
    commit("国")
    assert search.text() == "中国"


async def test_a_dialog_neither_ends_nor_closes_by_keys_of_a_composition(desk: Desk) -> None:
    answers = [DialogButton("ok", "OK"), DialogButton("cancel", "Cancel")]
    dialog = QuestionDialog(desk.window, "ask", "What is it called?", "It gets this name.", answers, default="ok")
    field = QLineEdit(dialog)
    dialog.open()
    field.setFocus()
    await desk.until(lambda: QApplication.focusWidget() is field)
    compose("mingzi")
    press_all(field)
    assert dialog.isVisible()
    compose("")
    QTest.keyClick(field, Qt.Key.Key_Escape)
    assert not dialog.isVisible()


async def test_a_letter_typed_as_a_key_shows_that_nothing_is_composed_any_more(desk: Desk) -> None:
    """Clearing a field resets the input method, which then says nothing."""
    search = desk.find("chats.search", QLineEdit)
    search.setFocus()
    compose("zhong")
    search.clear()
    QTest.keyClicks(search, "ab")
    assert search.text() == "ab"
    QTest.keyClick(search, Qt.Key.Key_Escape)
    assert search.text() == ""


async def test_text_in_composition_survives_zoom_and_theme(desk: Desk) -> None:
    field = await edit_question(desk)
    for each in (desk.composer_text, field):
        each.setFocus()
        compose("かんがえ")
        for scale in (0.8, 1.3, 1.6, 1.0):
            app_theme().set_text_scale(scale)
            app_theme().choose("light" if scale > 1 else "dark")
            await desk.until(lambda: not app_theme()._pause.isActive())
        assert composed(each) == "かんがえ"
        commit("考え")
        assert each.toPlainText().endswith("考え")


async def test_a_line_in_composition_survives_zoom_and_theme(desk: Desk) -> None:
    search = desk.find("chats.search", QLineEdit)
    search.setFocus()
    empty = search.cursorRect().x()
    compose("かんがえ")
    app_theme().set_text_scale(1.4)
    app_theme().choose("light")
    assert search.cursorRect().x() > empty + 20, "the cursor is still after what is composed"
    commit("考え")
    assert search.text() == "考え"


async def test_nothing_lies_over_text_in_composition(desk: Desk) -> None:
    """QPlainTextEdit draws its placeholder until the text is committed."""
    field = desk.composer_text
    field.setFocus()
    placeholder = field.placeholderText()
    field.setCursorWidth(0)
    compose("nihao")
    drawn = field.grab().toImage()
    field.setPlaceholderText("")
    assert field.grab().toImage() == drawn
    compose("")
    assert field.placeholderText() == placeholder


async def test_a_placeholder_that_changes_during_a_composition_is_the_one_shown_after_it(desk: Desk) -> None:
    desk.composer_text.setFocus()
    compose("ni")
    desk.window.chat_page.composer.show_vision(can_see=False)
    compose("nihao")
    assert desk.composer_text.placeholderText() == ""
    compose("")
    assert "picture" not in desk.composer_text.placeholderText()
    assert desk.composer_text.placeholderText()


async def test_the_field_grows_with_text_in_composition_and_send_is_on(desk: Desk) -> None:
    """A Japanese sentence is often composed as a whole."""
    field, send = desk.composer_text, desk.find("composer.send", QPushButton)
    field.setFocus()
    height = field.height()
    assert not send.isEnabled()
    compose("かんがえる" * 60)
    assert field.height() > 1.5 * height
    assert send.isEnabled(), "a click on it commits the text and sends it"
    compose("")
    assert field.height() == height
    assert not send.isEnabled()


@pytest.mark.parametrize("scale", [0.8, 1.0, 1.6])
async def test_candidates_appear_at_the_cursor_of_each_field(desk: Desk, scale: float) -> None:
    """Also with text above and with padding, which Qt leaves out: candidates then hide half of the text."""
    app_theme().set_text_scale(scale)
    await desk.until(lambda: not app_theme()._pause.isActive())
    editor = await edit_question(desk)
    for field in (desk.composer_text, editor):
        field.setFocus()
        field.setPlainText("One line\nand another\nand a third one that is ")
        field.moveCursor(field.textCursor().MoveOperation.End)
        compose("zhongguo")
        assert is_below(candidates_at(field), cursor_of(field)), field.objectName()
        commit("中国")


async def test_candidates_follow_a_field_around_which_the_window_has_changed(desk: Desk) -> None:
    """The composer moves when the window does, and after the first question; Qt keeps the place that it had."""
    field = desk.composer_text
    field.setFocus()
    compose("ni")
    before = candidates_at(field)
    desk.window.resize(desk.window.width(), desk.window.height() - 150)
    await desk.until(lambda: cursor_of(field).y() < before.y() - 100)
    compose("nihao")
    assert is_below(candidates_at(field), cursor_of(field))
