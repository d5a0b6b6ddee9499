"""The folders of a chat show how far they are read, and what in them can't be."""

import asyncio
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QFileDialog, QPlainTextEdit, QToolButton

from qwendesk.chat.view.composer.folder_strip import folder_text
from qwendesk.core import paths
from qwendesk.core.folder_state import FolderState
from qwendesk.toolbox.knowledge import folder_indexes, index_update
from qwendesk.widgets.controls import Switch
from tests.chat.view.test_tools import choose, load
from tests.window_desk import Desk


def pick(desk: Desk, folder: Path) -> None:
    desk.window.chat_page.tool_picker.add_folder(str(folder))


def shown(desk: Desk, folder: Path) -> str:
    return desk.text_of(f"composer.folder.{folder}")


def in_menu(desk: Desk, folder: Path) -> str:
    desk.open_tools().close()
    return desk.text_of(f"composer.tools.folder.{folder}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "papers"
    folder.mkdir()
    (folder / "a.txt").write_text("kayak")
    (folder / "b.txt").write_text("canoe")
    return folder


async def test_folder_is_read_at_once_and_says_how_much_it_has(desk: Desk, folder: Path) -> None:
    await load(desk)
    pick(desk, folder)
    assert desk.is_shown(f"composer.folder.{folder}")
    await desk.until(lambda: shown(desk, folder) == "papers: 2 files")
    assert in_menu(desk, folder) == "papers: 2 files…"


@pytest.fixture
def long_name(folder: Path) -> Path:
    return folder.rename(folder.with_name("a folder " * 20 + "end"))


async def test_folder_with_a_long_name_pushes_no_switch_out_of_the_menu(desk: Desk, long_name: Path) -> None:
    await load(desk)
    pick(desk, long_name)
    menu = desk.open_tools()
    for switch in menu.findChildren(Switch):
        right = switch.mapTo(menu, switch.rect().topRight()).x()
        assert right < menu.width(), switch.objectName()
    menu.close()


async def test_dropped_folder_is_one_to_read_in(desk: Desk, folder: Path) -> None:
    await load(desk)
    (folder.parent / "note.txt").write_text("words")
    desk.drop(folder, folder.parent / "note.txt")
    await desk.until(lambda: desk.has(f"composer.folder.{folder}") and shown(desk, folder) == "papers: 2 files")
    assert "search_files" in desk.parts.chat.settings.tools
    row = desk.window.chat_page.composer.attachments
    await desk.until(lambda: [each.name for each in row.documents] == ["note.txt"])


async def test_the_paperclip_leads_to_files_and_to_a_folder(desk: Desk, folder: Path) -> None:
    await load(desk)
    button = desk.find("composer.attach", QToolButton)
    menu = button.menu()
    assert [action.text() for action in menu.actions()] == ["Files…\tCtrl+O", "A folder…"]
    desk.find("composer.attach.folder", QAction).trigger()
    dialog = desk.find("composer.tools.dialog", QFileDialog)
    dialog.fileSelected.emit(str(folder))
    dialog.close()
    await desk.until(lambda: desk.has(f"composer.folder.{folder}") and shown(desk, folder) == "papers: 2 files")
    desk.find("composer.attach.files", QAction).trigger()
    desk.find("composer.attach_dialog", QFileDialog).close()
    button.setAttribute(Qt.WidgetAttribute.WA_UnderMouse)
    menu.aboutToHide.emit()
    assert not button.underMouse(), "it would look so until the mouse comes back"


async def test_reading_is_counted(desk: Desk, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    may_read, real = Event(), index_update._read

    def read(path: Path, *others: Any) -> object:
        if path.name == "b.txt":
            may_read.wait()
        return real(path, *others)

    monkeypatch.setattr(index_update, "_read", read)
    await load(desk)
    pick(desk, folder)
    try:
        await desk.until(lambda: shown(desk, folder) == "papers: reading 1 of 2 files")
        assert in_menu(desk, folder) == "papers: reading 1 of 2 files…"
    finally:
        may_read.set()
    await desk.until(lambda: shown(desk, folder) == "papers: 2 files")


async def test_files_that_cannot_be_read_are_named(desk: Desk, folder: Path) -> None:
    (folder / "broken.pdf").write_bytes(b"%PDF-1.4 nothing")
    await load(desk)
    pick(desk, folder)
    await desk.until(lambda: shown(desk, folder) == "papers: 2 files, 1 can't be read")
    desk.click(f"composer.folder.{folder}")
    await desk.until(lambda: desk.is_shown("folder"))
    assert desk.text_of("folder.state") == "2 files with text can be searched. 1 file can't be read."
    [line] = desk.find("folder.problems", QPlainTextEdit).toPlainText().splitlines()
    assert line == "broken.pdf is damaged, empty or not a PDF."

    (folder / "broken.pdf").unlink()
    (folder / "c.txt").write_text("raft")
    desk.click("folder.again")
    await desk.until(lambda: desk.text_of("folder.state") == "3 files with text can be searched.")
    await desk.until(lambda: not desk.is_shown("folder.problems"))
    desk.click("folder.remove")
    await desk.until(lambda: not desk.has(f"composer.folder.{folder}"))
    assert desk.parts.chat.settings.tool_folders == ()


async def test_folder_that_is_gone_says_so(desk: Desk, folder: Path) -> None:
    await load(desk)
    gone = folder / "gone"
    pick(desk, gone)
    await desk.until(lambda: shown(desk, gone) == "gone: can't be read")
    desk.click(f"composer.folder.{gone}")
    await desk.until(lambda: desk.is_shown("folder"))
    assert "The folder can't be reached" in desk.text_of("folder.note")


async def test_folder_is_not_read_while_nothing_may_search_it(desk: Desk, folder: Path) -> None:
    await load(desk)
    pick(desk, folder)
    await desk.until(lambda: shown(desk, folder) == "papers: 2 files")
    choose(desk, "list_files")
    await desk.until(lambda: shown(desk, folder) == "papers")
    desk.click(f"composer.folder.{folder}")
    await desk.until(lambda: desk.is_shown("folder"))
    assert desk.text_of("folder.state") == "It is read when a tool that reads files is on."


async def test_another_chat_shows_its_own_folders(desk: Desk, folder: Path) -> None:
    await load(desk)
    pick(desk, folder)
    await desk.until(lambda: shown(desk, folder) == "papers: 2 files")
    desk.parts.chat.new_chat()
    await desk.until(lambda: not desk.has(f"composer.folder.{folder}"))
    assert not desk.parts.services.folder_indexes.states.value


async def test_incognito_chat_leaves_no_index_on_the_disk(desk: Desk, folder: Path) -> None:
    place = paths.cache_folder() / folder_indexes.FOLDER
    before = await asyncio.to_thread(lambda: set(place.glob("*")))
    desk.parts.chats.sidebar.new_incognito()
    await load(desk)
    pick(desk, folder)
    await desk.until(lambda: shown(desk, folder) == "papers: 2 files")
    assert await asyncio.to_thread(lambda: set(place.glob("*"))) == before


def test_states_in_words() -> None:
    assert folder_text("a", FolderState("/a", "listing")) == "a: looking for files…"
    reading = FolderState("/a", "reading", 0.1, n_seen=120, n_found=400)
    assert folder_text("a", reading) == "a: reading 120 of 400 files"
    assert folder_text("a", FolderState("/a", "ready", n_files=1)) == "a: 1 file"
    assert folder_text("a", FolderState("/a", "ready", n_files=5, n_problems=3)) == "a: 5 files, 3 can't be read"
