"""Permissions of the app's files and folders, to which only this user has access, and opening them for writing.

All code that creates a file or folder gets the mode from this module, which distinguishes the app's own folders
(core/paths.py) from those that the user chose. In the latter, such as a model folder or the target of an export, the
umask alone restricts new files.

On Windows nothing has to be done: the app's folders are in the user's profile, and new files there inherit its access
control list, which admits the user, administrators and the system. (Newer Python versions give a folder that is
created with mode 0o700 an access control list of its own, for the same three.)
"""

import errno
import logging
import os
import stat
import sys
from pathlib import Path
from typing import BinaryIO

from qwendesk.core import paths
from qwendesk.core.links import is_link

_logger = logging.getLogger(__name__)

_OWNER_ONLY = 0o700
# How many levels of folders are restricted; the app creates about eight. One folder per level is open meanwhile.
_DEEPEST = 32


def folder_mode(path: Path) -> int:
    """Return the mode for creating the folder at `path`, before the umask is applied."""
    return 0o700 if paths.is_own(path) else 0o777


def file_mode(path: Path) -> int:
    """Return the mode for creating the file at `path`, before the umask is applied."""
    return 0o600 if paths.is_own(path) else 0o666


def touch(path: Path) -> None:
    """Create an empty file at `path` unless it exists. Raises OSError.

    Use this before a library such as SQLite, which creates files with the default permissions but keeps those of an
    existing file. SQLite gives the files next to a database the permissions of the database.
    """
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), file_mode(path)))


def make_folder(path: Path) -> None:
    """Create the folder at `path` and its missing parents; existing folders are unchanged. Raises OSError."""
    missing = [each for each in (path, *path.parents) if not each.exists()]
    for folder in reversed(missing):
        # Another process may be creating the same folder.
        folder.mkdir(mode=folder_mode(folder), exist_ok=True)
    if not path.is_dir():
        path.mkdir()


def restrict_own_folders(*, with_contents: bool) -> None:
    """Remove other users' permissions for the app's folders, which older versions or another umask may have given.

    This protects the content too; `with_contents` also restricts each file and folder inside, in case it is copied
    elsewhere. Links are not followed, and files with another owner or several hard links are not changed. Never raises.
    """
    if sys.platform == "win32":
        return
    for folder in paths.own_folders():
        if is_link(folder):
            if with_contents:
                words = "%s is a link to %s. QwenDesk changes no permissions there: other users may be able to read it."
                _logger.warning(words, folder, os.path.realpath(folder))
            continue
        _restrict_folder(str(folder), None, _DEEPEST if with_contents else 0)


if sys.platform != "win32":

    def _restrict_folder(name: str, around: int | None, depth: int) -> None:
        """Restrict the folder `name` in the open folder `around`, and its content down to `depth` levels.

        The folder itself is restricted first, so that nobody else can replace its content with links meanwhile.
        """
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            descriptor = os.open(name, flags, dir_fd=around)
        except OSError:
            return  # it does not exist, or is not a folder that this user can open
        try:
            status = os.fstat(descriptor)
            if status.st_uid != os.geteuid() or (around is not None and status.st_dev != os.fstat(around).st_dev):
                return
            if status.st_mode & 0o077:
                os.fchmod(descriptor, status.st_mode & _OWNER_ONLY)
            if depth:
                with os.scandir(descriptor) as entries:
                    for entry in entries:
                        if entry.is_dir(follow_symlinks=False):
                            _restrict_folder(entry.name, descriptor, depth - 1)
                        elif entry.is_file(follow_symlinks=False):
                            _restrict_file(entry, descriptor)
        except OSError as error:
            _log_refused(name, error)
        finally:
            os.close(descriptor)

    def _restrict_file(entry: "os.DirEntry[str]", folder: int) -> None:
        status = entry.stat(follow_symlinks=False)
        is_ours = status.st_uid == os.geteuid() and status.st_nlink == 1
        if is_ours and status.st_mode & 0o077:
            try:
                os.chmod(entry.name, stat.S_IMODE(status.st_mode) & _OWNER_ONLY, dir_fd=folder)
            except OSError as error:
                _log_refused(entry.name, error)

    def _log_refused(name: str, error: OSError) -> None:
        """Log the error. Some file systems (FAT) have no permissions, and a file may be marked as immutable."""
        _logger.info("Permissions of %s could not be restricted: %s", name, error)


# Windows has no O_NOFOLLOW, so links are also checked before. Without O_NONBLOCK, opening a pipe could block.
_FLAGS = os.O_RDWR | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def open_own(path: Path) -> BinaryIO:
    """Open the existing file at `path` for reading and writing, positioned at its start.

    Raises OSError for a link, for anything but an ordinary file, and for one with several hard links, because a change
    would affect the other names too.
    """
    if path.is_symlink():
        raise OSError(errno.ELOOP, "it is a link to another file", str(path))
    descriptor = os.open(path, _FLAGS)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "it is not an ordinary file", str(path))
        if found.st_nlink > 1:
            raise OSError(errno.EMLINK, "it is the same file as another one", str(path))
    except BaseException:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "r+b")


def create_own(path: Path) -> BinaryIO:
    """Create an empty file at `path` and open it for reading and writing.

    An existing file or link is deleted first, and the link is not followed. In the app's own folders only this user
    can read the file. Raises OSError, also if `path` is a folder.
    """
    path.unlink(missing_ok=True)
    return os.fdopen(os.open(path, _FLAGS | os.O_CREAT | os.O_EXCL, file_mode(path)), "w+b")
