"""What a tool changed in a file can be undone and redone, as long as nobody else has changed the file."""

import os
import stat
from pathlib import Path

import msgspec
import pytest

from qwendesk.core.chats import ChatSettings
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.messages import ToolCall
from qwendesk.core.tool_context import CallContext
from qwendesk.toolbox.edit_history import EditHistory, EditStatus, FileEdit
from qwendesk.toolbox.file_tools import edit_file
from qwendesk.toolbox.service import ToolService
from tests.links import skip_without_links
from tests.toolbox.test_service import asked

ID = "0123456789abcdef" * 2
BEFORE = b"\xef\xbb\xbfone\r\ntwo\r\n"
AFTER = b"\xef\xbb\xbfone\r\n2\r\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.txt").write_bytes(BEFORE)
    return folder


@pytest.fixture
def history(tmp_path: Path) -> EditHistory:
    return EditHistory(tmp_path / "data" / "file-edits")


async def edited(
    folder: Path, history: EditHistory, old: str = "two", new: str = "2", path: str = "a.txt", *, call_id: str = ID,
    incognito: bool = False,
) -> None:  # fmt: skip
    """Let the tool change a file, with the user's consent."""
    settings = ChatSettings(tools=("edit_file",), tool_folders=(str(folder),))
    context = CallContext("chat", settings, call_id=call_id, is_incognito=incognito)
    arguments = msgspec.json.encode({"path": path, "old": old, "new": new}).decode()
    record = await asked(ToolService([edit_file(history)]), ToolCall("edit_file", arguments), context, "once")
    assert record.result == f"{path} was changed."


async def state(history: EditHistory, call_id: str = ID) -> str:
    return (await history.status(call_id)).state


def replace_by_link(folder: Path) -> Path:
    """Move a folder, put a link to it in its place, and return its new path."""
    moved = folder.rename(folder.parent / "elsewhere")
    folder.symlink_to(moved)
    return moved


async def test_change_is_undone_and_redone_byte_by_byte(folder: Path, history: EditHistory) -> None:
    await edited(folder, history)
    path = folder / "a.txt"
    assert path.read_bytes() == AFTER
    assert await history.status(ID) == EditStatus("applied", "a.txt", str(path.resolve()))

    await history.undo(ID)
    assert path.read_bytes() == BEFORE
    assert await state(history) == "undone"

    await history.redo(ID)
    assert path.read_bytes() == AFTER
    assert await state(history) == "applied"


async def test_change_can_be_undone_after_a_restart(folder: Path, history: EditHistory, tmp_path: Path) -> None:
    await edited(folder, history)
    await EditHistory(tmp_path / "data" / "file-edits").undo(ID)
    assert (folder / "a.txt").read_bytes() == BEFORE


async def test_file_that_the_change_made_is_removed_and_made_again(folder: Path, history: EditHistory) -> None:
    await edited(folder, history, "", "hello", "new.txt")
    assert (await history.status(ID)).is_new
    await history.undo(ID)
    assert not (folder / "new.txt").exists()
    assert await state(history) == "undone"
    await history.redo(ID)
    assert (folder / "new.txt").read_bytes() == b"hello"


async def test_empty_file_that_was_changed_is_not_removed(folder: Path, history: EditHistory) -> None:
    (folder / "a.txt").write_bytes(b"x")
    await edited(folder, history, "x", "")
    assert (folder / "a.txt").read_bytes() == b""
    await history.undo(ID)
    assert (folder / "a.txt").read_bytes() == b"x"


async def test_file_that_was_changed_since_is_left_alone(folder: Path, history: EditHistory) -> None:
    await edited(folder, history)
    (folder / "a.txt").write_bytes(AFTER + b"mine\r\n")
    assert await state(history) == "changed"
    for switch in (history.undo, history.redo):
        with pytest.raises(QwenDeskError, match="changed since"):
            await switch(ID)
    assert (folder / "a.txt").read_bytes() == AFTER + b"mine\r\n"
    assert "+mine" in await history.difference(ID)


async def test_changes_are_undone_in_turn(folder: Path, history: EditHistory) -> None:
    later = ID[::-1]
    await edited(folder, history)
    await edited(folder, history, "2", "II", call_id=later)
    assert (await state(history), await state(history, later)) == ("changed", "applied")
    await history.undo(later)
    assert (await state(history), await state(history, later)) == ("applied", "undone")
    await history.undo(ID)
    assert (folder / "a.txt").read_bytes() == BEFORE


async def test_file_that_is_gone_is_not_made_again(folder: Path, history: EditHistory) -> None:
    await edited(folder, history)
    (folder / "a.txt").unlink()
    assert await state(history) == "missing"
    with pytest.raises(QwenDeskError):
        await history.undo(ID)
    with pytest.raises(QwenDeskError):
        await history.difference(ID)
    assert not (folder / "a.txt").exists()


