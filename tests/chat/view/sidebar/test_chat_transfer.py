"""Exporting and importing chats from the sidebar."""

from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QDesktopServices
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QFileDialog, QLabel, QWidget

from tests.chat.view.sidebar.chats_desk import ChatsDesk


async def test_a_chat_is_exported_and_imported_again(
    qt_loop: object, chats: ChatsDesk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url.toLocalFile()))
    await chats.ask("One")
    chats.choose("One", "export.json")
    dialog = chats.desk.find("chats.export_dialog", QFileDialog)
    assert Path(dialog.selectedFiles()[0]).name == "One.json"
    dialog.fileSelected.emit(str(tmp_path / "One.json"))
    dialog.close()
    note = chats.desk.find("chats.toast", QWidget).findChild(QLabel)
    await chats.desk.until(lambda: "Exported 1" in note.text())
    assert f"One.json in {tmp_path.name}" in note.text()
    assert not chats.desk.is_shown("chats.undo")
    chats.desk.click("chats.toast.folder")
    assert [Path(each) for each in opened] == [tmp_path]

    chats.view.setCurrentIndex(chats.index("One"))
    QTest.keyClick(chats.view, Qt.Key.Key_Delete)
    await chats.desk.until(lambda: chats.titles == [])
    chats.desk.parts.chats.transfer.ask_import()
    dialog = chats.desk.find("chats.import_dialog", QFileDialog)
    dialog.filesSelected.emit([str(tmp_path / "One.json")])
    dialog.close()
    await chats.desk.until(lambda: chats.titles == ["One"])

    await chats.desk.until(lambda: "Imported 1 chat with 2 messages." in note.text())
    assert not chats.desk.is_shown("chats.toast.folder")


async def test_a_file_that_is_no_export_is_refused(qt_loop: object, chats: ChatsDesk, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text("bad")
    chats.desk.parts.chats.transfer.ask_import()
    dialog = chats.desk.find("chats.import_dialog", QFileDialog)
    dialog.filesSelected.emit([str(tmp_path / "bad.json")])
    dialog.close()

    await chats.desk.until(lambda: chats.desk.is_shown("banner"))

    assert not chats.desk.is_shown("chats.toast")
