"""Tools in the window: chosen in the message field, their calls rows in the answer."""

import json
from pathlib import Path

import msgspec
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAction
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QLabel, QPushButton, QWidget

from qwendesk.app.window.command_menus import ranked
from qwendesk.chat.tree_edits import new_answer, new_question
from qwendesk.chat.view.thread.tools.call_body import (
    arguments_text,
    outcome_text,
    result_text,
    short_arguments,
    table_of,
    time_text,
)
from qwendesk.chat.view.thread.tools.call_row import CallRow
from qwendesk.core.chats import ChatSettings
from qwendesk.core.conversation import ChatTree
from qwendesk.core.messages import CallRecord, Message, ToolCall, ToolStep, text_message
from qwendesk.core.options import LoadOptions
from qwendesk.engine.protocol import LoadReport
from qwendesk.widgets.actions import installed
from qwendesk.widgets.controls import Switch
from qwendesk.widgets.text_pane import TextPane
from tests.fakes.engine import DEMO_REPORT, ScriptedAnswer
from tests.window_desk import Desk

CALCULATE = ToolCall("calculate", '{"expression": "6 * 7"}')
TEMPLATE = msgspec.structs.replace(DEMO_REPORT.template, tools=True, call_dialect="xml")


async def load(desk: Desk) -> None:
    desk.client.report = msgspec.structs.replace(DEMO_REPORT, template=TEMPLATE)
    assert isinstance(await desk.parts.engine.load(LoadOptions(model="/models/with-tools.gguf")), LoadReport)


def choose(desk: Desk, tool: str) -> None:
    desk.choose_tool(tool)


def button(desk: Desk) -> QPushButton:
    return desk.find("composer.tools", QPushButton)


def rows(desk: Desk) -> list[CallRow]:
    return desk.message(1).findChildren(CallRow)


async def test_chosen_tools_are_offered_to_the_model(desk: Desk) -> None:
    await load(desk)
    assert button(desk).text() == "Tools"
    choose(desk, "calculate")
    choose(desk, "current_time")
    assert button(desk).text() == "Tools: 2"
    choose(desk, "calculate")
    assert button(desk).text() == "Tools: 1"
    desk.client.answers = [ScriptedAnswer(text="Late.")]

    await desk.ask("How late is it?")

    [request] = desk.client.asked
    assert len(request.tools_json) == 1
    assert "current_time" in request.tools_json[0]


async def test_menu_stays_open_while_tools_are_chosen(desk: Desk) -> None:
    await load(desk)
    menu = desk.open_tools()
    await desk.until(menu.isVisible)
    bottom = menu.geometry().bottom()
    desk.click("composer.tools.calculate")
    row = desk.find("composer.tools.current_time", QWidget).parentWidget()
    QTest.mouseClick(row, Qt.MouseButton.LeftButton, pos=QPoint(40, 8))  # beside the switch counts too
    assert menu.isVisible()
    assert menu.geometry().bottom() == bottom, "its new line about the cost is on the screen"
    assert set(desk.parts.chat.settings.tools) == {"calculate", "current_time"}
    menu.close()


async def test_menu_is_used_with_the_keys(desk: Desk) -> None:
    await load(desk)
    menu = desk.open_tools()
    await desk.until(menu.isVisible)

    def here() -> str:
        focus = menu.focusWidget()
        return focus.objectName() if focus is not None else ""

    assert here() == "composer.tools.pick", "Ask my files is first"
    QTest.keyClick(menu.focusWidget(), Qt.Key.Key_Down)
    assert here() == "composer.tools.current_time"
    QTest.keyClick(menu.focusWidget(), Qt.Key.Key_Space)
    assert desk.parts.chat.settings.tools == ("current_time",)
    assert here() == "composer.tools.current_time"
    QTest.keyClick(menu.focusWidget(), Qt.Key.Key_Up)
    assert here() == "composer.tools.pick"
    QTest.keyClick(menu.focusWidget(), Qt.Key.Key_Escape)
    assert not menu.isVisible()


