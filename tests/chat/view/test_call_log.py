"""The dialog with all calls of a chat."""

from pathlib import Path

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFileDialog, QLabel, QPushButton

from qwendesk.chat.view.thread.tools.call_log_dialog import CallLogDialog
from qwendesk.chat.view.thread.tools.call_row import CallRow
from qwendesk.core.messages import ToolCall
from tests.chat.view.test_tools import CALCULATE, asks_to_edit, choose, load
from tests.fakes.engine import ScriptedAnswer
from tests.window_desk import Desk


def open_from_menu(desk: Desk) -> CallLogDialog:
    desk.open_tools()
    desk.click("composer.tools.calls")
    return desk.find("calllog", CallLogDialog)


async def asked(desk: Desk) -> None:
    """Ask a question for which a tool is called twice."""
    await load(desk)
    choose(desk, "calculate")
    bad = ToolCall("calculate", '{"expression": "1 / 0"}')
    desk.client.answers = [ScriptedAnswer(calls=(CALCULATE, bad)), ScriptedAnswer(text="42.")]
    await desk.ask("6 * 7?")


def shown(dialog: CallLogDialog) -> list[str]:
    return [label.text() for label in dialog.findChildren(QLabel) if label.property("kind") == "small"]


async def test_calls_are_listed_with_time_and_consent_and_open_as_in_the_chat(desk: Desk) -> None:
    await asked(desk)
    dialog = open_from_menu(desk)
    assert desk.text_of("calllog.head").endswith("2 calls")
    assert [line.split(" · ")[1] for line in shown(dialog)] == ["Ran without asking"] * 2
    first, second = dialog.findChildren(CallRow)
    assert [row.record.result for row in (first, second) if row.record] == ["42", ""]
    desk.click("thread.call.open.0.1")
    assert not desk.is_shown("thread.call.0.1.retry"), "calls run again in the chat only"
    desk.click("calllog.copy")
    copied = QGuiApplication.clipboard().text()
    assert '{"expression": "6 * 7"}' in copied
    assert "divides by zero" in copied
    desk.click("calllog.close")
    await desk.until(lambda: not desk.is_shown("calllog"))


async def test_calls_are_exported(desk: Desk, tmp_path: Path) -> None:
    await asked(desk)
    open_from_menu(desk)
    desk.click("calllog.export")
    dialog = desk.find("calllog.save", QFileDialog)
    dialog.fileSelected.emit(str(tmp_path / "calls.json"))
    await desk.until(
        lambda: (tmp_path / "calls.json").exists() and b"unasked" in (tmp_path / "calls.json").read_bytes()
    )
    dialog.close()


async def test_chat_without_calls_says_so(desk: Desk) -> None:
    await load(desk)
    open_from_menu(desk)
    assert desk.text_of("calllog.head") == "No tools were called in this chat."
    assert not desk.find("calllog.copy", QPushButton).isEnabled()


async def test_call_that_waits_for_the_user_is_in_the_log(desk: Desk, tmp_path: Path) -> None:
    await asks_to_edit(desk, tmp_path)
    dialog = open_from_menu(desk)
    [row] = dialog.findChildren(CallRow)
    assert row.record is not None
    assert row.record.call.name == "edit_file"
    desk.click("calllog.close")
    desk.click("thread.call.1.0.refuse")
    await desk.until(lambda: not desk.parts.chat.busy)
    await desk.until(lambda: not desk.is_shown("calllog"))
    assert [line.split(" · ")[1] for line in shown(open_from_menu(desk))] == ["Refused"]


async def test_calls_of_another_chat_are_shown_from_its_menu(desk: Desk, tmp_path: Path) -> None:
    desk.parts.chats.start(tmp_path)
    await desk.parts.chats.opened()
    await asked(desk)
    chat_id = desk.parts.chat.chat_id
    await desk.parts.services.chat.chat_list.wait_for_writes()
    desk.parts.chat.new_chat()
    desk.parts.chats.sidebar.calls_asked.emit(chat_id)
    await desk.until(lambda: desk.is_shown("calllog"))
    assert desk.text_of("calllog.head").endswith("2 calls")
