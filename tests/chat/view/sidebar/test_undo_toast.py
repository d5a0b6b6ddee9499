"""Actions in the sidebar can be undone."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.chat.view.sidebar.chats_desk import ChatsDesk
from tests.window_desk import Desk


@pytest.mark.parametrize("what", ["archive", "folder"])
async def test_archiving_and_removing_a_folder_can_be_undone(
    qt_loop: object, make_desk: Callable[[], Desk], tmp_path: Path, what: str
) -> None:
    desk = make_desk()
    chats = await ChatsDesk(desk, tmp_path / "chats").open_file()
    await desk.load_demo()
    await chats.ask("One")
    (chat_id,) = desk.parts.chats.services.chat_list.chats.summaries
    desk.parts.chats.sidebar.list_actions.move_to_new_folder([chat_id])
    await desk.until(lambda: chats.lines == ["New folder", "One"])
    assert "Moved 1 chat to “New folder”" in desk.parts.chats.sidebar.toast.text
    if what == "archive":
        chats.choose("One", "archive")
    else:
        desk.parts.chats.sidebar.list_actions.delete_folder(desk.parts.chats.services.chat_list.folders.folders[0].id)
    await desk.until(lambda: "New folder" not in chats.lines or "One" not in chats.lines)
    desk.click("chats.undo")
    await desk.until(lambda: chats.lines == ["New folder", "One"])
    assert not desk.is_shown("chats.toast")
