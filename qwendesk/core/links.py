"""Detects links, so that nothing outside the app's folders is deleted through one."""

import errno
import os
import shutil
import stat
import sys
from pathlib import Path

from qwendesk.core import paths

_NAME_SURROGATE = 0x2000_0000


class BehindLink(OSError):
    """Refusal to delete something because it is reached through a link; `strerror` names the link and its target."""

    def __init__(self, path: Path, link: Path) -> None:
        reason = f"{link} is a link to {os.path.realpath(link)}, and QwenDesk deletes nothing through a link"
        super().__init__(errno.ELOOP, reason, str(path))


def is_link(path: Path) -> bool:
    """Return True for a symbolic link and, on Windows, for a junction or another reparse point that names a place.

    `Path.is_symlink` does not recognise junctions. Files and folders of OneDrive, and files that Windows has compressed
    or deduplicated, are reparse points too, but none that lead elsewhere. Return False for a path that does not exist.
    """
    try:
        found = path.lstat()
    except OSError:
        return False
    if sys.platform == "win32":
        is_reparse_point = bool(found.st_file_attributes & stat.FILE_ATTRIBUTE_REPARSE_POINT)
        return is_reparse_point and names_another_place(found.st_reparse_tag)
    return stat.S_ISLNK(found.st_mode)


def names_another_place(reparse_tag: int) -> bool:
    """Return whether a reparse point with this tag stands for another file or folder (IsReparseTagNameSurrogate)."""
    return bool(reparse_tag & _NAME_SURROGATE)


def real_path(path: Path) -> Path:
    """Return `path` as an absolute path without links; with links where the system can't resolve them.

    Windows can't for a network drive that has just gone, nor on drives of some drivers.
    """
    try:
        return Path(os.path.realpath(path))
    except OSError:
        return path.absolute()


def link_to(path: Path, within: Path) -> Path | None:
    """Return the innermost link through which `path` is reached, which may be `path` itself; None if there is none.

    Checks `path`, its parent folders up to and including `within`, and those further up that belong to the app. Links
    higher up, such as a linked home folder, do not count.
    """
    folders = paths.own_folders()
    candidates = (each for each in (path, *path.parents) if each.is_relative_to(within) or paths.is_own(each, folders))
    return next((each for each in candidates if is_link(each)), None)


def remove_tree(path: Path, within: Path) -> None:
    """Delete the folder at `path`, which must lie in `within`, with its content. If it is a link, delete only the link.

    Links in the folder are deleted, not followed. Raises BehindLink, FileNotFoundError or another OSError.
    """
    link = link_to(path, within)
    if link == path:
        path.unlink()
    elif link is not None:
        path.lstat()  # raises FileNotFoundError if there is nothing to delete
        raise BehindLink(path, link)
    else:
        shutil.rmtree(path)
