"""File dialogs begin in the user's folder for what they ask for, and then where each of them was last."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QStandardPaths
from PySide6.QtWidgets import QApplication, QFileDialog, QLineEdit, QPushButton, QToolButton, QTreeView, QWidget

from qwendesk.widgets.file_dialogs import ask_for_file, ask_for_folder, ask_where_to_save
from qwendesk.widgets.theme_keeper import ThemeKeeper, current_theme


@pytest.fixture
def holder(app: QApplication, keeper: ThemeKeeper) -> Iterator[QWidget]:
    app.setProperty("qwendesk_last_folder.file", None)
    holder = QWidget()
    holder.show()
    yield holder
    holder.deleteLater()
    app.setProperty("qwendesk_last_folder.file", None)


def opened(holder: QWidget, name: str) -> QFileDialog:
    dialog = holder.findChild(QFileDialog, name)
    assert dialog is not None
    return dialog


def test_dialogs_begin_in_documents_and_then_in_the_last_folder(holder: QWidget, tmp_path: Path) -> None:
    documents = Path(QStandardPaths.writableLocation(QStandardPaths.StandardLocation.DocumentsLocation))
    documents.mkdir(parents=True, exist_ok=True)
    chosen: list[str] = []
    (tmp_path / "chats.json").write_text("")
    ask_for_file(holder, "file", "Import", ["All files (*)"], chosen.append)
    dialog = opened(holder, "file")
    assert Path(dialog.directory().path()) == documents

    dialog.setDirectory(str(tmp_path))
    dialog.selectFile("chats.json")
    dialog.accept()
    assert chosen == [str(tmp_path / "chats.json")]

    ask_for_file(holder, "file", "Import", ["All files (*)"], chosen.append)
    again = holder.findChildren(QFileDialog, "file")[-1]
    assert Path(again.directory().path()) == tmp_path
    again.reject()
    ask_where_to_save(holder, "save", "Export", "presets.json", chosen.append)
    saving = opened(holder, "save")
    assert Path(saving.directory().path()) == documents, "another task has another folder"
    assert [Path(file) for file in saving.selectedFiles()] == [documents / "presets.json"]
    saving.reject()


def test_missing_folder_is_not_typed_into_the_name_field(
    holder: QWidget, app: QApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = str(tmp_path / "missing")
    monkeypatch.setattr(QStandardPaths, "writableLocation", lambda _kind: missing)
    app.setProperty("qwendesk_last_folder.file", missing)
    ask_for_file(holder, "file", "Attach", ["All files (*)"], lambda _file: None)
    dialog = opened(holder, "file")
    name = dialog.findChild(QLineEdit, "fileNameEdit")
    assert name is not None
    assert name.text() == ""
    assert Path(dialog.directory().path()) == Path.home()


def test_dialogs_for_models_begin_in_downloads_and_share_their_last_folder(
    holder: QWidget, app: QApplication, tmp_path: Path
) -> None:
    app.setProperty("qwendesk_last_folder.models", None)
    downloads = Path(QStandardPaths.writableLocation(QStandardPaths.StandardLocation.DownloadLocation))
    downloads.mkdir(parents=True, exist_ok=True)
    (tmp_path / "a.gguf").write_text("")
    ask_for_file(holder, "model", "Model", ["All files (*)"], lambda _file: None, kind="models")
    dialog = opened(holder, "model")
    assert Path(dialog.directory().path()) == downloads

    dialog.setDirectory(str(tmp_path))
    dialog.selectFile("a.gguf")
    dialog.accept()
    ask_for_folder(holder, "models_folder", "Models", lambda _folder: None, kind="models")
    folder = opened(holder, "models_folder")
    assert Path(folder.directory().path()) == tmp_path
    folder.reject()
    ask_for_file(holder, "pack", "Engine", ["All files (*)"], lambda _file: None, kind="downloads")
    pack = opened(holder, "pack")
    assert Path(pack.directory().path()) == downloads, "an engine isn't a model"
    pack.reject()
    app.setProperty("qwendesk_last_folder.models", None)


def test_a_folder_that_a_dialog_is_about_comes_first(holder: QWidget, tmp_path: Path) -> None:
    ask_for_folder(holder, "folder", "Models", lambda _folder: None, begin_in=str(tmp_path))
    assert Path(opened(holder, "folder").directory().path()) == tmp_path


def test_nothing_is_cut_in_qts_own_dialog_and_its_arrows_are_seen(holder: QWidget, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.gguf").write_bytes(bytes(193_000))
    ask_for_folder(holder, "columns", "Models", lambda _folder: None, begin_in=str(tmp_path))
    dialog = opened(holder, "columns")
    arrow, files = dialog.findChild(QToolButton, "toParentButton"), dialog.findChild(QTreeView, "treeView")
    assert arrow is not None
    assert files is not None
    drawn = arrow.icon().pixmap(16, 16).toImage()
    colours = {drawn.pixelColor(x, y).name() for x in range(16) for y in range(16) if drawn.pixelColor(x, y).alpha()}
    assert current_theme().color("text").name() in colours
    assert all(button.icon().isNull() for button in dialog.findChildren(QPushButton)), "as on our own buttons"
    header = files.header()
    for column in range(1, header.count()):
        assert header.sectionSize(column) >= files.sizeHintForColumn(column)
    dialog.reject()


def test_qts_own_dialog_lists_the_folders_of_the_user(holder: QWidget) -> None:
    locations = QStandardPaths.StandardLocation
    documents, home = (
        Path(QStandardPaths.writableLocation(each)) for each in (locations.DocumentsLocation, locations.HomeLocation)
    )
    documents.mkdir(parents=True, exist_ok=True)
    ask_for_file(holder, "file", "Import", ["All files (*)"], lambda _path: None)
    dialog = opened(holder, "file")
    listed = [Path(url.toLocalFile()) for url in dialog.sidebarUrls()]
    assert listed[0] == home
    assert documents in listed
    assert len(set(listed)) == len(listed)
    assert all(folder.is_dir() for folder in listed)
    dialog.close()
