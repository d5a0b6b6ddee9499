"""Bringing model files into a folder of ours: moved on the same drive, copied and verified from another.

A copy is written under another name with a note beside it, hashed while it is read, read back and compared, and only
then named as it should be. A cancelled import leaves everything as it was; one that died goes on where it stopped.
"""

import errno
import hashlib
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from qwendesk.core.file_lock import locked
from qwendesk.core.files import write_whole
from qwendesk.core.units import show_bytes

How = Literal["copy", "move"]

_CHUNK_BYTES = 4 * 1024**2
_SPARE_BYTES = 256 * 1024**2
"""Left free on the drive."""
_PART, _NOTE = ".importing", ".importing.json"


class ImportItem(msgspec.Struct, frozen=True):
    """One file, and where it is to be. `how` "move": the source is gone afterwards."""

    source: str
    target: str
    how: How = "copy"


class Imported(msgspec.Struct, frozen=True):
    """All files are in place."""

    files: tuple[str, ...]
    n_bytes: int
    sha256: tuple[str, ...]
    """Of each file, as read back from the target; "" for one that was only renamed, or copied by an import before."""
    left_behind: tuple[str, ...] = ()
    """Sources of a move that could not be deleted after their verified copy was in place."""


class NotImported(msgspec.Struct, frozen=True):
    """Nothing changed, and why."""

    sentence: str
    cancelled: bool = False


class _Stop(Exception):
    """Ends an import; carries what to tell."""

    def __init__(self, outcome: NotImported) -> None:
        super().__init__(outcome.sentence)
        self.outcome = outcome


