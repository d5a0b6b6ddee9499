"""Removal of attachment files that no message refers to any more.

A file with a row that no message refers to belonged to a deleted message and is deleted. A file without a row may
belong to lost messages, so it is only moved to a dated folder. It is kept there for 30 days, and moved back if its row
appears again, for example because a backup was restored. Only files with names that the app creates are touched, and
links are never followed.
"""

import os
import re
import sqlite3
from collections.abc import Callable, Collection, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import msgspec

from qwendesk.core.files import replace
from qwendesk.core.links import is_link
from qwendesk.core.permissions import make_folder

REMOVED = "attachments-removed"
"""Folder beside the attachments, with one folder for each day on which files were moved there."""
KEEP_REMOVED = timedelta(days=30)
_SETTLED = timedelta(hours=1)
"""A younger file is left alone, because its row may not have been written yet."""

_HASH_CHARS = 64
_OWN_FOLDER = re.compile(r"[0-9a-f]{2}")
_OWN_FILE = re.compile(r"[0-9a-f]{64}(\.[a-z0-9]{1,8})?")
_PARTIAL_COPY = re.compile(rf"{_OWN_FILE.pattern}\.new")


class Cleaning(msgspec.Struct, frozen=True):
    """Numbers of files that were deleted, moved to the dated folder, and moved back from there."""

    deleted: int = 0
    moved: int = 0
    restored: int = 0


def clean_attachments(connection: sqlite3.Connection, folder: Path, now: datetime | None = None) -> Cleaning:
    """Clean `folder` inside the caller's transaction. Does nothing if `folder` is a link. Raises OSError."""
    if is_link(folder):
        return Cleaning()
    now = now or datetime.now(UTC)
    found = [(path.name[:_HASH_CHARS], path) for path in own_files(folder)]
    unreferenced = _forget_unreferenced(connection)
    wanted = {str(row[0]) for row in connection.execute("SELECT sha256 FROM attachments")}
    deleted = moved = 0
    for sha256, path in found:
        if sha256 in unreferenced:
            path.unlink(missing_ok=True)
            deleted += 1
        elif sha256 not in wanted and _is_older(path, now - _SETTLED):
            moved += _move_to_removed(path, folder.with_name(REMOVED) / f"{now:%Y-%m-%d}")
    deleted += sum(_delete_if(path, now - _SETTLED) for path in own_files(folder, _PARTIAL_COPY))
    restored = _restore(wanted - {sha256 for sha256, _ in found}, folder)
    _delete_expired(folder.with_name(REMOVED), (now - KEEP_REMOVED).date())
    return Cleaning(deleted, moved, restored)


def own_files(folder: Path, name: re.Pattern[str] = _OWN_FILE) -> Iterator[Path]:
    """Yield the regular files in the attachments folder whose names match `name`. Links are not followed."""
    if is_link(folder):
        return
    for below in _entries(folder, lambda entry: entry.is_dir(follow_symlinks=False)):
        if _OWN_FOLDER.fullmatch(below.name) and not is_link(below):
            for path in _entries(below, lambda entry: entry.is_file(follow_symlinks=False)):
                if name.fullmatch(path.name) and path.name.startswith(below.name):
                    yield path


def _entries(folder: Path, wanted: Callable[[os.DirEntry[str]], bool]) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return sorted(Path(entry.path) for entry in entries if wanted(entry))
    except FileNotFoundError:
        return []


def _forget_unreferenced(connection: sqlite3.Connection) -> frozenset[str]:
    """Delete the rows of attachments that no message refers to, and return their hashes."""
    where = """NOT EXISTS
        (SELECT 1 FROM message_attachments WHERE message_attachments.sha256 = attachments.sha256)"""
    hashes = frozenset(str(row[0]) for row in connection.execute(f"SELECT sha256 FROM attachments WHERE {where}"))
    connection.execute(f"DELETE FROM attachments WHERE {where}")
    return hashes


def _is_older(path: Path, when: datetime) -> bool:
    return path.lstat().st_mtime < when.timestamp()


def _delete_if(path: Path, older_than: datetime) -> bool:
    if not _is_older(path, older_than):
        return False
    path.unlink(missing_ok=True)
    return True


def _move_to_removed(path: Path, target: Path) -> bool:
    """Move the file and return True; if a folder in the target is a link, do nothing and return False."""
    if is_link(target.parent) or is_link(target):
        return False
    make_folder(target)
    replace(path, target / path.name)
    return True


def _days(removed: Path) -> Iterator[tuple[date, Path]]:
    """Yield the dated folders, newest first."""
    if is_link(removed):
        return
    for folder in reversed(_entries(removed, lambda entry: entry.is_dir(follow_symlinks=False))):
        try:
            day = date.fromisoformat(folder.name)
        except ValueError:
            continue
        if not is_link(folder):
            yield day, folder


def _restore(missing: Collection[str], folder: Path) -> int:
    """Move back removed files with these hashes, newest day first, and return their number. Links are not followed."""
    restored = 0
    for _, day in _days(folder.with_name(REMOVED)) if missing else ():
        for source in _entries(day, lambda entry: entry.is_file(follow_symlinks=False)):
            target = folder / source.name[:2] / source.name
            is_wanted = _OWN_FILE.fullmatch(source.name) and source.name[:_HASH_CHARS] in missing
            if is_wanted and not is_link(target.parent) and not target.exists():
                make_folder(target.parent)
                replace(source, target)
                restored += 1
    return restored


def _delete_expired(removed: Path, before: date) -> None:
    for day, folder in _days(removed):
        if day < before:
            for path in _entries(folder, lambda entry: entry.is_file(follow_symlinks=False)):
                if _OWN_FILE.fullmatch(path.name):
                    path.unlink(missing_ok=True)
            if not any(folder.iterdir()):
                folder.rmdir()
