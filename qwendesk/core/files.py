"""Reads, writes and locks the app's small files. A crash or power loss leaves either the old or the new content."""

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import sleep, time_ns
from typing import TypeVar

from qwendesk.core import paths
from qwendesk.core.permissions import create_own, make_folder
from qwendesk.core.translation import tr


@contextmanager
def locked(path: Path, timeout_s: float = 0.0) -> Iterator[bool]:
    """Lock `path` until the end of the block; yield False if it is still locked elsewhere after `timeout_s`.

    The lock is a file next to `path` with ".lock" added to its name. The system releases it when the process ends,
    even if it crashes. Raises OSError if the lock file cannot be created.
    """
    from filelock import FileLock, Timeout  # noqa: PLC0415 - takes a while, and the window opens without a lock

    # The lock is not thread-local because the block may end on another thread than it began on.
    mode = 0o600 if paths.is_own(path) else 0o644
    lock = FileLock(path.with_name(f"{path.name}.lock"), mode=mode, timeout=timeout_s, thread_local=False)
    try:
        lock.acquire()
    except Timeout:
        yield False
        return
    try:
        yield True
    finally:
        # filelock deletes its file on Windows only. Elsewhere we delete it while it is still locked. A process that
        # has already opened the deleted file notices this and creates a new one.
        if sys.platform != "win32":
            Path(lock.lock_file).unlink(missing_ok=True)
        lock.release()


T = TypeVar("T")

# Only Windows refuses to rename, replace or delete a file that a program has open.
_LOCKS_OPEN_FILES = sys.platform == "win32"
# ERROR_USER_MAPPED_FILE of Windows: the file's content is mapped into memory, as that of a loaded model.
_USER_MAPPED_FILE = 1224
# From this length on Windows may refuse a path: 248 for a folder, 260 for a file, where LongPathsEnabled is off.
_LONG_PATH = 248
_PAUSE_S = 0.1
# Short, because small files are written on the window's thread. Code on another thread may wait longer.
_TIMEOUT_S = 0.5
# A share's clock may be that much ahead of this PC's.
_CLOCK_SKEW_NS = 60 * 10**9


def write_whole(path: Path, content: bytes, *, mode: int | None = None) -> None:
    """Replace the file at `path` atomically, creating its folder if necessary.

    In the app's own folders only this user can read the file; elsewhere it has the permissions `mode` from the start,
    or those of a new file. Raises OSError; no temporary file is left then.
    """
    make_folder(path.parent)
    fresh = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}.new")
    try:
        with create_own(fresh) as file:
            if mode is not None:
                fresh.chmod(mode)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        replace(fresh, path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise


def replace(source: Path, target: Path, timeout_s: float = _TIMEOUT_S) -> Path:
    """Rename `source` to `target`, replacing an existing file, and return `target`. Raises OSError.

    On Windows a virus scanner or an indexer often opens a file that was just written, so the call retries for
    `timeout_s` seconds there.
    """
    return _retry(partial(source.replace, target), target, timeout_s)


def read_whole(path: Path) -> bytes:
    """Return the content of a small file. Raises OSError.

    On Windows nobody can open a file in the moment in which it is replaced, so the call retries there.
    """
    return _retry(path.read_bytes, path, _TIMEOUT_S)


def _retry(action: Callable[[], T], path: Path, timeout_s: float) -> T:
    """Return what `action` returns, once no other program has the file at `path` open. Raises OSError."""
    for _ in range(round(timeout_s / _PAUSE_S)):
        try:
            return action()
        except OSError as error:
            if not is_in_use(error, path):
                raise
            sleep(_PAUSE_S)
    return action()


def is_in_use(error: OSError, path: Path) -> bool:
    """Return whether `error` may mean that a program has the file at `path` open.

    Always False outside Windows, and for a PermissionError on a read-only file.
    """
    is_mapped = getattr(error, "winerror", None) == _USER_MAPPED_FILE
    is_locked = isinstance(error, PermissionError) and (not path.exists() or os.access(path, os.W_OK))
    return _LOCKS_OPEN_FILES and (is_mapped or is_locked)


def reason_of(error: OSError, path: Path, *, on_windows: bool = sys.platform == "win32") -> str:
    """Return why the system refused to use `path`, to be put into a sentence.

    For a path that is too long Windows only says that it does not exist.
    """
    if on_windows and isinstance(error, FileNotFoundError) and len(str(path)) >= _LONG_PATH:
        return tr(
            "path of {0} characters, too long for this Windows (try a folder nearer to the drive's root)",
            len(str(path)),
        )
    return error.strerror or str(error)


def file_stamp(status: os.stat_result) -> tuple[int, int]:
    """Return the size in bytes and the modification time in ns. If both are the same, a file counts as unchanged."""
    return status.st_size, status.st_mtime_ns


def written_order(mtime_ns: int) -> tuple[bool, int]:
    """Return what sorts files by when they were written, the first one first.

    A time in the future was written while the clock was wrong, and comes first: the file would be the latest for ever.
    """
    return mtime_ns <= time_ns() + _CLOCK_SKEW_NS, mtime_ns


def is_utf8(text: str) -> bool:
    """Return whether `text` can be written as UTF-8, as in JSON and SQLite.

    It can't if it contains lone surrogates, which Python uses for file names that are not UTF-8 (possible on Linux).
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def set_aside(path: Path) -> Path:
    """Rename an unusable file, so that a new one can be written, and return its new path.

    A file that was set aside earlier is replaced. Raises OSError.
    """
    return replace(path, path.with_name(f"{path.name}.unusable"))
