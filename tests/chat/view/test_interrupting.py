"""While something is measured, an answer begins only when the user says so: it would stop the measurement."""

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPlainTextEdit

from tests.window_desk import Desk


async def test_a_message_during_a_measurement_asks_first(desk: Desk) -> None:
    measuring = desk.parts.services.measuring
    measuring.set("speed")
    desk.send("Hi")
    assert not desk.client.asked
    assert desk.text_of("composer.notice") == "A measurement is running. An answer would stop it."
    assert desk.composer_text.toPlainText() == "Hi", "it can wait there"
    desk.click("composer.interrupt")
    await desk.until(lambda: [turn.question.text for turn in desk.parts.chat.conversation.turns] == ["Hi"])
    assert not desk.is_shown("composer.notice")
    await desk.until(lambda: not desk.parts.chat.busy)
    desk.send("Once more")
    assert desk.is_shown("composer.interrupt"), "it is asked each time"


async def test_a_suggestion_during_a_measurement_is_kept_as_the_message(desk: Desk) -> None:
    desk.parts.services.measuring.set("speed")
    desk.window.chat_page.welcome.asked.emit("What can you do?")
    assert desk.composer_text.toPlainText() == "What can you do?"
    assert not desk.client.asked
    desk.parts.services.measuring.set("")
    QTest.keyClick(desk.composer_text, Qt.Key.Key_Return)
    await desk.until(lambda: len(desk.client.asked) == 1)


async def test_another_answer_during_a_measurement_asks_first(desk: Desk) -> None:
    await desk.ask("Hi")
    asked, chat = len(desk.client.asked), desk.parts.chat
    desk.parts.services.measuring.set("tune")

    desk.window.chat_page.thread_view.intents.regenerate.emit(1)
    await desk.until(lambda: desk.is_shown("composer.interrupt"))
    assert (len(desk.client.asked), chat.busy) == (asked, False)

    desk.click("composer.interrupt")
    await desk.until(lambda: len(desk.client.asked) > asked and not chat.busy)
    assert not desk.is_shown("composer.notice")


async def test_an_edited_question_during_a_measurement_asks_first_and_is_not_lost(desk: Desk) -> None:
    await desk.ask("Hi")
    desk.parts.services.measuring.set("speed")
    desk.click("thread.question.edit.1")
    editor = desk.find("thread.editor.text.1", QPlainTextEdit)
    editor.setPlainText("Hello")

    QTest.keyClick(editor, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    await desk.until(lambda: desk.is_shown("composer.interrupt"))
    assert [turn.question.text for turn in desk.parts.chat.conversation.turns] == ["Hi"]
    assert editor.toPlainText() == "Hello"

    desk.click("composer.interrupt")
    await desk.until(lambda: [turn.question.text for turn in desk.parts.chat.conversation.turns] == ["Hello"])
    await desk.until(lambda: not desk.parts.chat.busy)
    assert desk.window.chat_page.thread_view.intents.edits == {}
