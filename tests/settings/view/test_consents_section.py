"""The card of what tools may do without asking: it lists the consents that last, and takes them back."""

from collections.abc import Callable
from pathlib import Path

from PySide6.QtWidgets import QLabel, QPushButton

from qwendesk.core.messages import ToolCall
from tests.chat.view.test_tools import asks_to_edit, choose
from tests.fakes.answer_stream import ScriptedAnswer
from tests.window_desk import Desk


def lines(desk: Desk) -> list[str]:
    names = [f"settings.consents.{place}.text" for place in (1, 2, 3)]
    return [desk.find(name, QLabel).text() for name in names if desk.has(name)]


async def test_consent_is_listed_and_can_be_taken_back(
    home: Path, make_desk: Callable[[], Desk], tmp_path: Path
) -> None:
    desk = make_desk()
    desk.window.go_to("settings")
    assert desk.is_shown("settings.consents.nothing")
    desk.window.show_page("chat")
    folder = tmp_path / "boat-game"
    folder.mkdir()
    path = await asks_to_edit(desk, folder)
    desk.click("thread.call.1.0.always")
    await desk.until(lambda: not desk.parts.chat.busy)
    assert path.read_text() == "draw(1)\n"

    desk.window.go_to("settings")
    await desk.until(lambda: lines(desk) == ["Edit files, always in the folder boat-game"])
    assert not desk.is_shown("settings.consents.nothing")
    desk.find("settings.consents.1.remove", QPushButton).click()
    await desk.until(lambda: desk.is_shown("settings.consents.nothing"))

    desk.parts.chat.new_chat()
    desk.window.show_page("chat")
    desk.window.chat_page.tool_picker.add_folder(str(folder))
    choose(desk, "edit_file")
    edit = ToolCall("edit_file", '{"path": "loop.py", "old": "draw(1)", "new": "draw(2)"}')
    desk.client.answers = [ScriptedAnswer(calls=(edit,)), ScriptedAnswer(text="Done.")]
    desk.send("Fix it again")
    await desk.until(lambda: desk.is_shown("thread.call.2.0.once"))
    assert path.read_text() == "draw(1)\n"


async def test_consent_for_a_chat_names_it(home: Path, make_desk: Callable[[], Desk], tmp_path: Path) -> None:
    desk = make_desk()
    await desk.parts.chats.services.start(tmp_path / "chats")
    await asks_to_edit(desk, tmp_path)
    desk.click("thread.call.1.0.chat")
    await desk.until(lambda: not desk.parts.chat.busy)
    desk.window.go_to("settings")
    await desk.until(lambda: lines(desk) == ["Edit files, in the chat “Fix it” until QwenDesk closes"])
