"""Opens files that users choose, so that no pipe or device makes the app hang and no huge file fills its memory."""

import errno
import io
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from qwendesk.core.files import reason_of
from qwendesk.core.units import show_bytes

# Without O_NONBLOCK, opening a named pipe blocks until another process writes to it.
_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
# FILE_ATTRIBUTE_RECALL_ON_OPEN and FILE_ATTRIBUTE_RECALL_ON_DATA_ACCESS of Windows, set by OneDrive and others.
_RECALL = 0x0004_0000 | 0x0040_0000
# SF_DATALESS of macOS, set by iCloud Drive.
_DATALESS = 0x4000_0000
_KINDS = (
    (stat.S_ISDIR, "it is a folder"),
    (stat.S_ISFIFO, "it is a pipe, not a file"),
    (stat.S_ISSOCK, "it is a socket, not a file"),
    (stat.S_ISLNK, "it is a link, not a file"),
)


class NotRegularFile(OSError):
    """Raised for a folder, pipe, socket or device where a file was expected; `strerror` says which."""

    def __init__(self, path: Path, mode: int) -> None:
        kind = next((text for is_kind, text in _KINDS if is_kind(mode)), "it is a device, not a file")
        super().__init__(errno.EINVAL, kind, str(path))


class FileTooLarge(OSError):
    """Raised for a file larger than a limit; `strerror` names both sizes."""

    def __init__(self, path: Path, size_bytes: int, limit_bytes: int) -> None:
        found, limit = show_bytes(size_bytes), show_bytes(limit_bytes)
        super().__init__(errno.EFBIG, f"it has {found}, and the limit is {limit}", str(path))
        self.size_bytes = size_bytes
        self.limit_bytes = limit_bytes


class OnlineOnlyFile(OSError):
    """Raised for a file whose content is only in the cloud: reading it would download all of it and may take hours."""

    def __init__(self, path: Path) -> None:
        super().__init__(errno.ENODATA, "it is only in the cloud", str(path))


class PathTooLong(OSError):
    """Raised on Windows for a file that is there, but whose path is longer than programs may use; `strerror` says so.

    Windows itself says that there is no such file.
    """

    def __init__(self, path: Path, error: FileNotFoundError) -> None:
        super().__init__(errno.ENAMETOOLONG, reason_of(error, path), str(path))


def is_online_only(status: os.stat_result) -> bool:
    """Return whether a file is a placeholder whose content the system downloads when it is read."""
    return bool(getattr(status, "st_file_attributes", 0) & _RECALL or getattr(status, "st_flags", 0) & _DATALESS)


def open_local(path: Path) -> io.FileIO:
    """Open a regular file for reading if its content is on this PC. Raises OnlineOnlyFile, and as `open_regular`."""
    with _long_paths_named(path):
        status = path.stat()
    if is_online_only(status):
        raise OnlineOnlyFile(path)
    return open_regular(path)


def open_regular(path: Path, limit_bytes: int | None = None, *, folder: int | None = None) -> io.FileIO:
    """Open a regular file for reading, without buffering; links are followed. Never waits for a pipe.

    `folder` is the descriptor of the folder that it is in: then no link is followed, neither on the way nor the file.
    Raises NotRegularFile for anything else, FileTooLarge above `limit_bytes`, PathTooLong, and OSError as `open` does.
    """
    with _long_paths_named(path):
        return _open_regular(path, limit_bytes, folder)


@contextmanager
def _long_paths_named(path: Path) -> Iterator[None]:
    """Raise PathTooLong where Windows says that a file doesn't exist, and it does."""
    try:
        yield
    except FileNotFoundError as error:
        if sys.platform == "win32" and Path(f"\\\\?\\{path.absolute()}").exists():  # so any length is allowed
            raise PathTooLong(path, error) from error
        raise


def _open_regular(path: Path, limit_bytes: int | None, folder: int | None) -> io.FileIO:
    place = path if folder is None else path.name
    flags = _OPEN_FLAGS if folder is None else _OPEN_FLAGS | os.O_NOFOLLOW
    # Check before opening, because opening a device can have side effects, and again afterwards, because the path
    # may point to another file by then.
    _check_regular(path, os.stat(place, dir_fd=folder, follow_symlinks=folder is None).st_mode)
    descriptor = os.open(place, flags, dir_fd=folder)
    try:
        status = os.fstat(descriptor)
        _check_regular(path, status.st_mode)
        if limit_bytes is not None and status.st_size > limit_bytes:
            raise FileTooLarge(path, status.st_size, limit_bytes)
    except OSError:
        os.close(descriptor)
        raise
    return io.FileIO(descriptor, "rb")


# Opens a regular file up to a size: `open_regular`, or what follows no link (toolbox/folder_access.py).
OpenFile = Callable[[Path, int | None], io.FileIO]


def read_bounded(path: Path, limit_bytes: int, open_file: OpenFile = open_regular) -> bytes:
    """Return the whole content of a regular file. Raises as `open_file` does."""
    with open_file(path, limit_bytes) as file:
        pieces: list[bytes] = []
        size = 0
        # The file may be longer than its reported size: it may be growing, or be generated by the system (/proc).
        while size <= limit_bytes and (piece := file.read(min(1 << 20, limit_bytes + 1 - size))):
            pieces.append(piece)
            size += len(piece)
    if size > limit_bytes:
        raise FileTooLarge(path, size, limit_bytes)
    return b"".join(pieces)


def read_text_bounded(path: Path, limit_bytes: int) -> str:
    """Return the text of a UTF-8 file; bytes that are not UTF-8 become U+FFFD. Raises as `open_regular` does."""
    return read_bounded(path, limit_bytes).decode("utf-8", errors="replace")


def _check_regular(path: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise NotRegularFile(path, mode)
