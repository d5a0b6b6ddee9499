"""Brings the index of a folder up to date: walks through it and reads what has changed. Blocks."""

import os
import stat
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from qwendesk.core.units import MIB
from qwendesk.toolbox.folder_access import FolderAccess, has_hidden_attribute, is_secret
from qwendesk.toolbox.knowledge.file_texts import NoText, UnreadableFile, read_parts
from qwendesk.toolbox.knowledge.index_file import IndexedFile, IndexFile, Passage, passages
from qwendesk.toolbox.shown_text import from_codes, on_one_line

MOST_ENTRIES: Final = 500_000
# Folders with code of others, which would bury the user's own.
_LIBRARIES: Final = frozenset({"node_modules", "__pycache__", "site-packages", "bower_components"})
_VIRTUAL_ENVIRONMENT = "pyvenv.cfg"


class FoundFile(msgspec.Struct, frozen=True):
    path: str
    """Below the picked folder, with slashes, as `on_one_line` shows it; "" if the file itself was picked."""
    size_bytes: int
    mtime_ns: int


class FolderUnreachable(Exception):
    """The folder itself can't be listed. The text is the system's reason."""


class TooManyEntries(Exception):
    """The folder has more entries than are walked through."""


class Cancelled(Exception):
    """The work was cancelled."""


def walk(folder: Path, is_cancelled: Callable[[], bool]) -> Iterator[FoundFile]:
    """Yield the files that tools may see, those near the top first.

    Links to files are followed if they lead to a place in the folder, links to folders never are. Raises
    FolderUnreachable and Cancelled, and TooManyEntries after MOST_ENTRIES.
    """
    access = FolderAccess([str(folder)])
    root = folder.resolve()
    if root.is_file():
        yield from _file("", root.stat())
        return
    waiting, n_left = deque([(root, "")]), MOST_ENTRIES
    while waiting:
        if is_cancelled():
            raise Cancelled
        if n_left <= 0:
            raise TooManyEntries
        place, prefix = waiting.popleft()
        try:
            entries = sorted(access.entries(place), key=lambda entry: entry.name)
        except OSError as error:
            if not prefix:
                raise FolderUnreachable(error.strerror or str(error)) from None
            continue
        names = {entry.name for entry in entries}
        if _VIRTUAL_ENVIRONMENT in names:
            continue
        n_left -= len(entries)
        for entry in entries:
            path = f"{prefix}{on_one_line(entry.name)}"
            if is_secret(entry.name):
                continue
            if has_hidden_attribute(entry.state):
                continue
            inside, state = place / entry.name, entry.state
            try:
                if entry.is_link:
                    if access.may_see(inside):
                        yield from _file(path, inside.stat())
                elif stat.S_ISDIR(state.st_mode):
                    if entry.name not in _LIBRARIES:
                        waiting.append((inside, f"{path}/"))
                else:
                    # On Windows, the state of an entry has no size for some files.
                    yield from _file(path, inside.stat() if os.name == "nt" else state)
            except (OSError, ValueError):
                continue  # it has just been deleted


def _file(path: str, state: os.stat_result) -> Iterator[FoundFile]:
    if stat.S_ISREG(state.st_mode):
        yield FoundFile(path, state.st_size, state.st_mtime_ns)


# With text, in one folder.
MOST_FILES: Final = 20_000
# Of all texts of one folder together; the index takes two to three times as much of the disk.
MOST_CHARACTERS: Final = 256 * MIB
_BATCH_CHARACTERS: Final = 1 * MIB
_BATCH_S: Final = 1.0
# A file that was changed less than this long ago may change again without a new time: file systems count in steps of up
# to 2 s.
_SETTLED_NS: Final = 2_000_000_000
_UNSETTLED: Final = -1


class IndexProgress(msgspec.Struct, frozen=True):
    """How far an update is; `total` is 0 while the folder is listed."""

    done: int = 0
    total: int = 0
    """Bytes of the files that are new or have changed."""
    n_seen: int = 0
    n_found: int = 0
    """Files, with those that have not changed."""