async def test_demo_offers_the_tools_that_it_can_use_and_those_that_are_on(desk: Desk) -> None:
    desk.client.report = msgspec.structs.replace(DEMO_REPORT, template=TEMPLATE)
    assert isinstance(await desk.parts.engine.load_demo(), LoadReport)
    assert offered(desk) == ["current_time", "calculate"]
    desk.parts.chat.change_settings(ChatSettings(tools=("web_search",)))
    assert offered(desk) == ["current_time", "calculate", "web_search"], "it can be turned off"
    menu = desk.open_tools()
    await desk.until(lambda: desk.is_shown("composer.tools.models"))
    reason = desk.find("composer.tools.models", QAbstractButton).parentWidget().findChildren(QLabel)
    assert any("Needs a larger model" in each.text() for each in reason)
    assert not desk.is_shown("composer.tools.pick")
    asked: list[str] = []
    desk.window.chat_page.offers_asked.connect(lambda: asked.append("offers"))
    desk.click("composer.tools.models")
    assert asked
    assert not menu.isVisible()
    await load(desk)
    assert len(offered(desk)) > 5


async def test_demo_says_why_it_cannot_read_a_folder(desk: Desk, tmp_path: Path) -> None:
    """Dropped, or asked for at the paperclip or by the palette: the reason, and the way to another model."""
    desk.client.report = msgspec.structs.replace(DEMO_REPORT, template=TEMPLATE)
    assert isinstance(await desk.parts.engine.load_demo(), LoadReport)
    composer = desk.window.chat_page.composer
    desk.drop(tmp_path)
    await desk.until(lambda: "demo can't read folders" in composer.notice)
    composer.show_notice("")
    commands = installed(desk.window)
    found = ranked("folder", {key: action.text() for key, action in commands.items()}, ())
    for asked_by in (commands[found[0]], desk.find("composer.attach.folder", QAction)):
        composer.show_notice("")
        asked_by.trigger()
        assert "demo can't read folders" in composer.notice
    assert desk.parts.chat.settings == ChatSettings(), "nothing is switched on that would do nothing"
    asked: list[str] = []
    desk.window.chat_page.offers_asked.connect(lambda: asked.append("offers"))
    desk.click("composer.models")
    assert asked
    assert not composer.notice


def offered(desk: Desk) -> list[str]:
    menu = desk.open_tools()
    menu.close()
    shown = [each for each in menu.findChildren(Switch) if each.parentWidget().isVisibleTo(menu) and each.isEnabled()]
    return [each.objectName().removeprefix("composer.tools.") for each in shown]


async def test_tokens_of_the_active_tools_are_counted_by_the_engine(desk: Desk) -> None:
    await load(desk)
    choose(desk, "calculate")

    def cost() -> str:
        return desk.text_of("composer.tools.cost")

    def n_words() -> int:
        return sum(len(each.split()) for each in desk.parts.services.toolbox.definitions(desk.parts.chat.settings))

    await desk.until(lambda: cost() == f"The active tools take {n_words()} tokens of each prompt")
    assert cost() in button(desk).toolTip()
    before = n_words()
    choose(desk, "current_time")
    await desk.until(lambda: cost() == f"The active tools take {n_words()} tokens of each prompt")
    assert n_words() > before

    await desk.parts.chats.services.context.measure()
    fill = desk.parts.chats.services.context.counted.value
    assert fill.tools == n_words(), "they are a part of what fills the context"
    choose(desk, "calculate")
    choose(desk, "current_time")
    assert "takes some tokens" in cost(), "no gap where the count comes"


async def test_model_without_calls_says_so(desk: Desk, tmp_path: Path) -> None:
    assert isinstance(await desk.parts.engine.load(LoadOptions(model="/models/without-tools.gguf")), LoadReport)
    assert not button(desk).isEnabled()
    assert "can't use tools" in button(desk).toolTip()
    desk.drop(tmp_path)
    composer = desk.window.chat_page.composer
    await desk.until(lambda: composer.notice)
    assert composer.notice.startswith("This model can't use tools, so it can't read folders.")
    assert desk.is_shown("composer.models")


