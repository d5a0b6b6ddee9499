"""The actions of a message in the window: edit, regenerate, versions, continue, branch, delete and copy."""

from PySide6.QtCore import QEvent, QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu, QPlainTextEdit, QWidget

from qwendesk.core.chats import ChatSettings
from qwendesk.core.conversation import ChatNode, ChatTree
from qwendesk.core.messages import text_message
from qwendesk.engine.protocol import Begun
from tests.fakes.engine import ScriptedAnswer
from tests.window_desk import Desk


def shown(desk: Desk) -> list[tuple[str, str]]:
    return [(turn.question.text, turn.answer.text) for turn in desk.parts.chat.conversation.turns]


def last_id(desk: Desk) -> int:
    return desk.parts.chat.conversation.turns[-1].id


async def say(desk: Desk, question: str, answer: ScriptedAnswer) -> None:
    desk.client.answers.append(answer)
    await desk.ask(question)


async def idle(desk: Desk, n_requests: int) -> None:
    await desk.until(lambda: len(desk.client.asked) == n_requests and not desk.parts.chat.busy)


def type_over(field: QPlainTextEdit, text: str) -> None:
    field.selectAll()
    QTest.keyClicks(field, text)


async def test_question_is_edited_in_place_and_its_old_version_is_kept(desk: Desk) -> None:
    await say(desk, "One?", ScriptedAnswer(text="Uno."))
    desk.click("thread.question.edit.1")
    field = desk.find("thread.editor.text.1", QPlainTextEdit)
    await desk.until(field.hasFocus)
    assert field.toPlainText() == "One?"
    type_over(field, "Two?")
    desk.client.answers.append(ScriptedAnswer(text="Due."))
    QTest.keyClick(field, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    await desk.until(lambda: shown(desk) == [("Two?", "Due.")] and not desk.parts.chat.busy)
    turn = last_id(desk)
    await desk.until(lambda: desk.is_shown(f"thread.question.version.{turn}"))
    assert desk.text_of(f"thread.question.version.{turn}") == "2/2"
    assert desk.message(turn).answer_view.markdown == "Due."
    desk.find(f"thread.question.earlier.{turn}", QWidget).setFocus()
    desk.press(Qt.Key.Key_Space)
    await desk.until(lambda: shown(desk) == [("One?", "Uno.")])
    assert desk.find("thread.question.later.1", QWidget).hasFocus()  # the other one leads nowhere now
    assert desk.text_of("thread.question.version.1") == "1/2"
    assert desk.message(1).answer_view.markdown == "Uno."


async def test_enter_sends_an_edited_question_and_shift_enter_adds_a_line(desk: Desk) -> None:
    await say(desk, "One?", ScriptedAnswer(text="Uno."))
    desk.click("thread.question.edit.1")
    field = desk.find("thread.editor.text.1", QPlainTextEdit)
    await desk.until(field.hasFocus)
    await desk.until(lambda: field.width() > 200)
    height, message = field.height(), desk.find("thread.question.1", QWidget)
    type_over(field, "A word or two " * 40)
    await desk.until(lambda: field.height() > 2 * height and message.height() > field.height())
    assert field.verticalScrollBar().maximum() == 0, "the whole text is in sight"
    type_over(field, "Two")
    QTest.keyClick(field, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    QTest.keyClicks(field, "lines?")
    assert len(desk.client.asked) == 1
    QTest.keyClick(field, Qt.Key.Key_Return)
    await idle(desk, 2)
    assert shown(desk)[0][0] == "Two\nlines?"


async def test_escape_cancels_editing(desk: Desk) -> None:
    await say(desk, "One?", ScriptedAnswer(text="Uno."))
    desk.click("thread.question.edit.1")
    field = desk.find("thread.editor.text.1", QPlainTextEdit)
    type_over(field, "Other")
    QTest.keyClick(field, Qt.Key.Key_Escape)
    await desk.until(lambda: not desk.has("thread.editor.1"))
    assert shown(desk) == [("One?", "Uno.")]
    assert len(desk.client.asked) == 1
    assert desk.is_shown("thread.question.edit.1")


async def test_what_stands_before_an_edited_question_is_prepared_until_the_edit_ends(desk: Desk) -> None:
    desk.parts.services.chat.warmer._on_battery = lambda: False
    await say(desk, "One?", ScriptedAnswer(text="Uno."))
    await say(desk, "Two?", ScriptedAnswer(text="Due."))
    turn, warmed = last_id(desk), desk.client.warmed

    desk.click(f"thread.question.edit.{turn}")
    await desk.until(lambda: bool(warmed) and [each.role for each in warmed[-1].messages] == ["user", "assistant"])
    field = desk.find(f"thread.editor.text.{turn}", QPlainTextEdit)
    QTest.keyClick(field, Qt.Key.Key_Escape)
    await desk.until(lambda: [each.text for each in warmed[-1].messages] == ["One?", "Uno.", "Two?", "Due."])


async def test_answer_and_reasoning_are_edited_separately(desk: Desk) -> None:
    await say(desk, "One?", ScriptedAnswer(reasoning="Hm.", text="Uno."))
    desk.click("thread.edit.1")
    type_over(desk.find("thread.editor.thought.1", QPlainTextEdit), "Well.")
    type_over(desk.find("thread.editor.text.1", QPlainTextEdit), "<think>no</think> Eins.")
    await desk.until(lambda: desk.find("thread.editor.take.1", QWidget).height() > 20)
    desk.click("thread.editor.take.1")
    await desk.until(lambda: shown(desk) == [("One?", "<think>no</think> Eins.")])
    answer = desk.parts.chat.conversation.turns[0].answer
    assert answer.reasoning == "Well."
    assert desk.message(1).think_block is not None
    assert desk.text_of("thread.version.1") == "2/2"
    assert len(desk.client.asked) == 1, "nothing is asked"


async def test_regenerate_adds_a_version(desk: Desk) -> None:
    await say(desk, "One?", ScriptedAnswer(text="Uno."))
    desk.client.answers.append(ScriptedAnswer(text="Eins."))
    desk.click("thread.regenerate.1")
    await idle(desk, 2)
    await desk.until(lambda: desk.is_shown("thread.version.1"))
    assert shown(desk) == [("One?", "Eins.")]
    assert desk.message(1).answer_view.markdown == "Eins."
    assert not desk.find("thread.later.1", QWidget).isEnabled()
    desk.click("thread.earlier.1")
    await desk.until(lambda: desk.message(1).answer_view.markdown == "Uno.")
    assert desk.text_of("thread.version.1") == "1/2"


async def test_actions_stay_below_the_last_answer_and_in_their_place(desk: Desk) -> None:
    def left_edges() -> list[int]:
        names = ("copy", "edit", "regenerate", "branch", "delete")
        return [button.mapTo(desk.window, QPoint(0, 0)).x() for button in map(answer_button, names)]

    def answer_button(name: str) -> QWidget:
        return desk.find(f"thread.{name}.1", QWidget)

    await say(desk, "One?", ScriptedAnswer(text="Uno."))
    before = left_edges()
    desk.client.answers.append(ScriptedAnswer(text="Eins und zwei und drei.", stop_reason="max_tokens"))
    desk.click("thread.regenerate.1")
    await idle(desk, 2)
    await desk.until(lambda: desk.is_shown("thread.version.1"))
    assert answer_button("copy").parentWidget().is_highlighted, "no pointer and no focus is there"
    assert left_edges() == before, "the arrows come after the buttons"
    arrow = answer_button("earlier").mapTo(desk.window, QPoint(0, 0)).x()
    desk.click("thread.earlier.1")
    await desk.until(lambda: desk.message(1).answer_view.markdown == "Uno.")
    assert answer_button("earlier").mapTo(desk.window, QPoint(0, 0)).x() == arrow
    await say(desk, "Two?", ScriptedAnswer(text="Due."))
    desk.composer_text.setFocus()
    assert not answer_button("copy").parentWidget().is_highlighted, "another answer is the last one"
    desk.click("thread.question.delete.2")
    await desk.until(lambda: answer_button("copy").parentWidget().is_highlighted)


async def test_continue_is_offered_for_a_cut_answer_and_adds_to_it(desk: Desk) -> None:
    await say(desk, "Count", ScriptedAnswer(reasoning="Hm.", text="One, two, ", stop_reason="max_tokens"))
    assert desk.is_shown("thread.continue.1")
    desk.client.answers.append(ScriptedAnswer(text="three."))
    desk.click("thread.continue.1")
    await idle(desk, 2)
    assert desk.client.asked[-1].begun == Begun("Hm.", "One, two, ")
    await desk.until(lambda: desk.message(1).answer_view.markdown == "One, two, three.")
    assert desk.message(1).think_block is not None
    await desk.until(lambda: desk.is_shown("thread.regenerate.1"))
    assert not desk.is_shown("thread.continue.1"), "it is whole now"


async def test_only_the_last_answer_can_be_continued(desk: Desk) -> None:
    await say(desk, "Count", ScriptedAnswer(text="One, ", stop_reason="max_tokens"))
    await say(desk, "More", ScriptedAnswer(text="Two, ", stop_reason="max_tokens"))
    message = desk.message(1)
    QApplication.sendEvent(message, QEvent(QEvent.Type.Enter))
    assert not desk.is_shown("thread.continue.1")
    assert desk.is_shown("thread.continue.2")


async def test_branch_opens_a_chat_with_the_turns_so_far(desk: Desk) -> None:
    await say(desk, "One?", ScriptedAnswer(text="Uno."))
    await say(desk, "Two?", ScriptedAnswer(text="Due."))
    desk.click("thread.branch.1")
    await desk.until(lambda: shown(desk) == [("One?", "Uno.")])
    turn = last_id(desk)
    assert turn not in (1, 2)
    assert desk.message(turn).answer_view.markdown == "Uno."


async def test_delete_can_be_undone(desk: Desk) -> None:
    await say(desk, "One?", ScriptedAnswer(text="Uno."))
    await say(desk, "Two?", ScriptedAnswer(text="Due."))
    desk.click("thread.question.delete.2")
    await desk.until(lambda: desk.is_shown("chat.undobar"))
    assert shown(desk) == [("One?", "Uno.")]
    assert not desk.is_shown("thread.message.2")
    assert desk.text_of("chat.undobar.words") == "2 messages deleted"
    desk.click("chat.undo")
    await desk.until(lambda: shown(desk) == [("One?", "Uno."), ("Two?", "Due.")])
    assert desk.message(2).answer_view.markdown == "Due."
    assert not desk.is_shown("chat.undobar")


async def test_actions_that_change_the_chat_are_disabled_while_an_answer_is_generated(desk: Desk) -> None:
    await say(desk, "One?", ScriptedAnswer(text="Uno."))
    changing = ["edit", "regenerate", "branch", "delete", "question.edit", "question.branch", "question.delete"]
    buttons = {name: desk.find(f"thread.{name}.1", QWidget) for name in changing}
    tips = {name: button.toolTip() for name, button in buttons.items()}
    desk.client.answers.append(ScriptedAnswer(text="word " * 10, tokens_per_second=0.001))
    desk.send("Two?")
    await desk.until(lambda: desk.parts.chat.busy)
    for name, button in buttons.items():
        assert not button.isEnabled(), name
        assert button.toolTip().startswith(tips[name])
        assert "Wait for the current answer" in button.toolTip()
    assert desk.find("thread.copy.1", QWidget).isEnabled(), "copying changes nothing"
    await desk.parts.chat.stop()
    await desk.until(lambda: not desk.parts.chat.busy)
    for name, button in buttons.items():
        assert button.isEnabled(), name
        assert button.toolTip() == tips[name]


async def test_answer_cut_off_by_a_crash_can_be_continued(desk: Desk) -> None:
    question = ChatNode(id="q" * 32, message=text_message("user", "Count"))
    cut = ChatNode(id="a" * 32, parent_id=question.id, message=text_message("assistant", "One, ", reasoning="Hm."))
    tree = ChatTree().with_node(question).with_node(cut)
    desk.parts.chats.services.chat.open("c" * 32, tree, ChatSettings())
    turn = last_id(desk)
    await desk.until(lambda: desk.is_shown(f"thread.cutoff.{turn}"))
    assert "cut off" in desk.text_of(f"thread.cutoff.words.{turn}")
    assert desk.is_shown(f"thread.regenerate.{turn}"), "its other actions are there as well"
    desk.client.answers.append(ScriptedAnswer(text="two."))
    desk.click(f"thread.footer.resume.{turn}")
    await idle(desk, 1)
    assert desk.client.asked[-1].begun == Begun("Hm.", "One, ")
    await desk.until(lambda: desk.message(turn).answer_view.markdown == "One, two.")
    await desk.until(lambda: not desk.has(f"thread.cutoff.{turn}"))


async def test_question_without_an_answer_can_be_answered(desk: Desk) -> None:
    await say(desk, "One?", ScriptedAnswer(text="Uno."))
    desk.click("thread.delete.1")
    await desk.until(lambda: desk.is_shown("thread.cutoff.1"))
    assert not desk.is_shown("thread.continue.1")
    desk.client.answers.append(ScriptedAnswer(text="Eins."))
    desk.click("thread.footer.resume.1")
    await desk.until(lambda: shown(desk) == [("One?", "Eins.")] and not desk.parts.chat.busy)


async def test_actions_are_shown_on_hover_and_on_focus(desk: Desk) -> None:
    await say(desk, "One?", ScriptedAnswer(text="Uno."))
    await say(desk, "Two?", ScriptedAnswer(text="Due."))
    button = desk.find("thread.branch.1", QWidget)
    row = button.parentWidget()
    message = desk.message(1)
    QApplication.sendEvent(message, QEvent(QEvent.Type.Leave))
    desk.composer_text.setFocus()
    assert not row.is_highlighted
    height = message.height()
    QApplication.sendEvent(message, QEvent(QEvent.Type.Enter))
    assert row.is_highlighted
    assert message.height() == height, "nothing moves"
    QApplication.sendEvent(message, QEvent(QEvent.Type.Leave))
    button.setFocus()
    assert row.is_highlighted


async def test_message_is_copied_in_three_formats(desk: Desk) -> None:
    await say(desk, "One?", ScriptedAnswer(reasoning="Secret.", text="**Uno** and `due`"))
    desk.click("thread.copy.1")
    assert QApplication.clipboard().text() == "**Uno** and `due`"
    for number, (plain, has_html) in enumerate(
        (("**Uno** and `due`", False), ("Uno and due", False), ("Uno and due", True))
    ):
        desk.click("thread.copyas.1")
        menu = desk.find("thread.copyas.menu", QMenu)
        menu.actions()[number].trigger()
        menu.close()
        await desk.until(lambda: not desk.has("thread.copyas.menu"))
        content = QApplication.clipboard().mimeData()
        assert content.text().strip() == plain
        assert content.hasHtml() is has_html
    desk.click("thread.question.copy.1")
    assert QApplication.clipboard().text() == "One?"
