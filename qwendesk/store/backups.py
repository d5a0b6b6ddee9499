"""Backups of the database: one a day and one before each migration. The newest two are kept.

A backup is made with SQLite's backup API, on its own connection and in one read transaction. In WAL mode neither the
writer nor the readers wait for it. The backup is checked before an older one is deleted, so that a damaged file can't
replace the last good copy.
"""

import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from qwendesk.core.errors import QwenDeskError
from qwendesk.core.files import replace
from qwendesk.core.permissions import create_own

INTERVAL = timedelta(days=1)
MAX_KEPT = 2
_STAMP = "%Y%m%d-%H%M%S"
_PAGES_AT_ONCE = 1000
# Instructions of SQLite's virtual machine between two checks whether the app is closing.
_STEPS_AT_ONCE = 100_000


class Backup(msgspec.Struct, frozen=True):
    """A complete copy of the database. `made_at` is in UTC."""

    path: Path
    made_at: datetime


class BackupStopped(Exception):
    """The backup was not finished because the app is closing."""


def backups(database: Path) -> tuple[Backup, ...]:
    """Return the backups of this database, newest first."""
    name = re.compile(rf"{re.escape(database.stem)}-backup-(\d{{8}}-\d{{6}}){re.escape(database.suffix)}")
    found = []
    for path in database.parent.glob(f"{database.stem}-backup-*"):
        match = name.fullmatch(path.name)
        try:
            if match is not None:
                found.append(Backup(path, datetime.strptime(match[1], _STAMP).replace(tzinfo=UTC)))
        except ValueError:
            continue
    return tuple(sorted(found, key=lambda backup: backup.made_at, reverse=True))


def is_due(database: Path, now: datetime) -> bool:
    """Return whether there is no backup, or the newest one is older than a day or dated in the future."""
    newest = next(iter(backups(database)), None)
    return newest is None or not timedelta(0) <= now - newest.made_at < INTERVAL


def make_backup(
    database: Path,
    check: Callable[[sqlite3.Connection], None],
    now: datetime,
    is_stopped: Callable[[], bool] = lambda: False,
) -> Backup:
    """Copy the database, `check` the copy, and delete all but the newest backups. Blocks.

    Raises what `check` raises, sqlite3.Error, OSError, or BackupStopped; the older backups are kept then.
    """
    path = database.with_name(f"{database.stem}-backup-{now:{_STAMP}}{database.suffix}")
    fresh = path.with_name(f"{path.name}.new")

    def progress(_status: int, _remaining: int, _total: int) -> None:
        if is_stopped():
            raise BackupStopped

    create_own(fresh).close()
    try:
        with (
            closing(sqlite3.connect(database, isolation_level=None)) as source,
            closing(sqlite3.connect(fresh)) as copy,
        ):
            # Without a transaction, every write by another connection would restart the copy.
            source.execute("BEGIN")
            source.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            source.backup(copy, pages=_PAGES_AT_ONCE, progress=progress)
            # Without a WAL the backup is a single file, which can be copied and read by itself.
            copy.execute("PRAGMA journal_mode = DELETE")
            copy.set_progress_handler(is_stopped, _STEPS_AT_ONCE)
            try:
                check(copy)
            except (sqlite3.Error, QwenDeskError):
                # An interrupted check looks like damage.
                if is_stopped():
                    raise BackupStopped from None
                raise
        replace(fresh, path)
    finally:
        for ending in ("", "-journal", "-wal", "-shm"):
            fresh.with_name(fresh.name + ending).unlink(missing_ok=True)
    # Backups dated in the future, from a time when the clock was wrong, are deleted first.
    kept = sorted(backups(database), key=lambda backup: (backup.made_at <= now, backup.made_at))[-MAX_KEPT:]
    for old in backups(database):
        if old not in kept:
            old.path.unlink(missing_ok=True)
    return Backup(path, now.replace(microsecond=0))
