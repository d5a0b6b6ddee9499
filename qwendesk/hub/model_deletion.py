"""Deletes models, permanently or to the system's trash; lists the files and their size first."""

import logging
import sys
from pathlib import Path

import msgspec

from qwendesk.core.files import is_in_use
from qwendesk.core.translation import tr
from qwendesk.hub.library import Library, LibraryFile, LibraryModel
from qwendesk.hub.library_places import ORIGIN_NAMES

_logger = logging.getLogger(__name__)


class ModelDeletion(msgspec.Struct, frozen=True):
    """The files that would be deleted, for the user to confirm."""

    name: str
    files: tuple[LibraryFile, ...]
    place: str
    """The searched folder. Empty folders between it and the files are deleted too."""

    @property
    def n_bytes(self) -> int:
        return sum(file.n_bytes for file in self.files)


class DeletedFiles(msgspec.Struct, frozen=True):
    n_bytes: int
    in_trash: bool


class DeletionFailure(msgspec.Struct, frozen=True):
    """Why something was not deleted."""

    sentence: str
    trash_failed: bool = False
    """Moving to the trash failed. Permanent deletion may still be offered."""


def _companions(model: LibraryModel) -> set[str]:
    return {each.path for each in (model.mmproj, model.draft_head) if each is not None}


def deletion_of(model: LibraryModel, library: Library) -> ModelDeletion | DeletionFailure:
    """Return all files of `model`, with the mmproj and the draft head in its folder if no other model uses them.

    Files of other apps are never deleted.
    """
    if not model.writable:
        app = tr(ORIGIN_NAMES[model.origin])
        return DeletionFailure(
            tr("{0} belongs to {1}. Delete it there, as QwenDesk never changes other apps' files.", model.name, app)
        )
    files = model.files
    for companion in (model.mmproj, model.draft_head):
        if companion is None or not companion.writable or Path(companion.path).parent != Path(model.path).parent:
            continue
        users = [each for each in library.models if companion.path in _companions(each)]
        if all(each.path == model.path for each in users):
            files += companion.files
    return ModelDeletion(model.name, files, model.place)


def delete(deletion: ModelDeletion, *, permanently: bool) -> DeletedFiles | DeletionFailure:
    """Move the files to the trash, or delete them permanently. Missing files are ignored. Blocks."""
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
            return DeletionFailure(_failure_sentence(path, error, permanently), not permanently)
        gone += file.n_bytes
    _remove_empty_folders(deletion)
    return DeletedFiles(gone, in_trash=not permanently)


def _failure_sentence(path: Path, error: OSError, permanently: bool) -> str:
    reason = error.strerror or str(error)
    if permanently and is_in_use(error, path):
        return tr("{0} is in use, probably by the loaded model. Eject the model, then try again.", path.name)
    if permanently:
        return tr("{0} couldn't be deleted: {1}.", path.name, reason)
    return tr(
        "{0} couldn't be moved to the trash: {1}. It may be in use, or too large for the trash of its drive.",
        path.name,
        reason,
    )


def _to_trash(path: Path) -> None:
    """Move a file to the trash. Raises OSError if that fails; the file is then kept."""
    # Imported here because the import chooses the kind of trash, and loads a desktop library on some systems.
    if sys.platform == "win32":
        # This module, because without pywin32 send2trash falls back to a call that permanently deletes large files.
        try:
            from send2trash.win.modern import send2trash  # noqa: PLC0415
        except ImportError as error:
            raise OSError(tr("pywin32 is missing. Install QwenDesk again")) from error
    else:
        from send2trash import send2trash  # noqa: PLC0415

    send2trash(path)


def _remove_empty_folders(deletion: ModelDeletion) -> None:
    place = Path(deletion.place)
    for folder in {Path(file.path).parent for file in deletion.files}:
        for each in (folder, *folder.parents):
            if each == place or not each.is_relative_to(place):
                break
            try:
                each.rmdir()
            except OSError:
                break  # it is not empty