async def test_link_that_was_put_in_its_place_is_not_followed(folder: Path, history: EditHistory) -> None:
    skip_without_links(folder)
    await edited(folder, history)
    other = folder.parent / "other.txt"
    other.write_bytes(AFTER)
    (folder / "a.txt").unlink()
    (folder / "a.txt").symlink_to(other)
    assert await state(history) == "replaced"
    with pytest.raises(QwenDeskError):
        await history.undo(ID)
    assert other.read_bytes() == AFTER


async def test_folder_that_was_replaced_by_a_link_is_not_followed(folder: Path, history: EditHistory) -> None:
    skip_without_links(folder)
    await edited(folder, history)
    moved = replace_by_link(folder)
    assert await state(history) == "replaced"
    with pytest.raises(QwenDeskError):
        await history.undo(ID)
    assert (moved / "a.txt").read_bytes() == AFTER


async def test_change_through_a_link_is_undone_in_the_file_it_leads_to(folder: Path, history: EditHistory) -> None:
    skip_without_links(folder)
    (folder / "link.txt").symlink_to(folder / "a.txt")
    settings = ChatSettings(tools=("edit_file",), tool_folders=(str(folder),))
    call = ToolCall("edit_file", '{"path": "link.txt", "old": "two", "new": "2"}')
    await asked(ToolService([edit_file(history)]), call, CallContext("chat", settings, call_id=ID), "once")
    await history.undo(ID)
    assert (folder / "a.txt").read_bytes() == BEFORE
    assert (folder / "link.txt").is_symlink()


@pytest.mark.skipif(not hasattr(os, "link"), reason="there are no hard links here")
async def test_other_name_of_a_file_keeps_its_content(folder: Path, history: EditHistory) -> None:
    """A hard link may lead out of the folder."""
    other = folder.parent / "other.txt"
    os.link(folder / "a.txt", other)
    await edited(folder, history)
    assert other.read_bytes() == BEFORE
    await history.undo(ID)
    assert other.read_bytes() == BEFORE
    os.link(folder / "a.txt", folder.parent / "third.txt")
    await history.redo(ID)
    assert (folder.parent / "third.txt").read_bytes() == BEFORE


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
async def test_permissions_stay(folder: Path, history: EditHistory) -> None:
    (folder / "a.txt").chmod(0o640)
    await edited(folder, history)
    (folder / "a.txt").chmod(0o755)
    await history.undo(ID)
    assert stat.S_IMODE((folder / "a.txt").stat().st_mode) == 0o755
    assert os.listdir(folder) == ["a.txt"]  # noqa: PTH208 - short for a look from a coroutine


async def test_read_only_file_is_not_undone(folder: Path, history: EditHistory) -> None:
    await edited(folder, history, "", "hello", "new.txt")
    (folder / "new.txt").chmod(0o444)
    try:
        with pytest.raises(QwenDeskError, match="read-only"):
            await history.undo(ID)
        assert (folder / "new.txt").read_bytes() == b"hello"
    finally:
        (folder / "new.txt").chmod(0o644)


async def test_what_was_kept_is_private_and_bounded(folder: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    history = EditHistory(data, most_bytes=1000)
    for number in range(6):
        edit = FileEdit("chat", str(folder / "a.txt"), "a.txt", b"x" * 200, AFTER)
        history.remember(f"{number:032x}", edit, on_disk=True)
        os.utime(data / f"{number:032x}.json", (number, number))
    assert [await state(history, f"{number:032x}") == "forgotten" for number in range(6)] == [True] * 4 + [False] * 2
    assert sum(file.stat().st_size for file in data.iterdir()) <= 1000


async def test_changes_of_deleted_chats_are_forgotten(folder: Path, history: EditHistory) -> None:
    await edited(folder, history)
    await history.keep_only(["chat"])
    assert await state(history) == "applied"
    await history.keep_only(["another"])
    assert await state(history) == "forgotten"


async def test_incognito_chat_leaves_nothing_on_disk(folder: Path, history: EditHistory, tmp_path: Path) -> None:
    await edited(folder, history, incognito=True)
    assert not (tmp_path / "data").exists()
    await history.undo(ID)
    assert (folder / "a.txt").read_bytes() == BEFORE


async def test_ids_of_others_name_no_files(history: EditHistory, tmp_path: Path) -> None:
    """Such as those of a chat that was imported."""
    stray = tmp_path / "data" / "stray.json"
    stray.parent.mkdir()
    stray.write_bytes(msgspec.json.encode(FileEdit("chat", str(tmp_path / "x"), "x", None, b"x")))
    for name in ("../stray", "", "x" * 5000, "a/../b"):
        assert await state(history, name) == "forgotten"


async def test_damaged_file_counts_as_forgotten(folder: Path, history: EditHistory, tmp_path: Path) -> None:
    await edited(folder, history)
    (tmp_path / "data" / "file-edits" / f"{ID}.json").write_bytes(b"{")
    assert await state(history) == "forgotten"
    with pytest.raises(QwenDeskError):
        await history.undo(ID)
    await history.keep_only(["chat"])