async def test_template_with_a_known_fault_is_said_once_and_in_the_menu(desk: Desk) -> None:
    faulty = msgspec.structs.replace(TEMPLATE, needs_parsed_calls=True)
    desk.client.report = msgspec.structs.replace(DEMO_REPORT, template=faulty)
    assert isinstance(await desk.parts.engine.load(LoadOptions(model="/models/with-tools.gguf")), LoadReport)
    composer = desk.window.chat_page.composer
    assert not composer.notice
    choose(desk, "calculate")
    assert "known fault in tool calls" in composer.notice
    menu = desk.open_tools()
    assert desk.is_shown("composer.tools.fault")
    menu.close()
    composer.show_notice("")
    choose(desk, "current_time")
    assert not composer.notice, "once is enough"


async def test_folder_switches_reading_on_and_off(desk: Desk, tmp_path: Path) -> None:
    await load(desk)
    picker = desk.window.chat_page.tool_picker
    picker.add_folder(str(tmp_path))
    assert button(desk).text() == "Tools: 1"
    assert desk.parts.chat.settings.tools == ("list_files", "search_files", "read_file")
    desk.open_tools()
    folder = f"composer.tools.folder.{tmp_path}"
    assert desk.text_of(folder).startswith(tmp_path.name)
    desk.click(folder)
    await desk.until(lambda: desk.is_shown("folder.remove"))
    desk.click("folder.remove")
    assert desk.parts.chat.settings.tool_folders == ()
    assert button(desk).text() == "Tools", "without a folder there is nothing to read"


async def test_answer_shows_thinking_calls_and_text_in_order(desk: Desk) -> None:
    await load(desk)
    choose(desk, "calculate")
    desk.client.answers = [
        ScriptedAnswer(reasoning="I calculate.", text="One moment.", calls=(CALCULATE,)),
        ScriptedAnswer(reasoning="There it is.", text="It is **42**."),
    ]
    await desk.ask("6 * 7?")
    await desk.until(lambda: desk.message(1).answer_view.markdown == "It is **42**.")

    def order() -> list[str]:
        message = desk.message(1)
        widgets = [each for each in message.children() if isinstance(each, QWidget) and each.isVisible()]
        widgets.sort(key=lambda widget: widget.y())
        return [type(widget).__name__ for widget in widgets]

    expected = ["ThinkBlock", "AnswerView", "CallRow", "ThinkBlock", "AnswerView"]
    await desk.until(lambda: order()[:5] == expected)
    [row] = rows(desk)
    assert desk.text_of("thread.call.outcome.1.0") == "42"
    assert desk.text_of("thread.call.time.1.0") == "<0.1 s"
    assert [label.text() for label in row.findChildren(QLabel)][:2] == ["Calculator", "6 * 7"]

    closed = row.height()
    desk.click("thread.call.open.1.0")
    await desk.until(lambda: row.height() > closed)
    assert desk.find("thread.call.text.1.0", TextPane).toPlainText() == "expression: 6 * 7\n\n42"


async def test_stored_answer_shows_the_same(desk: Desk) -> None:
    await load(desk)
    choose(desk, "calculate")
    desk.client.answers = [ScriptedAnswer(text="Hm.", calls=(CALCULATE,)), ScriptedAnswer(text="42.")]
    await desk.ask("6 * 7?")
    tree, settings, chat_id = desk.parts.chat.tree, desk.parts.chat.settings, desk.parts.chat.chat_id
    desk.parts.chat.new_chat()
    desk.parts.chat.open(chat_id, tree, settings)
    await desk.until(lambda: desk.has("thread.call.1.0"))
    assert desk.message(1).answer_view.markdown == "42."
    assert [row.record.result for row in rows(desk) if row.record] == ["42"]


