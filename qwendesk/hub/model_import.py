"""Imports model files into a models folder: renamed on the same drive, copied and verified from another.

A copy is written under a temporary name, next to a note that identifies its source. It is hashed while it is copied,
read back and compared, and only then renamed. A cancelled import changes nothing; one that was killed is resumed.
"""

import errno
import hashlib
import os
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path, PurePath
from typing import Literal

import msgspec

from qwendesk.core.files import locked, reason_of, write_whole
from qwendesk.core.input_files import open_regular
from qwendesk.core.permissions import create_own, folder_mode, open_own
from qwendesk.core.translation import tr
from qwendesk.core.units import show_bytes
from qwendesk.hub.library import Library, LibraryModel
from qwendesk.hub.model_folders import repo_file

How = Literal["copy", "move"]

_CHUNK_BYTES = 4 * 1024**2
# Free space that an import must leave on the drive.
_SPARE_BYTES = 256 * 1024**2
_TEMPORARY, _NOTE = ".importing", ".importing.json"


class ImportItem(msgspec.Struct, frozen=True):
    """One file and its target. A "move" removes the source."""

    source: str
    target: str
    how: How = "copy"


class Imported(msgspec.Struct, frozen=True):
    """All files are in place."""

    files: tuple[str, ...]
    n_bytes: int
    sha256: tuple[str, ...]
    """SHA-256 of each file as read back; "" for one that was only renamed, or copied by an earlier import."""
    left_behind: tuple[str, ...] = ()
    """Sources of a move that could not be deleted after their verified copy was in place."""


class NotImported(msgspec.Struct, frozen=True):
    """Why nothing was changed."""

    sentence: str
    cancelled: bool = False


class _Stop(Exception):
    """Raised to end an import with this outcome."""

    def __init__(self, outcome: NotImported) -> None:
        super().__init__(outcome.sentence)
        self.outcome = outcome


