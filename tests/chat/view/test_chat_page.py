"""Asking and answering in the window, on a scripted engine."""

from collections.abc import Callable

import msgspec
import pytest
from PySide6.QtCore import QEvent, QMimeData, QObject, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QPushButton, QTextBrowser, QWidget

from qwendesk.engine.state import Phase
from qwendesk.widgets.theme_keeper import ThemeKeeper
from tests.fakes.engine import DEMO_REPORT, FakeEngineClient, ScriptedAnswer
from tests.window_desk import Desk

LONG_THOUGHT = "I wonder about this for a while. " * 200
CONTROL = Qt.KeyboardModifier.ControlModifier


def words_in(desk: Desk, name: str) -> str:
    """All selectable text inside a control."""
    return "\n".join(pane.toPlainText() for pane in desk.find(name, QWidget).findChildren(QTextBrowser))


async def test_a_question_that_is_typed_and_sent_is_answered(desk: Desk) -> None:
    desk.client.answers.append(ScriptedAnswer(text="It is **slow** memory."))
    desk.send("What is spill?")
    await desk.until(lambda: bool(desk.parts.chat.conversation.turns) and not desk.parts.chat.busy)
    assert desk.composer_text.toPlainText() == ""
    assert words_in(desk, "thread.question.1") == "What is spill?"
    assert words_in(desk, "thread.message.1").strip() == "It is slow memory."
    assert desk.client.asked[0].messages[-1].text == "What is spill?"


