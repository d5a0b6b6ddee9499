"""Walks through a picked folder: what lies in it as far as tools may see it. Blocks."""

import os
import stat
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from qwendesk.core.links import is_link
from qwendesk.toolbox.folder_access import FolderAccess, has_hidden_attribute, is_secret

MOST_ENTRIES: Final = 500_000
_LIBRARIES: Final = frozenset({"node_modules", "__pycache__", "site-packages", "bower_components"})
"""Folders with code of others, which would bury the user's own."""
_VIRTUAL_ENVIRONMENT = "pyvenv.cfg"


class FoundFile(msgspec.Struct, frozen=True):
    path: str
    """Below the picked folder, with slashes; "" if the file itself was picked."""
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
        yield from _file(root, "", root.stat())
        return
    waiting, n_left = deque([(root, "")]), MOST_ENTRIES
    while waiting:
        if is_cancelled():
            raise Cancelled
        if n_left <= 0:
            raise TooManyEntries
        place, prefix = waiting.popleft()
        try:
            with os.scandir(place) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError as error:
            if not prefix:
                raise FolderUnreachable(error.strerror or str(error)) from None
            continue
        names = {entry.name for entry in entries}
        if _VIRTUAL_ENVIRONMENT in names:
            continue
        n_left -= len(entries)
        for entry in entries:
            path = f"{prefix}{entry.name}"
            if is_secret(entry.name) or not _is_plain(entry.name):
                continue
            try:
                state = entry.stat(follow_symlinks=False)
                if has_hidden_attribute(state):
                    continue
                if is_link(Path(entry.path)):
                    if access.may_see(Path(entry.path)):
                        yield from _file(Path(entry.path), path, Path(entry.path).stat())
                elif stat.S_ISDIR(state.st_mode):
                    if entry.name not in _LIBRARIES:
                        waiting.append((Path(entry.path), f"{path}/"))
                else:
                    # On Windows, the state of an entry has no size for some files.
                    yield from _file(Path(entry.path), path, Path(entry.path).stat() if os.name == "nt" else state)
            except (OSError, ValueError):
                continue  # it has just been deleted


def _file(place: Path, path: str, state: os.stat_result) -> Iterator[FoundFile]:
    if stat.S_ISREG(state.st_mode):
        yield FoundFile(path, state.st_size, state.st_mtime_ns)


def _is_plain(name: str) -> bool:
    """Return whether a name is text on one line, as it stands in results."""
    return name.isprintable() and not any("\ud800" <= character <= "\udfff" for character in name)