async def test_calls_of_an_imported_chat_are_shown_whatever_they_are(desk: Desk) -> None:
    """Others may have written them: a name as long as a book, and a change that would take minutes to compare."""
    old = "".join(f"{number % 101}\n" for number in range(300_000))
    edit = ToolCall("edit_file", json.dumps({"path": "a.txt", "old": f"{old}a\n{old}", "new": f"{old}b\n{old}"}))
    named = ToolCall("Allow\nthis\u202e " * 10_000, "{}")
    calls = tuple(CallRecord(each, is_done=True, result="Done.") for each in (edit, named))
    question = new_question("", text_message("user", "Hello"))
    message = Message("assistant", steps=(ToolStep(calls),))
    answer = msgspec.structs.replace(new_answer(question.id), message=message)
    tree = ChatTree().with_node(question).with_node(answer)
    desk.parts.chat.open("c" * 32, tree, ChatSettings(is_imported=True))
    await desk.until(lambda: desk.has("thread.call.1.1"))
    desk.click("thread.call.open.1.0")
    assert desk.find("thread.call.text.1.0", TextPane).toPlainText().startswith("path: a.txt")
    title = desk.find("thread.call.open.1.1", QPushButton).accessibleName()
    assert title.startswith("Allow this Allow this")
    assert len(title) < 100


async def asks_to_edit(desk: Desk, folder: Path) -> Path:
    """Have the model ask to change a file, and return it."""
    path = folder / "loop.py"
    path.write_text("draw()\n")
    await load(desk)
    desk.window.chat_page.tool_picker.add_folder(str(folder))
    choose(desk, "edit_file")
    edit = ToolCall("edit_file", '{"path": "loop.py", "old": "draw()", "new": "draw(1)"}')
    desk.client.answers = [ScriptedAnswer(calls=(edit,)), ScriptedAnswer(text="Done.")]
    desk.send("Fix it")
    await desk.until(lambda: desk.is_shown("thread.call.1.0.once"))
    return path


async def test_call_with_an_effect_waits_for_the_user(desk: Desk, tmp_path: Path) -> None:
    path = await asks_to_edit(desk, tmp_path)
    assert desk.text_of("thread.call.outcome.1.0") == "waits for you"
    assert "-draw()\n+draw(1)" in desk.find("thread.call.text.1.0", TextPane).toPlainText()
    assert [desk.text_of(f"thread.call.1.0.{each}") for each in ("once", "chat", "always", "refuse")] == [
        "Allow", "Allow in this chat", "Always in this folder", "Refuse",
    ]  # fmt: skip
    assert path.read_text() == "draw()\n"

    desk.click("thread.call.1.0.once")
    await desk.until(lambda: desk.message(1).answer_view.markdown == "Done.")
    assert path.read_text() == "draw(1)\n"
    await desk.until(lambda: not desk.is_shown("thread.call.1.0.once"))
    assert desk.text_of("thread.call.outcome.1.0").startswith("loop.py was changed.")


async def test_refused_call_changes_nothing(desk: Desk, tmp_path: Path) -> None:
    path = await asks_to_edit(desk, tmp_path)
    desk.click("thread.call.1.0.refuse")
    await desk.until(lambda: desk.message(1).answer_view.markdown == "Done.")
    assert path.read_text() == "draw()\n"
    assert desk.text_of("thread.call.outcome.1.0") == "Refused"


async def test_another_chat_ends_the_question_and_the_next_one_is_shown(desk: Desk, tmp_path: Path) -> None:
    await asks_to_edit(desk, tmp_path)
    desk.parts.chat.new_chat()
    await desk.until(lambda: not desk.has("thread.call.1.0.once"))
    desk.window.chat_page.tool_picker.add_folder(str(tmp_path))
    choose(desk, "edit_file")
    edit = ToolCall("edit_file", '{"path": "loop.py", "old": "draw()", "new": "draw(2)"}')
    desk.client.answers = [ScriptedAnswer(calls=(edit,)), ScriptedAnswer(text="Done.")]
    desk.send("Fix it again")
    await desk.until(lambda: desk.is_shown("thread.call.2.0.once"))
    desk.click("thread.call.2.0.once")
    await desk.until(lambda: desk.message(2).answer_view.markdown == "Done.")
    assert (tmp_path / "loop.py").read_text() == "draw(2)\n"


