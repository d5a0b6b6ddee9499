"""What is done to chats with a click can be taken back with a click."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.ui.chats.chats_desk import ChatsDesk
from tests.ui.desk import Desk


@pytest.mark.parametrize("what", ["archive", "folder"])
async def test_archiving_and_removing_a_folder_can_be_taken_back(
    qt_loop: object, make_desk: Callable[[], Desk], tmp_path: Path, what: str
) -> None:
    desk = make_desk()
    chats = await ChatsDesk(desk, tmp_path / "chats").open_file()
    await desk.load_demo()
    await chats.ask("One")
    (chat_id,) = desk.parts.chats.service.summaries
    desk.parts.chats.bridge.move_to_new_folder([chat_id], "Work")
    await desk.until(lambda: chats.lines == ["Work", "One"])
    assert "Moved 1 chat to “Work”" in desk.parts.chats.sidebar.toast.text
    if what == "archive":
        chats.choose("One", "archive")
    else:
        desk.parts.chats.bridge.delete_folder(desk.parts.chats.service.folders[0].id)
    await desk.until(lambda: "Work" not in chats.lines or "One" not in chats.lines)
    desk.click("chats.undo")
    await desk.until(lambda: chats.lines == ["Work", "One"])
    assert not desk.is_shown("chats.toast")
