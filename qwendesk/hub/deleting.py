"""Deleting models: says what goes and how much that frees, and uses the system's trash."""

import logging
import sys
from pathlib import Path

import msgspec

from qwendesk.core.files import is_in_use
from qwendesk.hub.library import Library, LibraryFile, LibraryModel
from qwendesk.hub.library_places import ORIGIN_NAMES

_logger = logging.getLogger(__name__)


class Deletion(msgspec.Struct, frozen=True):
    """What would go, for people to agree to."""

    name: str
    files: tuple[LibraryFile, ...]
    place: str
    """Folders of ours between here and the files go too when nothing is left in them."""

    @property
    def n_bytes(self) -> int:
        return sum(file.n_bytes for file in self.files)


class Deleted(msgspec.Struct, frozen=True):
    n_bytes: int
    in_trash: bool


class NotDeleted(msgspec.Struct, frozen=True):
    """Why something is still there."""

    sentence: str
    trash_failed: bool = False
    """The trash could not take it: deleting for good may still be offered."""
    n_bytes_gone: int = 0
    """Of files that went before this happened."""


def deletion_of(model: LibraryModel, library: Library) -> Deletion | NotDeleted:
    """All files of `model`, and its picture file when it lies beside it and no other model uses it.

    What belongs to another app is never deleted.
    """
    if not model.writable:
        app = ORIGIN_NAMES[model.origin]
        return NotDeleted(f"{model.name} belongs to {app}. Delete it there: QwenDesk changes no other app's files.")
    files = model.files
    pictures = model.mmproj
    if pictures is not None and pictures.writable and Path(pictures.path).parent == Path(model.path).parent:
        users = [each for each in library.models if each.mmproj is not None and each.mmproj.path == pictures.path]
        if all(each.path == model.path for each in users):
            files += pictures.files
    return Deletion(model.name, files, model.place)


def delete(deletion: Deletion, *, permanently: bool) -> Deleted | NotDeleted:
    """Puts the files in the trash, or deletes them for good. A file that is gone already does not matter. Blocks."""
    gone = 0
    for file in deletion.files:
        path = Path(file.path)
        try:
            if permanently:
                path.unlink(missing_ok=True)
            elif path.exists():
                _to_trash(path)
        except OSError as error:
            _logger.info("%s could not be deleted: %s", path, error)
            return NotDeleted(_why(path, error, permanently), not permanently, gone)
        gone += file.n_bytes
    _remove_empty_folders(deletion)
    return Deleted(gone, in_trash=not permanently)


def _why(path: Path, error: OSError, permanently: bool) -> str:
    reason = error.strerror or str(error)
    if permanently and is_in_use(error, path):
        return f"{path.name} is in use, probably by the model that is loaded. Eject the model, then delete it again."
    if permanently:
        return f"{path.name} could not be deleted: {reason}."
    return f"The trash did not take {path.name}: {reason}. It may be in use, or too large for the trash of its drive."


def _to_trash(path: Path) -> None:
    """Raises OSError when the trash does not take it: then the file is where it was."""
    # Where the trash is, is decided when this is imported, and on some systems a desktop library comes with it.
    if sys.platform == "win32":
        # By name: without pywin32 the package would take a call with which Windows destroys what is too large.
        try:
            from send2trash.win.modern import send2trash  # noqa: PLC0415
        except ImportError as error:
            raise OSError("pywin32 is missing, so install QwenDesk again") from error
    else:
        from send2trash import send2trash  # noqa: PLC0415

    send2trash(path)


def _remove_empty_folders(deletion: Deletion) -> None:
    place = Path(deletion.place)
    for folder in {Path(file.path).parent for file in deletion.files}:
        for each in (folder, *folder.parents):
            if each == place or not each.is_relative_to(place):
                break
            try:
                each.rmdir()
            except OSError:
                break  # something else lies in it
