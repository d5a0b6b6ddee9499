"""The System prompt tab, and the context sheet that the meter bar opens."""

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QComboBox, QLabel, QLineEdit, QPlainTextEdit, QWidget

from tests.fakes.engine import ScriptedAnswer
from tests.window_desk import Desk


async def open_sheet(desk: Desk) -> None:
    QTest.mouseClick(desk.find("meter.context", QAbstractButton), Qt.MouseButton.LeftButton)
    await desk.until(lambda: desk.is_shown("context.sheet") and "tokens" in desk.text_of("context.total"))


async def open_prompt(desk: Desk) -> None:
    await open_sheet(desk)
    desk.click("context.prompt")
    await desk.until(lambda: desk.is_shown("inspector.system") and not desk.is_shown("context.sheet"))


async def test_a_system_prompt_is_set_for_this_chat(desk: Desk) -> None:
    await open_prompt(desk)
    desk.find("inspector.system.text", QPlainTextEdit).setPlainText("You are {model}.")
    assert desk.is_shown("inspector.system.used")
    await desk.ask("Hi")
    assert desk.client.asked[-1].messages[0].text == "You are Built-in demo."


async def test_in_a_low_window_the_tab_scrolls_and_nothing_overlaps(desk: Desk) -> None:
    desk.window.resize(desk.window.minimumSize())
    await open_prompt(desk)
    tab, note = desk.find("inspector.system", QWidget), desk.find("inspector.system.used", QLabel)
    schema = desk.find("inspector.system.schema", QPlainTextEdit)
    await desk.until(lambda: tab.width() <= desk.find("inspector", QWidget).width())  # it is laid out
    assert schema.geometry().bottom() < note.geometry().top()


async def test_typed_prompt_applies_to_this_chat_only(desk: Desk) -> None:
    await open_prompt(desk)
    text = desk.find("inspector.system.text", QPlainTextEdit)
    QTest.keyClicks(text, "Be kind. ")
    desk.window.chat_page.toggle_thinking()
    QTest.keyClicks(text, "Be short.")
    assert desk.parts.chat.settings.system_prompt == "Be kind. Be short."
    desk.parts.chat.new_chat()
    assert text.toPlainText() == ""
    assert desk.parts.chat.settings.system_prompt == ""


async def test_a_bad_schema_is_not_used_and_the_prompt_is(desk: Desk) -> None:
    await open_prompt(desk)
    schema = desk.find("inspector.system.schema", QPlainTextEdit)
    schema.setPlainText('{"type": "text"}')
    assert '"text"' in desk.text_of("inspector.system.complaint")
    desk.find("inspector.system.text", QPlainTextEdit).setPlainText("Be kind.")
    assert desk.is_shown("inspector.system.complaint")
    assert (desk.parts.chat.settings.system_prompt, desk.parts.chat.settings.json_schema) == ("Be kind.", "")
    schema.setPlainText('{"type": "object"}')
    assert not desk.is_shown("inspector.system.complaint")
    await desk.ask("Hi")
    assert desk.client.asked[-1].options.json_schema == '{"type": "object"}'


async def test_a_prompt_is_saved_used_and_deleted(desk: Desk) -> None:
    await open_prompt(desk)
    text = desk.find("inspector.system.text", QPlainTextEdit)
    kept = desk.find("inspector.system.kept", QComboBox)
    own = "A prompt of this very test"
    assert kept.findText(own) < 0
    text.setPlainText("Be kind.")
    desk.find("inspector.system.name", QLineEdit).setText(own)
    desk.click("inspector.system.keep")
    assert kept.currentText() == own
    text.setPlainText("")
    kept.activated.emit(kept.currentIndex())
    assert text.toPlainText() == "Be kind."
    desk.click("inspector.system.forget")
    assert kept.findText(own) < 0
    desk.click("inspector.system.undo")
    assert kept.currentText() == own
    assert not desk.is_shown("inspector.system.undo")
    name = desk.find("inspector.system.name", QLineEdit)
    QTest.keyClick(kept, Qt.Key.Key_F2)
    assert name.selectedText() == own
    QTest.keyClicks(name, "Short answers")
    QTest.keyClick(name, Qt.Key.Key_Return)
    assert "is built in" in desk.text_of("inspector.system.complaint")
    name.selectAll()
    QTest.keyClicks(name, "Renamed")
    QTest.keyClick(name, Qt.Key.Key_Return)
    assert (kept.currentText(), kept.findText(own)) == ("Renamed", -1)
    text.setPlainText("Be rude.")
    desk.click("inspector.system.keep")
    desk.click("inspector.system.undo")
    assert text.toPlainText() == "Be kind.", "what was written over comes back"
    desk.click("inspector.system.forget")
    assert not desk.find("inspector.system.forget", QWidget).isEnabled(), "those of the app stay"


async def test_the_context_sheet_counts_and_skips_and_sends_again(desk: Desk) -> None:
    for number in range(4):
        desk.client.answers.append(ScriptedAnswer(text=f"Answer {number}."))
        await desk.ask(f"Question {number}")
    await open_sheet(desk)

    def count(part: str) -> int:
        return int(desk.text_of(f"context.{part}").replace(",", ""))

    whole = count("history")
    assert sum(map(count, ("system", "history", "pictures", "free"))) == 32_768
    for name in ("oldpictures", "olddocuments", "oldthoughts"):
        assert not desk.find(f"context.{name}", QWidget).isEnabled(), "there is nothing of it to leave out"
    desk.click("context.turns")
    await desk.until(lambda: count("history") < whole)
    assert desk.parts.chat.settings.left_out_turns == 2
    assert desk.text_of("context.turns") == "Send all turns again"
    desk.click("context.turns")
    await desk.until(lambda: count("history") >= whole)
    assert desk.parts.chat.settings.left_out_turns == 0
    assert len(desk.parts.chat.conversation.turns) == 4
