"""The notes below an answer that repeated itself, or whose thinking did, and their buttons."""

from PySide6.QtWidgets import QAbstractButton, QLabel, QWidget

from qwendesk.engine.protocol import Begun
from tests.fakes.engine import ScriptedAnswer
from tests.window_desk import Desk


async def say(desk: Desk, question: str, answer: ScriptedAnswer) -> None:
    desk.client.answers.append(answer)
    await desk.ask(question)


async def test_thinking_that_was_ended_can_be_continued(desk: Desk) -> None:
    await say(desk, "2 + 2?", ScriptedAnswer(reasoning="round and round", text="Perhaps 4.", reasoning_looped=True))
    await desk.until(lambda: desk.is_shown("thread.looped.1"))
    sentence = "Thinking went round in circles, so QwenDesk began the answer."
    assert desk.text_of("thread.looped.words.1") == sentence
    assert desk.text_of("thread.footer.think.1") == "Continue thinking"
    note, chip = desk.find("thread.looped.1", QWidget), desk.find("thread.stats.1", QWidget)
    await desk.until(lambda: note.mapToGlobal(note.rect().bottomLeft()).y() < chip.mapToGlobal(chip.pos()).y())
    words = desk.find("thread.looped.words.1", QLabel)
    desk.window.resize(desk.window.minimumSize())
    await desk.until(lambda: words.height() >= words.heightForWidth(words.width()) > 1.5 * words.fontMetrics().height())
    desk.client.answers.append(ScriptedAnswer(reasoning=" until it ends", text="Four."))
    desk.click("thread.footer.think.1")
    await desk.until(lambda: desk.message(1).answer_view.markdown == "Four." and not desk.parts.chat.busy)
    assert desk.client.asked[-1].begun == Begun("round and round", "", stage="thinking")
    await desk.until(lambda: not desk.has("thread.looped.1"))
    assert desk.text_of("thread.version.1") == "2/2"
    desk.click("thread.earlier.1")
    await desk.until(lambda: desk.is_shown("thread.looped.1"))


async def test_an_answer_that_was_stopped_can_be_tried_again(desk: Desk) -> None:
    await say(desk, "Sing", ScriptedAnswer(text="la la la", stop_reason="repetition"))
    await desk.until(lambda: desk.is_shown("thread.repetition.1"))
    assert desk.text_of("thread.repetition.words.1") == "The answer repeated itself, so QwenDesk stopped it."
    chip = desk.find("thread.stats.1", QAbstractButton)
    assert "repeated" not in chip.text(), "the note says it"
    assert "Stopped because it repeated itself" in chip.toolTip()
    assert desk.is_shown("thread.continue.1")
    desk.client.answers.append(ScriptedAnswer(text="A song."))
    desk.click("thread.footer.again.1")
    await desk.until(lambda: desk.message(1).answer_view.markdown == "A song." and not desk.parts.chat.busy)
    assert desk.client.asked[-1].begun is None
    assert desk.client.asked[-1].options.presence_penalty == 0.5
    await desk.until(lambda: not desk.has("thread.repetition.1"))


async def test_the_buttons_wait_for_the_current_answer(desk: Desk) -> None:
    await say(desk, "Sing", ScriptedAnswer(text="la la la", stop_reason="repetition"))
    button = desk.find("thread.footer.again.1", QAbstractButton)
    desk.client.answers.append(ScriptedAnswer(text="word " * 10, tokens_per_second=0.001))
    desk.send("Go on")
    await desk.until(lambda: desk.parts.chat.busy and not button.isEnabled())
    await desk.parts.chat.stop()
    await desk.until(button.isEnabled)