class IndexLimits(msgspec.Struct, frozen=True):
    files: int = MOST_FILES
    characters: int = MOST_CHARACTERS


DEFAULT_LIMITS: Final = IndexLimits()


def update_index(
    index: IndexFile,
    folder: Path,
    is_cancelled: Callable[[], bool] = lambda: False,
    report: Callable[[IndexProgress], None] = lambda _progress: None,
    limits: IndexLimits = DEFAULT_LIMITS,
) -> bool:
    """Read what is new or changed in `folder`, and forget what is gone. Return False if not all of it is indexed.

    Raises FolderUnreachable, Cancelled, OSError and sqlite3.Error; what was read until then stays in the index.
    """
    report(IndexProgress())
    known, is_all = index.stamps(), True
    found: list[FoundFile] = []
    try:
        for file in walk(folder, is_cancelled):
            found.append(file)  # noqa: PERF402 - what was found before an exception is kept
    except TooManyEntries:
        is_all = False
    index.remove(known.keys() - {file.path for file in found})
    changed = [file for file in found if known.get(file.path) != (file.size_bytes, file.mtime_ns)]
    n_files, n_characters, _ = index.counts()
    done, total = 0, sum(file.size_bytes for file in changed) or 1
    access, batch = FolderAccess([str(folder)]), _FileBatch(index)
    try:
        for n_seen, file in enumerate(changed, len(found) - len(changed) + 1):
            if is_cancelled():
                raise Cancelled
            if file.path not in known and (n_files >= limits.files or n_characters >= limits.characters):
                is_all = False
                continue
            path = folder / from_codes(file.path)
            # What was a file when the folder was listed may be a link to somewhere else by now.
            if access.may_see(path):
                read = _read(path, file, access, is_cancelled)
                if is_cancelled():
                    raise Cancelled
                n_files += bool(read.passages) and file.path not in known
                n_characters += sum(len(passage.text) for passage in read.passages)
                batch.add(read)
            done += file.size_bytes
            report(IndexProgress(done, total, n_seen, len(found)))
    finally:
        batch.write()
    return is_all


class _FileBatch:
    """Files that are written together, because each transaction waits for the disk."""

    def __init__(self, index: IndexFile) -> None:
        self._index = index
        self._files: list[IndexedFile] = []
        self._n_characters, self._began_s = 0, time.monotonic()

    def add(self, file: IndexedFile) -> None:
        self._files.append(file)
        self._n_characters += sum(len(passage.text) for passage in file.passages)
        if self._n_characters >= _BATCH_CHARACTERS or time.monotonic() - self._began_s > _BATCH_S:
            self.write()

    def write(self) -> None:
        files, self._files = self._files, []
        self._n_characters, self._began_s = 0, time.monotonic()
        if files:
            self._index.replace(files)


def _read(path: Path, file: FoundFile, access: FolderAccess, is_cancelled: Callable[[], bool]) -> IndexedFile:
    try:
        state = path.stat()
        stamp = (state.st_size, state.st_mtime_ns)
    except OSError:
        stamp = (file.size_bytes, _UNSETTLED)
    if abs(time.time_ns() - stamp[1]) < _SETTLED_NS:
        stamp = (stamp[0], _UNSETTLED)
    try:
        found = tuple(_passages(path, access, is_cancelled))
    except NoText:
        return IndexedFile(file.path, *stamp)
    except UnreadableFile as error:
        return IndexedFile(file.path, *stamp, problem=str(error))
    return IndexedFile(file.path, *stamp, passages=found)


def _passages(path: Path, access: FolderAccess, is_cancelled: Callable[[], bool]) -> Iterator[Passage]:
    for part in read_parts(path, access.open, is_cancelled):
        yield from passages(part.lines, part.at, part.name)
