"""Opens, lists, replaces and deletes files below a folder, and follows no link on the way there.

Between the moment in which a path is checked and that in which it is opened, another program can put a link in place
of a folder or a file. So on Linux and macOS each folder on the way is opened from the descriptor of the one around it,
with O_NOFOLLOW, and the file from the last one. All paths are resolved ones: the folder itself, or below it.

Windows opens no file from a folder's handle. There the system is asked for the path of the file that was opened, and
nothing is read if that is another one. Two gaps remain there: names are listed, and files written, by paths that are
checked right before and after; and a link to a share makes Windows greet that server before the file is refused.
"""

import contextlib
import ctypes
import errno
import io
import os
import stat
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec

from qwendesk.core.files import write_whole
from qwendesk.core.input_files import open_regular
from qwendesk.core.links import is_link
from qwendesk.core.translation import tr

_FOLDER_FLAGS = getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
# Linux passes through folders too that can't be listed.
_WAY_FLAGS = _FOLDER_FLAGS | getattr(os, "O_PATH", os.O_RDONLY)
# What the system says of a link, or of a file, where a folder was.
_REPLACED = (errno.ELOOP, errno.ENOTDIR)


class ReplacedPath(OSError):
    """Raised where a part of a path is a link by now, or a file where a folder was."""

    def __init__(self, path: Path) -> None:
        super().__init__(errno.ELOOP, tr("something else was put in its place"), str(path))


class FolderEntry(msgspec.Struct, frozen=True):
    """A name in a folder."""

    name: str
    state: os.stat_result
    """Of the entry itself, even if it is a link."""
    is_link: bool


def open_contained(root: Path, path: Path, limit_bytes: int | None = None) -> io.FileIO:
    """Open a regular file for reading. Raise ReplacedPath, and what `open_regular` raises."""
    if sys.platform == "win32":
        file = open_regular(path, limit_bytes)
        if _path_of(file.fileno()) != path:
            file.close()
            raise ReplacedPath(path)
        return file
    with _open_parent(root, path) as folder:
        return open_regular(path, limit_bytes, folder=folder)


def list_contained(root: Path, path: Path) -> list[FolderEntry]:
    """Return the entries of a folder, in no order. Raise OSError."""
    if sys.platform == "win32":
        with os.scandir(path) as found:
            entries = list(_entries(found))
        if path.resolve() != path:
            raise ReplacedPath(path)
        return entries
    with _open_folder(root, path, _FOLDER_FLAGS | os.O_RDONLY) as folder, os.scandir(folder) as found:
        return list(_entries(found))


def overwrite_contained(root: Path, path: Path, content: bytes) -> None:
    """Write a file as a whole, with the permissions that it had. Raise OSError, also for one that is read-only."""
    if sys.platform == "win32":
        mode = _mode_of(path, None)
        write_whole(_unmoved(path), content, mode=mode)
        _unmoved(path)
        return
    with _open_parent(root, path) as folder:
        mode = _mode_of(path, folder)
        # Its name is short: the file's own may be as long as the system allows.
        fresh = f".qwendesk-{os.getpid()}-{threading.get_ident()}.new"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with os.fdopen(os.open(fresh, flags, 0o666 if mode is None else 0o600, dir_fd=folder), "wb") as file:
                if mode is not None:
                    os.fchmod(file.fileno(), mode)
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(fresh, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(fresh, dir_fd=folder)
            raise


def delete_contained(root: Path, path: Path) -> None:
    """Delete a file. Raise OSError, also for one that is read-only."""
    if sys.platform == "win32":
        _mode_of(path, None)
        _unmoved(path).unlink()
        return
    with _open_parent(root, path) as folder:
        _mode_of(path, folder)
        os.unlink(path.name, dir_fd=folder)


def _entries(found: Iterator[os.DirEntry[str]]) -> Iterator[FolderEntry]:
    for entry in found:
        with contextlib.suppress(OSError):  # it has just been deleted
            state = entry.stat(follow_symlinks=False)
            linked = is_link(Path(entry.path)) if sys.platform == "win32" else stat.S_ISLNK(state.st_mode)
            yield FolderEntry(entry.name, state, linked)


def _mode_of(path: Path, folder: int | None) -> int | None:
    """Return the permissions of a file that may be written, None if there is none.

    Raise ReplacedPath for what is no ordinary file, and PermissionError for a read-only one: a file in its place could
    be written nevertheless.
    """
    place = path if folder is None else path.name
    try:
        mode = os.stat(place, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(mode):
        raise ReplacedPath(path)
    if not mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH) or not os.access(place, os.W_OK, dir_fd=folder):
        raise PermissionError(errno.EACCES, tr("read-only file"), str(path))
    return stat.S_IMODE(mode)


@contextlib.contextmanager
def _open_parent(root: Path, path: Path) -> Iterator[int]:
    """Open the folder that a file is in. A `root` that is a file itself is in the folder where the user picked it."""
    with _open_folder(root if path != root else root.parent, path.parent, _WAY_FLAGS) as folder:
        yield folder


@contextlib.contextmanager
def _open_folder(root: Path, path: Path, flags: int) -> Iterator[int]:
    """Open a folder from `root` on, step by step; only the last one with `flags`."""
    steps = path.relative_to(root).parts
    try:
        folder = os.open(root, _WAY_FLAGS if steps else flags)
        for number, step in enumerate(steps, 1):
            around = folder
            try:
                folder = os.open(step, flags if number == len(steps) else _WAY_FLAGS, dir_fd=around)
            finally:
                os.close(around)
    except OSError as error:
        if error.errno in _REPLACED:
            raise ReplacedPath(path) from None
        raise
    try:
        yield folder
    finally:
        os.close(folder)


def _unmoved(path: Path) -> Path:
    """Return a path of Windows that leads through no link. Raise ReplacedPath."""
    if path.resolve() != path:
        raise ReplacedPath(path)
    return path


def _path_of(descriptor: int) -> Path:
    """Return the path of an open file as Windows has it, with all links resolved. Raise OSError."""
    import msvcrt  # noqa: PLC0415 - there is none elsewhere

    find = ctypes.WinDLL("kernel32", use_last_error=True).GetFinalPathNameByHandleW  # type: ignore[attr-defined,unused-ignore]
    find.argtypes = (ctypes.c_void_p, ctypes.c_wchar_p, ctypes.c_uint32, ctypes.c_uint32)
    handle = msvcrt.get_osfhandle(descriptor)  # type: ignore[attr-defined,unused-ignore]
    name = ctypes.create_unicode_buffer(32_768)
    if not 0 < find(handle, name, len(name), 0) < len(name):
        raise OSError(errno.EIO, tr("something else was put in its place"))
    # As Path.resolve does.
    found = name.value
    if found.startswith("\\\\?\\UNC\\"):
        return Path("\\\\" + found[8:])
    return Path(found.removeprefix("\\\\?\\"))