def import_files(
    items: Sequence[ImportItem],
    cancelled: Callable[[], bool] = lambda: False,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> Imported | NotImported:
    """Brings all files in place, or none. Blocks; `cancelled` is asked between pieces of 4 MiB.

    `progress` gets bytes done and bytes in all; each copied byte counts twice, once written and once read back.
    Never replaces a file that exists.
    """
    work = _Import(items, cancelled, progress)
    try:
        return work.run()
    except _Stop as stop:
        work.undo()
        return stop.outcome
    except OSError as error:
        work.undo()
        name = Path(str(error.filename)).name if error.filename else "A file"
        if error.errno == errno.ENOSPC:
            return NotImported("The drive is full. Free some space and try again.")
        return NotImported(f"{name} could not be imported: {error.strerror or error}.")


class _Import:
    """One import under way."""

    def __init__(
        self, items: Sequence[ImportItem], cancelled: Callable[[], bool], progress: Callable[[int, int], None]
    ) -> None:
        self._items = items
        self._cancelled = cancelled
        self._progress = progress
        self._done = self._total = 0
        self._parts: list[Path] = []
        self._named: list[tuple[Path, Path]] = []
        """What was renamed so far: from, to."""
        self._made: list[Path] = []
        self._finished = {item for item in items if _is_finished(item)}
        """Left by an import that died between two names."""

    def run(self) -> Imported:
        copied = self._check()
        hashes = {item: self._copy(item) for item in copied if item not in self._finished}
        self._stop_if_cancelled()
        for item in self._items:
            if item not in self._finished:
                target = Path(item.target)
                self._refuse_existing(target)
                self._rename(_beside(target, _PART) if item in hashes else Path(item.source), target)
        left_behind = [item.source for item in copied if item.how == "move" and not _delete(Path(item.source))]
        for item in copied:
            _delete(_beside(Path(item.target), _NOTE))
        return Imported(
            files=tuple(item.target for item in self._items),
            n_bytes=sum(Path(item.target).stat().st_size for item in self._items),
            sha256=tuple(hashes.get(item, "") for item in self._items),
            left_behind=tuple(left_behind),
        )

    def undo(self) -> None:
        """As if it had never begun. What cannot be undone any more (a drive is gone) is found by the next import."""
        for before, after in reversed(self._named):
            if not before.exists():
                after.rename(before)
        for part in self._parts:
            _delete(part)
            _delete(_note_of(part))
        for folder in reversed(self._made):
            try:
                folder.rmdir()
            except OSError:
                continue  # another import put something there

    def _check(self) -> list[ImportItem]:
        """Which files are copied; the others are only renamed. Stops when it cannot end well."""
        copied: list[ImportItem] = []
        for item in self._items:
            source, target = Path(item.source), Path(item.target)
            if not source.is_file():
                raise _Stop(NotImported(f"There is no file {item.source}."))
            if item not in self._finished:
                self._refuse_existing(target)
                self._make_folder(target.parent)
            if item.how == "copy" or source.is_symlink() or not _same_drive(source, target.parent):
                copied.append(item)
        sizes = [Path(item.source).stat().st_size for item in copied if item not in self._finished]
        self._total = 2 * sum(sizes)
        if sizes:
            begun = sum(_size_of(_beside(Path(item.target), _PART)) for item in copied)
            needed = sum(sizes) - begun + _SPARE_BYTES
            short = needed - shutil.disk_usage(Path(copied[0].target).parent).free
            if short > 0:
                raise _Stop(NotImported(f"The drive has {show_bytes(short)} too little free space for this copy."))
        return copied

    def _copy(self, item: ImportItem) -> str:
        """A verified copy under the name of a part; its SHA-256."""
        with locked(Path(item.target)) as is_ours:
            if not is_ours:
                sentence = f"{Path(item.target).name} is being written already, perhaps by another window of QwenDesk."
                raise _Stop(NotImported(sentence))
            return self._copy_locked(Path(item.source), _beside(Path(item.target), _PART))

    def _copy_locked(self, source: Path, part: Path) -> str:
        status = source.stat()
        note = _note(source)
        self._parts.append(part)
        if _content_of(_note_of(part)) != note:
            part.write_bytes(b"")
            write_whole(_note_of(part), note)
        is_continued = _size_of(part) > 0
        wanted = self._write(source, part)
        found = self._read_back(part)
        if found != wanted and is_continued:
            # What an import that died had written may not have reached the drive.
            self._total += 2 * status.st_size
            part.write_bytes(b"")
            wanted = self._write(source, part)
            found = self._read_back(part)
        if _note(source) != note:
            raise _Stop(NotImported(f"{source.name} changed while it was copied. Try again."))
        if found != wanted:
            sentence = f"The copy of {source.name} differs from it: one of the two drives, or the memory, has a fault."
            raise _Stop(NotImported(sentence))
        return found

    def _write(self, source: Path, part: Path) -> str:
        """Appends to `part` what it lacks; the SHA-256 of the whole source."""
        digest = hashlib.sha256()
        begun = _size_of(part)
        with source.open("rb") as reading, part.open("ab") as writing:
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
            raise _Stop(NotImported("The import was cancelled; everything is as it was.", cancelled=True))

    def _rename(self, before: Path, after: Path) -> None:
        before.rename(after)
        self._named.append((before, after))

    def _make_folder(self, folder: Path) -> None:
        missing = [each for each in (folder, *folder.parents) if not each.exists()]
        for each in reversed(missing):
            each.mkdir(exist_ok=True)
            self._made.append(each)

    def _refuse_existing(self, target: Path) -> None:
        if target.exists():
            raise _Stop(NotImported(f"{target} exists already. Delete it first, or keep it: nothing was changed."))


def _same_drive(source: Path, folder: Path) -> bool:
    return source.stat().st_dev == folder.stat().st_dev


def _is_finished(item: ImportItem) -> bool:
    """An import that died had verified and named this one already: its note still lies beside it."""
    source, target = Path(item.source), Path(item.target)
    is_named = target.exists() and source.exists() and not _beside(target, _PART).exists()
    return is_named and _content_of(_beside(target, _NOTE)) == _note(source)


def _beside(target: Path, ending: str) -> Path:
    return target.with_name(target.name + ending)


def _note(source: Path) -> bytes:
    """What tells whether a half copy is a copy of `source` as it is now."""
    status = source.stat()
    return msgspec.json.encode((str(source.absolute()), status.st_size, status.st_mtime_ns))


def _note_of(part: Path) -> Path:
    return part.with_name(part.name.removesuffix(_PART) + _NOTE)


def _size_of(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _content_of(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def _delete(path: Path) -> bool:
    """Whether it is gone now."""
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return False
    return True


def _forget_cached(descriptor: int) -> None:
    """So that reading back reads the drive and not the memory, where the system can be asked for that."""
    if sys.platform == "linux":
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