def import_files(
    items: Sequence[ImportItem],
    cancelled: Callable[[], bool] = lambda: False,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Imported | NotImported:
    """Import all files, or none. Blocks; calls `cancelled` after every 4 MiB.

    `progress` gets the bytes done and the total. Each copied byte counts twice: when it is written, and when it is read
    back. Existing files are never replaced.
    """
    work = _Import(items, cancelled, progress)
    try:
        return work.run()
    except _Stop as stop:
        work.undo()
        return stop.outcome
    except OSError as error:
        work.undo()
        path = Path(str(error.filename or ""))
        if error.errno == errno.ENOSPC:
            return NotImported(tr("The drive is full. Free some space and try again."))
        if not path.name:
            return NotImported(tr("The model couldn't be imported: {0}.", reason_of(error, path)))
        if any(Path(item.target).is_relative_to(path) or path.parent == Path(item.target).parent for item in items):
            folder = path if path.is_dir() else path.parent
            return NotImported(
                tr(
                    "QwenDesk can't write to {0}: {1}. Choose another folder for models, or make this one writable.",
                    folder,
                    reason_of(error, path),
                )
            )
        return NotImported(tr("{0} couldn't be imported: {1}.", path.name, reason_of(error, path)))


class _Import:
    """One running import."""

    def __init__(
        self, items: Sequence[ImportItem], cancelled: Callable[[], bool], progress: Callable[[int, int], None]
    ) -> None:
        self._items = items
        self._cancelled = cancelled
        self._progress = progress
        self._done = self._total = 0
        self._temporary: list[Path] = []
        self._named: list[tuple[Path, Path]] = []
        """Old and new paths of the files renamed so far."""
        self._made: list[Path] = []
        self._finished = {item for item in items if _is_finished(item)}
        """Files that an earlier import had renamed before it was killed."""

    def run(self) -> Imported:
        copied = self._check()
        hashes = {item: self._copy(item) for item in copied if item not in self._finished}
        self._stop_if_cancelled()
        for item in self._items:
            if item not in self._finished:
                target = Path(item.target)
                self._refuse_existing(target)
                self._rename(_with_ending(target, _TEMPORARY) if item in hashes else Path(item.source), target)
        left_behind = [item.source for item in copied if item.how == "move" and not _delete(Path(item.source))]
        for item in copied:
            _delete(_with_ending(Path(item.target), _NOTE))
        return Imported(
            files=tuple(item.target for item in self._items),
            n_bytes=sum(Path(item.target).stat().st_size for item in self._items),
            sha256=tuple(hashes.get(item, "") for item in self._items),
            left_behind=tuple(left_behind),
        )

    def undo(self) -> None:
        """Undo everything. If a drive has disappeared, the next import does the rest."""
        for before, after in reversed(self._named):
            if not before.exists():
                after.rename(before)
        for part in self._temporary:
            _delete(part)
            _delete(_note_of(part))
        for folder in reversed(self._made):
            try:
                folder.rmdir()
            except OSError:
                continue  # another import uses the folder

    def _check(self) -> list[ImportItem]:
        """Return the files to copy; the others are only renamed. Raises _Stop if the import can't succeed."""
        copied: list[ImportItem] = []
        for item in self._items:
            source, target = Path(item.source), Path(item.target)
            if not source.is_file():
                raise _Stop(NotImported(tr("{0} could not be found.", item.source)))
            if item not in self._finished:
                self._refuse_existing(target)
                self._make_folder(target.parent)
            if item.how == "copy" or source.is_symlink() or not _same_drive(source, target.parent):
                copied.append(item)
        sizes = [Path(item.source).stat().st_size for item in copied if item not in self._finished]
        self._total = 2 * sum(sizes)
        if sizes:
            begun = sum(_size_of(_with_ending(Path(item.target), _TEMPORARY)) for item in copied)
            needed = sum(sizes) - begun + _SPARE_BYTES
            short = needed - shutil.disk_usage(Path(copied[0].target).parent).free
            if short > 0:
                raise _Stop(
                    NotImported(tr("There isn't enough space on the drive: {0} more are needed.", show_bytes(short)))
                )
        return copied

    def _copy(self, item: ImportItem) -> str:
        """Make a verified copy under the temporary name and return its SHA-256."""
        with locked(Path(item.target)) as is_ours:
            if not is_ours:
                sentence = tr(
                    "{0} is already being imported, perhaps by another QwenDesk window.", Path(item.target).name
                )
                raise _Stop(NotImported(sentence))
            return self._copy_locked(Path(item.source), _with_ending(Path(item.target), _TEMPORARY))

    def _copy_locked(self, source: Path, part: Path) -> str:
        status = source.stat()
        note = _note(source)
        self._temporary.append(part)
        if _content_of(_note_of(part)) != note or not part.exists():
            create_own(part).close()
            write_whole(_note_of(part), note)
        is_continued = _size_of(part) > 0
        wanted = self._write(source, part)
        found = self._read_back(part)
        if found != wanted and is_continued:
            # Bytes of an import that was killed may not have reached the drive.
            self._total += 2 * status.st_size
            create_own(part).close()
            wanted = self._write(source, part)
            found = self._read_back(part)
        if _note(source) != note:
            raise _Stop(NotImported(tr("{0} changed while it was copied. Try again.", source.name)))
        if found != wanted:
            sentence = tr("The copy of {0} differs from it. A drive or the memory may be faulty.", source.name)
            raise _Stop(NotImported(sentence))
        return found

    def _write(self, source: Path, part: Path) -> str:
        """Append the missing bytes to `part` and return the SHA-256 of the whole source."""
        digest = hashlib.sha256()
        with open_regular(source) as reading, open_own(part) as writing:
            begun = writing.seek(0, os.SEEK_END)
            position = 0
            while chunk := reading.read(_CHUNK_BYTES):
                digest.update(chunk)
                writing.write(chunk[max(0, begun - position) :])
                position += len(chunk)
                self._advance(len(chunk))
            writing.flush()
            os.fsync(writing.fileno())
            _forget_cached(writing.fileno())
        return digest.hexdigest()

    def _read_back(self, part: Path) -> str:
        digest = hashlib.sha256()
        with part.open("rb") as reading:
            while chunk := reading.read(_CHUNK_BYTES):
                digest.update(chunk)
                self._advance(len(chunk))
        return digest.hexdigest()

    def _advance(self, n_bytes: int) -> None:
        self._done += n_bytes
        self._progress(self._done, self._total)
        self._stop_if_cancelled()

    def _stop_if_cancelled(self) -> None:
        if self._cancelled():
            raise _Stop(NotImported(tr("The import was cancelled. Nothing was changed."), cancelled=True))

    def _rename(self, before: Path, after: Path) -> None:
        before.rename(after)
        self._named.append((before, after))

    def _make_folder(self, folder: Path) -> None:
        missing = [each for each in (folder, *folder.parents) if not each.exists()]
        for each in reversed(missing):
            each.mkdir(mode=folder_mode(each), exist_ok=True)
            self._made.append(each)

    def _refuse_existing(self, target: Path) -> None:
        if target.exists():
            raise _Stop(NotImported(tr("{0} already exists. Delete it first to replace it.", target)))


def _same_drive(source: Path, folder: Path) -> bool:
    return source.stat().st_dev == folder.stat().st_dev


def _is_finished(item: ImportItem) -> bool:
    """Return True if an import had verified and renamed this file before it was killed: its note still exists."""
    source, target = Path(item.source), Path(item.target)
    is_named = target.exists() and source.exists() and not _with_ending(target, _TEMPORARY).exists()
    return is_named and _content_of(_with_ending(target, _NOTE)) == _note(source)


def _with_ending(target: Path, ending: str) -> Path:
    return target.with_name(target.name + ending)


def _note(source: Path) -> bytes:
    """Return the note that identifies the current state of `source`: its path, size and modification time."""
    status = source.stat()
    return msgspec.json.encode((os.fsencode(source.absolute()), status.st_size, status.st_mtime_ns))


def _note_of(part: Path) -> Path:
    return part.with_name(part.name.removesuffix(_TEMPORARY) + _NOTE)


def _size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _content_of(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def _delete(path: Path) -> bool:
    """Delete the file. Return True if it doesn't exist any more."""
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return False
    return True


def _forget_cached(descriptor: int) -> None:
    """Drop the file from the system's cache on Linux, so that reading back reads from the drive."""
    if sys.platform == "linux":
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)


# Folder used in place of the owner's if the repository is unknown.
_NO_REPOSITORY = "imported"
_NOT_IN_NAMES = re.compile(r"[\x00-\x1f<>:\"/\\|?*]+")


def import_plan(model: LibraryModel, library: Library, models: Path, how: How) -> tuple[ImportItem, ...]:
    """Return the files of `model` and its mmproj with their targets in the models folder `models`.

    An mmproj that other models use is copied even if the model is moved. Files that are already at their target are
    left out. Raises QwenDeskError for a name that can't be used.
    """
    name = _allowed_name(model.name)
    repo = model.repo or f"{_NO_REPOSITORY}/{name}"
    inside = PurePath(model.repo_path).parent.as_posix() if model.repo_path else "."
    prefix = "" if inside == "." else f"{inside}/"
    pairs = [(file.path, prefix + _file_name(file.path, name), how) for file in model.files]
    mmproj = model.mmproj
    if mmproj is not None:
        quant = mmproj.facts.quant if mmproj.facts is not None else ""
        own_name = _file_name(mmproj.path, f"mmproj-{quant or name}")
        pairs.append((mmproj.path, own_name, how if _is_used_alone(model, mmproj, library) else "copy"))
    items = [ImportItem(source, str(repo_file(models, repo, path)), each_how) for source, path, each_how in pairs]
    return tuple(item for item in items if PurePath(item.source) != PurePath(item.target))


def _is_used_alone(model: LibraryModel, mmproj: LibraryModel, library: Library) -> bool:
    users = {each.path for each in library.models if each.mmproj is not None and each.mmproj.path == mmproj.path}
    is_nearby = PurePath(mmproj.path).parent == PurePath(model.path).parent
    return is_nearby and users <= {model.path}


def _file_name(path: str, otherwise: str) -> str:
    """Return the file's own name, or `otherwise` for Ollama's blobs, which have none."""
    name = PurePath(path).name
    return name if name.lower().endswith(".gguf") else f"{otherwise}.gguf"


def _allowed_name(name: str) -> str:
    return _NOT_IN_NAMES.sub("-", name).strip(". ") or "model"
