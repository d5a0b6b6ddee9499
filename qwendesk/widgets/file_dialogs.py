"""Dialogs that ask for a file or folder. Each begins in the folder in which it was used last.

At first that is the user's folder for what is asked for: Downloads for models, Pictures for pictures, Documents for the
rest. All dialogs for models share one folder, because a file and the folder that it is in are asked for by turns. A
folder that doesn't exist is passed over, because Qt would type its name into the dialog's name field.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from PySide6.QtCore import QCoreApplication, QStandardPaths, Qt, QUrl
from PySide6.QtWidgets import QFileDialog, QHeaderView, QSplitter, QToolButton, QTreeView, QWidget

from qwendesk.widgets.icons import icon
from qwendesk.widgets.theme_keeper import current_theme

# What a dialog asks for: "downloads" are other files that come from the internet.
Kind = Literal["models", "downloads", "pictures", "documents"]
_Standard = QStandardPaths.StandardLocation
_FIRST_FOLDERS: dict[Kind, QStandardPaths.StandardLocation] = {
    "models": _Standard.DownloadLocation,
    "downloads": _Standard.DownloadLocation,
    "pictures": _Standard.PicturesLocation,
    "documents": _Standard.DocumentsLocation,
}
# The folders beside the files, where they exist.
_PLACES = (
    _Standard.HomeLocation,
    _Standard.DesktopLocation,
    _Standard.DownloadLocation,
    _Standard.DocumentsLocation,
    _Standard.PicturesLocation,
    _Standard.MoviesLocation,
)
# Property of the QApplication with the folder that was used last in the dialog whose name follows, or for models.
_PROPERTY = "qwendesk_last_folder."


def ask_for_file(
    parent: QWidget,
    name: str,
    title: str,
    filters: Sequence[str],
    chosen: Callable[[str], object],
    *,
    kind: Kind = "documents",
) -> None:
    """Ask for an existing file. `filters` are Qt's name filters; `chosen` gets the path, unless the user cancels."""
    dialog = _dialog(parent, name, title, kind)
    dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
    dialog.setNameFilters(filters)
    dialog.fileSelected.connect(_in_own_form(chosen))
    _open(dialog)


def ask_for_files(
    parent: QWidget, name: str, title: str, filters: Sequence[str], chosen: Callable[[Sequence[str]], object]
) -> None:
    """Ask for one or more existing files, like `ask_for_file`."""
    dialog = _dialog(parent, name, title, "documents")
    dialog.setFileMode(QFileDialog.FileMode.ExistingFiles)
    dialog.setNameFilters(filters)
    dialog.filesSelected.connect(lambda files: chosen([str(Path(file)) for file in files]))
    _open(dialog)


def ask_where_to_save(
    parent: QWidget,
    name: str,
    title: str,
    file_name: str,
    chosen: Callable[[str], object],
    *,
    kind: Kind = "documents",
) -> None:
    """Ask where to write a file, and suggest a name. Its ending is added to a name that has none."""
    dialog = _dialog(parent, name, title, kind)
    dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
    dialog.setDefaultSuffix(Path(file_name).suffix[1:])
    dialog.selectFile(file_name)
    dialog.fileSelected.connect(_in_own_form(chosen))
    _open(dialog)


def ask_for_folder(
    parent: QWidget,
    name: str,
    title: str,
    chosen: Callable[[str], object],
    *,
    kind: Kind = "documents",
    begin_in: str = "",
) -> None:
    """Ask for a folder. The dialog begins in the folder `begin_in`, unless it is ""."""
    dialog = _dialog(parent, name, title, kind, begin_in)
    dialog.setFileMode(QFileDialog.FileMode.Directory)
    dialog.setOption(QFileDialog.Option.ShowDirsOnly)
    dialog.fileSelected.connect(_in_own_form(chosen))
    _open(dialog)


def _dialog(parent: QWidget, name: str, title: str, kind: Kind, begin_in: str = "") -> QFileDialog:
    memory = _PROPERTY + ("models" if kind == "models" else name)
    dialog = QFileDialog(parent, title, _existing_folder(memory, kind, begin_in))
    dialog.setObjectName(name)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.filesSelected.connect(lambda files: _remember(memory, files[0], is_folder=_asks_for_folder(dialog)))
    return dialog


# Icons of the buttons of Qt's own dialog, which is used where the desktop has none.
_ICONS = {"backButton": "left", "forwardButton": "right", "toParentButton": "up", "newFolderButton": "new"}
_WIDTH, _HEIGHT, _PLACES_WIDTH = 860, 540, 160


def _open(dialog: QFileDialog) -> None:
    """Open the dialog. Qt's own gets our icons (its arrows are black on dark), columns that fit, and more folders."""
    for name, drawing in _ICONS.items():
        button = dialog.findChild(QToolButton, name)
        if button is not None:
            button.setIcon(icon(drawing, current_theme()["text"], 16, current_theme()["text_off"]))
    for name in ("listModeButton", "detailModeButton"):
        if (button := dialog.findChild(QToolButton, name)) is not None:
            button.hide()
    files = dialog.findChild(QTreeView, "treeView")
    if files is not None:
        dialog.setViewMode(QFileDialog.ViewMode.Detail)
        dialog.resize(_WIDTH, _HEIGHT)
        header = files.header()
        for column in range(header.count()):
            mode = QHeaderView.ResizeMode.ResizeToContents if column else QHeaderView.ResizeMode.Stretch
            header.setSectionResizeMode(column, mode)
        places = dict.fromkeys(QStandardPaths.writableLocation(place) for place in _PLACES)
        dialog.setSidebarUrls([QUrl.fromLocalFile(place) for place in places if Path(place).is_dir()])
        dialog.findChildren(QSplitter)[0].setSizes([_PLACES_WIDTH, _WIDTH - _PLACES_WIDTH])
    dialog.open()


def _in_own_form(chosen: Callable[[str], object]) -> Callable[[str], object]:
    r"""Return `chosen` for paths as Qt gives them: on Windows C:/models, which is C:\models everywhere else."""
    return lambda path: chosen(str(Path(path)))


def _asks_for_folder(dialog: QFileDialog) -> bool:
    return dialog.fileMode() is QFileDialog.FileMode.Directory


def _remember(memory: str, chosen: str, *, is_folder: bool) -> None:
    app = QCoreApplication.instance()
    if app is not None:
        app.setProperty(memory, chosen if is_folder else str(Path(chosen).parent))


def _existing_folder(memory: str, kind: Kind, wanted: str) -> str:
    """Return the first that exists: `wanted`, the last folder, the user's folder for the kind, the home folder."""
    app = QCoreApplication.instance()
    last = app.property(memory) if app is not None else None
    first = QStandardPaths.writableLocation(_FIRST_FOLDERS[kind])
    folders = (folder for folder in (wanted, last, first) if folder and Path(folder).is_dir())
    return next(folders, str(Path.home()))