async def test_call_that_never_ended_says_so(desk: Desk, tmp_path: Path) -> None:
    await asks_to_edit(desk, tmp_path)
    tree, settings, chat_id = desk.parts.chat.tree, desk.parts.chat.settings, desk.parts.chat.chat_id
    node = desk.parts.chat.conversation.turns[-1]
    stored = msgspec.structs.replace(
        tree.nodes[node.answer_id], message=Message("assistant", steps=node.answer.steps), stop_reason=None
    )
    desk.parts.chat.new_chat()
    await desk.until(lambda: not desk.has("thread.call.1.0") and not desk.parts.chat.busy)
    desk.parts.chat.open(chat_id, tree.with_node(stored), settings)
    await desk.until(lambda: desk.has("thread.call.1.0"))
    assert desk.text_of("thread.call.outcome.1.0") == "Interrupted"


async def test_stop_ends_a_call_that_waits(desk: Desk, tmp_path: Path) -> None:
    path = await asks_to_edit(desk, tmp_path)
    desk.window.chat_page.stop()
    await desk.until(lambda: not desk.parts.chat.busy)
    await desk.until(lambda: not desk.is_shown("thread.call.1.0.once"))
    assert path.read_text() == "draw()\n"


def test_outcomes_are_said_in_a_few_words() -> None:
    done = CallRecord(CALCULATE, is_done=True, result="42", elapsed_s=0.04)
    failed = msgspec.structs.replace(done, result="", error="No.")
    assert outcome_text(CallRecord(CALCULATE)) == "Preparing…"
    assert outcome_text(CallRecord(CALCULATE, began_s=1)) == "Running…"
    assert (outcome_text(done), time_text(done)) == ("42", "<0.1 s")
    long = msgspec.structs.replace(done, result="a\nb", elapsed_s=75)
    assert (outcome_text(long), time_text(long)) == ("2 lines", "1 min 15 s")
    assert outcome_text(failed) == "Failed"
    found = "[1] a.txt, lines 1-2\n    x\n    y\n\n[2] b.txt, lines 3-3\n    z"
    assert outcome_text(msgspec.structs.replace(done, call=ToolCall("search_files"), result=found)) == "2 places"
    refused = CallRecord(CALCULATE, is_done=True, error="No.", consent="refused")
    assert (outcome_text(refused), time_text(refused)) == ("Refused", "")
    assert (arguments_text(done), result_text(done), result_text(failed)) == ("expression: 6 * 7", "42", "No.")


def test_results_that_are_tables_are_found() -> None:
    table = table_of('[{"name": "a", "size": 3}, {"name": "b", "size": null}]')
    assert table is not None
    assert (table.columns, table.lines) == (("name", "size"), (("a", "3"), ("b", "null")))
    table = table_of("| day | rain |\n|---|:-:|\n| Mon | 3 mm |\n| Tue | |\n")
    assert table is not None
    assert (table.columns, table.lines) == (("day", "rain"), (("Mon", "3 mm"), ("Tue", "")))
    many = table_of(str([{"n": n} for n in range(1000)]).replace("'", '"'))
    assert many is not None
    assert (len(many.lines), many.n_more) == (200, 800)
    for text in ("", "[]", "[1]", '[{"a": {}}]', '[{"a": 1}, {"b": 1}]', "[" * 9000, "| a |", "|a|\n|b|\n|c|", "[{}]"):
        assert table_of(text) is None


def test_arguments_are_short_also_while_they_are_written() -> None:
    assert short_arguments('{"path": "a/b.txt", "line": 3}') == "a/b.txt, 3"
    assert short_arguments('{"path": "a/b') == '{"path": "a/b'
    assert short_arguments("") == ""
    assert short_arguments("[1]") == "[1]"
    assert short_arguments('{"path": "a.py", "first_line": 3, "last_line": 9}') == "a.py, lines 3-9"
    assert short_arguments('{"path": "a.py", "first_line": 3}') == "a.py, 3"
    assert short_arguments('{"path": "a.py", "old": "x", "new": "y"}') == "a.py"
    assert len(short_arguments('{"text": "' + "long " * 50 + '"}')) == 61