async def test_shift_enter_starts_a_new_line(desk: Desk) -> None:
    desk.type("one")
    desk.press(Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    desk.type("two")
    assert desk.composer_text.toPlainText() == "one\ntwo"
    assert not desk.client.asked


async def test_the_text_grows_to_ten_lines(desk: Desk) -> None:
    heights = []
    for count in (1, 4, 10, 30):
        desk.composer_text.setPlainText("\n".join(["x"] * count))
        heights.append(desk.composer_text.height())
    assert heights[0] < heights[1] < heights[2] == heights[3]


async def test_pasted_text_is_shown_from_its_first_line(desk: Desk) -> None:
    one_line = desk.composer_text.height()
    for text in ("a paragraph that is wrapped " * 20, "one\ntwo\nthree"):
        mime = QMimeData()
        mime.setText(text)
        desk.composer_text.clear()
        desk.composer_text.insertFromMimeData(mime)
        assert desk.composer_text.height() > 2 * one_line
        assert desk.composer_text.verticalScrollBar().maximum() == 0


async def test_ctrl_t_turns_thinking_off_and_on(desk: Desk) -> None:
    desk.composer_text.setFocus()
    pill = desk.find("composer.thinking", QPushButton)
    assert pill.isChecked()
    desk.press(Qt.Key.Key_T, CONTROL)
    assert not pill.isChecked()
    assert "Off" in pill.text()
    assert desk.text_of("composer.notice") == "Thinking is off."
    await desk.ask("Hello")
    assert desk.client.asked[-1].options.enable_thinking is False
    desk.click("composer.thinking")
    await desk.ask("Hello again")
    assert desk.client.asked[-1].options.enable_thinking is True


async def test_find_leaves_the_focus_in_an_empty_chat(desk: Desk) -> None:
    desk.composer_text.setFocus()
    desk.press(Qt.Key.Key_F, CONTROL)
    assert QApplication.focusWidget() is desk.composer_text
    await desk.ask("Hello")
    desk.press(Qt.Key.Key_F, CONTROL)
    assert desk.is_shown("thread.find")


async def test_thinking_is_off_with_a_reason_when_the_model_cannot(
    make_desk: Callable[[], Desk], client: FakeEngineClient
) -> None:
    client.report = msgspec.structs.replace(DEMO_REPORT, can_think=False)
    desk = make_desk()
    await desk.load_demo()
    pill = desk.find("composer.thinking", QPushButton)
    assert not pill.isEnabled()
    assert "can't think" in pill.toolTip()
    desk.composer_text.setFocus()
    desk.press(Qt.Key.Key_T, CONTROL)
    assert not pill.isChecked()
    assert "can't think" in desk.text_of("composer.notice")


async def test_the_message_field_does_not_change_while_its_model_is_reloaded(
    make_desk: Callable[[], Desk], client: FakeEngineClient
) -> None:
    client.report = msgspec.structs.replace(DEMO_REPORT, can_think=False, can_see=False)
    desk = make_desk()
    await desk.load_demo()
    pill, looks = desk.find("composer.thinking", QPushButton), set[tuple[bool, str]]()
    desk.parts.engine.subscribe(lambda _state: looks.add((pill.isEnabled(), desk.composer_text.placeholderText())))

    await desk.parts.engine.reload()

    assert looks == {(False, "Ask anything, or drop a PDF, text or code")}


async def test_thinking_can_be_read_while_it_streams_and_folded_again(desk: Desk) -> None:
    desk.client.answers.append(ScriptedAnswer(reasoning=LONG_THOUGHT, text="Done.", tokens_per_second=200))
    desk.send("Think")
    await desk.until(lambda: desk.is_shown("thread.think.1"))
    header = desk.find("thread.think.1", QPushButton)
    assert "Thinking" in header.text()
    desk.click("thread.think.1")
    await desk.until(lambda: "I wonder" in words_in(desk, "thread.message.1"))
    desk.click("thread.think.1")
    desk.click("composer.answernow")
    await desk.until(lambda: not desk.parts.chat.busy)
    assert not header.isChecked()
    thought = desk.parts.chat.conversation.turns[-1].answer
    assert f"· {thought.stats.reasoning_tokens} tokens" in header.text()
    assert "Thought for" in header.text()


async def test_thinking_opens_with_the_keyboard_and_is_selectable(desk: Desk) -> None:
    desk.client.answers.append(ScriptedAnswer(reasoning="Because of this.", text="So."))
    await desk.ask("Why?")
    header = desk.find("thread.think.1", QPushButton)
    header.setFocus()
    desk.press(Qt.Key.Key_Space)
    assert "Because of this." in words_in(desk, "thread.message.1")
    desk.press(Qt.Key.Key_Space)
    block = desk.message(1).think_block
    assert block is not None
    assert not block.is_open


async def test_thinking_that_the_user_opened_stays_open_when_the_answer_begins(desk: Desk) -> None:
    desk.client.answers.append(ScriptedAnswer(reasoning=LONG_THOUGHT, text="So.", tokens_per_second=200))
    desk.send("Why?")
    await desk.until(lambda: desk.is_shown("thread.think.1"))
    header = desk.find("thread.think.1", QPushButton)
    width = header.width()
    desk.click("thread.think.1")
    desk.press(Qt.Key.Key_Escape)
    await desk.until(lambda: not desk.parts.chat.busy)
    assert header.isChecked()
    desk.click("thread.think.hide.1")  # below the text: the header may be scrolled away
    assert not header.isChecked()
    await desk.until(lambda: header.width() == width)


async def test_answer_now_is_shown_while_thinking_and_ends_it(desk: Desk) -> None:
    desk.client.answers.append(ScriptedAnswer(reasoning=LONG_THOUGHT, text="Done.", tokens_per_second=200))
    assert not desk.is_shown("composer.answernow")
    desk.send("Hard question")
    await desk.until(lambda: desk.is_shown("composer.answernow"))
    desk.click("composer.answernow")
    await desk.until(lambda: not desk.parts.chat.busy)
    answer = desk.parts.chat.conversation.turns[-1].answer
    assert answer.text == "Done."
    assert len(answer.reasoning) < len(LONG_THOUGHT)
    assert not desk.is_shown("composer.answernow")


@pytest.mark.parametrize("by", ["button", "escape"])
async def test_stop_keeps_what_was_written(desk: Desk, by: str) -> None:
    desk.client.answers.append(ScriptedAnswer(text="word " * 5000, tokens_per_second=300))
    desk.send("Write a lot")
    await desk.until(lambda: bool(desk.has("thread.message.1") and desk.message(1).answer_view.markdown))
    assert "Stop" in desk.find("composer.send", QPushButton).toolTip()
    if by == "button":
        desk.click("composer.send")
    else:
        desk.press(Qt.Key.Key_Escape)
    send = desk.find("composer.send", QPushButton)
    assert "Stopping…" in send.text(), "it says so before the answer has ended"
    assert not send.isEnabled()
    assert desk.composer_text.hasFocus()
    await desk.until(lambda: not desk.parts.chat.busy)
    assert send.text() == ""
    assert "Send" in send.toolTip()
    turn = desk.parts.chat.conversation.turns[-1]
    assert turn.answer.stop_reason == "cancelled"
    assert desk.message(1).answer_view.toPlainText().startswith("word")
    assert desk.text_of("thread.stats.1").endswith(" · stopped")


async def test_a_second_question_waits_for_the_first_answer(desk: Desk) -> None:
    desk.client.answers.append(ScriptedAnswer(text="word " * 5000, tokens_per_second=300))
    desk.send("First")
    await desk.until(lambda: desk.has("thread.message.1"))
    desk.send("Second")
    assert desk.composer_text.toPlainText() == "Second"
    assert "still being generated" in desk.text_of("composer.notice")
    desk.press(Qt.Key.Key_Escape)
    await desk.until(lambda: not desk.parts.chat.busy)
    assert not desk.is_shown("composer.notice")


async def test_the_stats_chip_shows_all_numbers(desk: Desk) -> None:
    desk.client.answers.append(ScriptedAnswer(reasoning="a b c", text="d e f g"))
    await desk.ask("Count")
    chip = desk.find("thread.stats.1", QWidget)
    assert desk.text_of("thread.stats.1") == "6.0 tok/s · first word in 0.2 s"
    for line in (
        "Answer: 4 tokens",
        "Thinking: 3 tokens",
        "First token after 0.2 s",
        "Read 5 prompt tokens",
        "Finished normally",
    ):
        assert line in chip.toolTip()
    assert desk.text_of("meter.speed") == "6.0 tok/s"


async def test_demo_is_always_labelled_as_a_demo(desk: Desk) -> None:
    assert desk.is_shown("model.demo")
    assert "few topics" in desk.text_of("model.demo")
    assert "choose a model" in desk.find("model.demo", QWidget).toolTip()
    assert "demo" in desk.text_of("welcome.text")
    desk.parts.window.load_model("/models/Qwen3.5-9B-Q4_K_M.gguf")
    await desk.until(lambda: not desk.is_shown("model.demo"))
    await desk.until(lambda: desk.parts.engine.state.phase is Phase.READY)
    assert "Q4_K_M · 32K" in desk.text_of("model.button")


async def test_a_suggestion_asks_its_question(desk: Desk) -> None:
    desk.click("welcome.suggestion.0")
    await desk.until(lambda: bool(desk.parts.chat.conversation.turns) and not desk.parts.chat.busy)
    assert desk.client.asked[0].messages[-1].text == "What is VRAM spill?"
    assert desk.is_shown("thread.view")


async def test_new_chat_empties_the_thread(desk: Desk) -> None:
    await desk.ask("Hello")
    desk.press(Qt.Key.Key_N, CONTROL)
    assert desk.is_shown("welcome.text")
    assert not desk.parts.chat.conversation.turns
    await desk.ask("Hello")
    assert len(desk.client.asked[-1].messages) == 1


async def test_a_new_chat_ends_an_answer_that_is_being_generated(desk: Desk) -> None:
    desk.client.answers.append(ScriptedAnswer(text="word " * 5000, tokens_per_second=300))
    desk.send("Write a lot")
    await desk.until(lambda: desk.is_shown("thread.message.1") and bool(desk.message(1).answer_view.markdown))
    desk.click("chats.new")
    assert desk.is_shown("welcome.text")
    await desk.ask("Hello")
    assert words_in(desk, "thread.message.2").strip().endswith("You said: Hello")


async def test_the_theme_can_change_while_an_answer_streams(desk: Desk, keeper: ThemeKeeper) -> None:
    desk.client.answers.append(ScriptedAnswer(text="Some *words*, one after the other.\n" * 20, tokens_per_second=400))
    desk.send("Write")
    await desk.until(lambda: desk.is_shown("thread.message.1") and bool(desk.message(1).answer_view.markdown))
    keeper.choose("light")
    await desk.until(lambda: not desk.parts.chat.busy and not desk.window.chat_page.thread_view.is_busy)
    lines = words_in(desk, "thread.message.1").strip().splitlines()
    assert [line for line in lines if line] == ["Some words, one after the other."] * 20


async def test_eject_unloads_the_model_and_shows_it(desk: Desk) -> None:
    desk.click("model.eject")
    await desk.until(lambda: desk.parts.engine.state.phase is Phase.OFF)
    assert desk.text_of("model.button") == "Choose a model"
    desk.send("Hello?")
    assert "No model is loaded" in desk.text_of("composer.notice")
    assert desk.composer_text.toPlainText() == "Hello?"


async def test_the_style_chooses_the_preset(desk: Desk) -> None:
    desk.client.report = msgspec.structs.replace(DEMO_REPORT, name="Qwen3.5-9B")
    desk.parts.window.load_model("/models/Qwen3.5-9B-Q4_K_M.gguf")
    await desk.until(
        lambda: desk.parts.engine.state.report is not None and "9B" in desk.parts.engine.state.report.options.model
    )
    button = desk.find("composer.preset", QPushButton)
    precise = next(action for action in button.menu().actions() if action.objectName() == "composer.preset.precise")
    assert precise.text() == "Coding"
    precise.trigger()
    await desk.ask("Code")
    assert desk.client.asked[-1].options.temperature == pytest.approx(0.6)
    desk.click("composer.thinking")
    assert precise.text() == "Reasoning"


@pytest.mark.parametrize("key", [None, Qt.Key.Key_Return])
async def test_custom_sampling_is_used_for_the_next_answer(desk: Desk, key: Qt.Key | None) -> None:
    """After a click on Apply, or Enter in a field."""
    button = desk.find("composer.preset", QPushButton)
    custom = next(action for action in button.menu().actions() if action.objectName() == "composer.preset.custom")
    custom.trigger()
    field = desk.find("composer.custom.temperature", QWidget)
    field.setProperty("value", 0.35)
    desk.click("composer.custom.use") if key is None else QTest.keyClick(field, key)
    await desk.ask("Hello")
    assert desk.client.asked[-1].options.temperature == pytest.approx(0.35)
    assert desk.text_of("composer.preset").startswith("Custom")


async def test_closing_the_window_quits_the_app(desk: Desk) -> None:
    closed: list[bool] = []
    desk.window.closed.connect(lambda: closed.append(True))
    desk.window.close()
    assert closed


async def test_no_other_window_flashes_up_while_a_question_is_answered(desk: Desk, app: QApplication) -> None:
    shown: list[str] = []

    class Watch(QObject):
        def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
            if event.type() is QEvent.Type.Show and isinstance(watched, QWidget) and watched.isWindow():
                shown.append(repr(watched))
            return False

    watch = Watch()
    app.installEventFilter(watch)
    desk.client.answers.append(ScriptedAnswer(reasoning="hm", text="A table:\n\n| a |\n|---|\n\n```c\nx\n```\n"))
    await desk.ask("Show me")
    app.removeEventFilter(watch)
    assert shown == []


async def test_model_unloaded_when_idle_is_reloaded_by_a_message(desk: Desk) -> None:
    desk.parts.services.idle_unload.eject()
    await desk.until(lambda: desk.parts.engine.state.phase is Phase.OFF)
    assert "loads with your next message" in desk.text_of("model.button")
    assert "Ejected to free memory" in desk.find("model.button", QWidget).toolTip()
    shown: list[str] = []
    desk.parts.engine.observed.subscribe(
        lambda _state: shown.extend(
            (desk.text_of("model.button"), desk.has("thread.status.1") and desk.text_of("thread.status.1"))
        )
    )
    await desk.ask("Are you there?")
    assert any("Loading" in text for text in shown if text)
    assert any("Loading the model" in text for text in shown if text)
    assert "You said: Are you there?" in words_in(desk, "thread.message.1")
    assert "loads with your next message" not in desk.text_of("model.button")


async def test_page_up_and_down_in_a_message_of_one_line_scroll_the_conversation(desk: Desk) -> None:
    desk.client.answers.append(ScriptedAnswer(reasoning="", text="\n\n".join(f"Line {n}" for n in range(80))))
    await desk.ask("A long one")
    bar = desk.window.chat_page.thread_view.verticalScrollBar()
    await desk.until(lambda: bar.maximum() > 2 * bar.pageStep() and bar.value() == bar.maximum())
    desk.type("one line")
    at_end = bar.value()
    desk.press(Qt.Key.Key_PageUp)
    page_up = bar.value()
    assert page_up <= at_end - bar.pageStep() // 2
    desk.press(Qt.Key.Key_PageDown)
    assert bar.value() > page_up
    desk.press(Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    before = bar.value()
    desk.press(Qt.Key.Key_PageUp)
    assert bar.value() == before
    assert desk.composer_text.textCursor().blockNumber() == 0


async def test_page_shortcuts_move_the_focus_to_the_page(desk: Desk) -> None:
    for page, key in (("models", Qt.Key.Key_2), ("engine", Qt.Key.Key_3), ("bench", Qt.Key.Key_4)):
        desk.press(key, Qt.KeyboardModifier.ControlModifier)
        focus = desk.window.focusWidget()
        assert desk.window.page == page
        assert focus is not None
        assert focus.isVisible()
        assert not desk.window.rail.isAncestorOf(focus)
        assert not desk.window.top_bar.isAncestorOf(focus)
    desk.press(Qt.Key.Key_1, Qt.KeyboardModifier.ControlModifier)
    assert desk.composer_text.hasFocus()


async def test_only_what_warns_is_amber(desk: Desk) -> None:
    composer = desk.window.chat_page.composer
    words = desk.find("composer.notice", QLabel)

    composer.show_remark("Branch created.")
    assert words.property("kind") == "number"
    composer.show_notice("gone.png could not be found.")
    assert words.property("kind") == "notice"
