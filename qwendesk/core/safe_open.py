"""Opens the app's files for writing in folders that other users can write to: never a link, pipe or device."""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

from qwendesk.core.permissions import file_mode

_FLAGS = os.O_RDWR | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
"""Windows has no O_NOFOLLOW, so links are also checked before. Without O_NONBLOCK, opening a pipe could block."""


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
