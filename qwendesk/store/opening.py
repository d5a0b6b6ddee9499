"""Opens the store, recovers it if needed, and reports to the user what happened.

If the store can't be opened, a report says why, and the app runs without it.
"""

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

import msgspec

from qwendesk.core.errors import StoreFailure
from qwendesk.core.files import locked, replace, write_whole
from qwendesk.core.links import is_link
from qwendesk.core.number_format import show_date
from qwendesk.core.permissions import create_own, make_folder
from qwendesk.core.translation import join_list, join_sentences, mark, tr, tr_n
from qwendesk.store.attachments import AttachmentStore, own_files
from qwendesk.store.backups import Backup, backups
from qwendesk.store.chats import ChatStore
from qwendesk.store.database import (
    DAMAGED,
    NOT_OPEN,
    NOT_SAVED,
    DamagedStore,
    Database,
    damage_mark,
    read_only,
    store_failures,
)
from qwendesk.store.search import ChatSearch

if TYPE_CHECKING:
    from qwendesk.store.recovery import Recovered

# Why the chats file had to be recovered.
FileProblem = Literal["missing", "empty", "damaged"]
_PROBLEMS: Mapping[FileProblem, str] = MappingProxyType(
    {
        "missing": mark("The chats file was missing."),
        "empty": mark("The chats file was empty."),
        "damaged": mark("The chats file was damaged."),
    }
)


class StoreReport(msgspec.Struct, frozen=True):
    """A message to the user about the chats file."""

    title: str
    sentence: str
    backup: str = ""
    """Name of a backup that can be restored instead; "" if none is offered."""


def recovery_report(recovered: "Recovered", problem: FileProblem, path: Path, aside: Path | None) -> StoreReport:
    """Return the report of a recovery. `aside` is the folder that has the damaged file now."""
    parts = [
        tr(_PROBLEMS[problem]),
        tr("QwenDesk recovered {0} with {1}.", _chats(recovered.chats), _messages(recovered.messages)),
    ]
    chats, messages = recovered.chat_rows.from_backup, recovered.message_rows.from_backup
    if recovered.backup is not None and (messages or chats):
        made_at = _time_of(recovered.backup)
        parts.append(tr("From the backup of {0}: {1}, {2}.", made_at, _chats(chats), _messages(messages)))
    parts += _losses(recovered)
    if recovered.doubted_chats:
        parts.append(
            tr_n(
                "{0} chat may have lost what the model had read there, so its tools ask before each change.",
                "{0} chats may have lost what the model had read there, so their tools ask before each change.",
                recovered.doubted_chats,
            )
        )
    if aside is not None:
        parts.append(tr("The damaged file is kept in {0}. If nothing is missing, delete that folder.", aside))
    if recovered.backup is None:
        parts.append(
            tr(
                "There is no backup. If you have an older copy of {0}, close QwenDesk and put it in {1}.",
                path.name,
                path.parent,
            )
        )
    offered = recovered.backup.path.name if recovered.backup is not None and not recovered.is_complete else ""
    return StoreReport(tr("Chats recovered"), join_sentences(*parts), offered)


def restored_report(backup: Backup, folder: Path) -> StoreReport:
    sentence = tr(
        "Your chats are now those of the backup of {0}. The previous file is kept in {1}, in a folder whose name "
        "begins with “replaced”.",
        _time_of(backup),
        folder,
    )
    return StoreReport(tr("Backup restored"), sentence)


def _losses(recovered: "Recovered") -> list[str]:
    """Return sentences about what could not be recovered."""
    if recovered.is_complete and not recovered.lost_titles:
        return [tr("Nothing was lost.")]
    sentences = []
    lost = []
    if recovered.lost_messages:
        lost.append(_messages(recovered.lost_messages))
    if recovered.lost_chats:
        lost.append(_chats(recovered.lost_chats))
    if lost:
        sentences.append(tr("Lost: {0}.", join_list(lost)))
    incomplete = []
    if recovered.message_rows.incomplete:
        incomplete.append(_messages(recovered.message_rows.incomplete))
    if recovered.chat_rows.incomplete:
        incomplete.append(_chats(recovered.chat_rows.incomplete))
    if incomplete:
        sentences.append(tr("Incomplete: {0}.", join_list(incomplete)))
    if recovered.lost_titles:
        sentences.append(tr("Without title, folder and settings: {0}.", _chats(recovered.lost_titles)))
    if not recovered.is_exact:
        sentences.append(tr("More messages may be lost, but QwenDesk can't tell how many."))
    return sentences


def _chats(count: int) -> str:
    return tr_n("{0} chat", "{0} chats", count)


def _messages(count: int) -> str:
    return tr_n("{0} message", "{0} messages", count)


def _time_of(backup: Backup) -> str:
    made_at = backup.made_at.astimezone()
    return f"{show_date(made_at.date())}, {made_at:%H:%M}"


FILE_NAME = "chats.db"
ATTACHMENTS = "attachments"
# A new file that is being written. If the app crashes, the file is incomplete and useless.
UNFINISHED = "chats.db.unfinished"
# A new file that is complete but not renamed yet.
RECOVERING = "chats.db.recovering"
# Contains the name of the backup to be restored at the next start.
CHOSEN_BACKUP = "chats.db.restore"


_LOCK_TIMEOUT_S = 60.0
# Key under which the store remembers the target of the link that the user was told about.
_REPORTED_LINK = "attachments_link"


class Store:
    """The database with its chats and search, and the folder of attachments."""

    def __init__(self, database: Database, folder: Path, *, keeps_attachments: bool) -> None:
        self._database = database
        self.folder = folder
        self.chats = ChatStore(database)
        self.search = ChatSearch(database)
        self.attachments = AttachmentStore(database, folder / ATTACHMENTS, keeps_all=keeps_attachments)

    def back_up(self, is_stopped: Callable[[], bool] = lambda: False) -> Backup | None:
        """Make a backup if one is due; see Database.back_up."""
        return self._database.back_up(is_stopped)

    def close(self) -> None:
        """Close the store after all submitted writes are done. Blocks."""
        self._database.close()


def open_store(folder: Path) -> tuple[Store | None, StoreReport | None]:
    """Return the store in `folder`, created or recovered if needed, and a report for the user, if any. Blocks.

    The store is None if it was written by a newer version or the disk fails; the report then says why.
    """
    try:
        with _opening_lock(folder):
            store, report = _open(folder)
        store.chats.finish_index()
        return store, report or _report_linked_attachments(store)
    except StoreFailure as failure:
        return None, StoreReport(failure.title, failure.sentence)


def _open(folder: Path) -> tuple[Store, StoreReport | None]:
    path = folder / FILE_NAME
    restored = _restore_chosen(path)
    finish_recovery(path)
    if not path.exists() and not backups(path):
        return _create(path)
    problem = _file_problem(path)
    if problem is None:
        try:
            return Store(Database(path), folder, keeps_attachments=restored is not None), restored
        except DamagedStore:
            problem = "damaged"
    return _recover(path, problem)


def _file_problem(path: Path) -> FileProblem | None:
    """Return what is wrong with the file if that is known without opening it; else None."""
    if not path.exists():
        return "missing"
    if not path.stat().st_size:
        return "empty"
    return "damaged" if damage_mark(path).exists() else None


def _create(path: Path) -> tuple[Store, StoreReport | None]:
    """Create a new store, and return a report if pictures show that there were chats before.

    The file gets its name only when it is complete, so an empty file is always a damaged one.
    """
    fresh = path.with_name(UNFINISHED)
    _remove(fresh)
    Database(fresh).close()
    _mark_complete(fresh, path)
    finish_recovery(path)
    n_pictures = sum(1 for _ in own_files(path.with_name(ATTACHMENTS)))
    sentence = tr_n(
        "{1} is missing and there is no backup, so QwenDesk can't show your chats. Their folder {2} still has {0} "
        "picture. If you have a copy of {3}, close QwenDesk and put it there.",
        "{1} is missing and there is no backup, so QwenDesk can't show your chats. Their folder {2} still has {0} "
        "pictures. If you have a copy of {3}, close QwenDesk and put it there.",
        n_pictures,
        path,
        path.parent,
        path.name,
    )
    report = StoreReport(tr("Chats are missing"), sentence) if n_pictures else None
    return Store(Database(path), path.parent, keeps_attachments=True), report


@contextmanager
def _opening_lock(folder: Path) -> Iterator[None]:
    """Hold a lock between processes while the file is created, migrated or recovered.

    If the lock isn't free within `_LOCK_TIMEOUT_S` seconds, continue without it. Raises StoreFailure.
    """
    with store_failures(NOT_OPEN):
        make_folder(folder)
        with locked(folder / FILE_NAME, timeout_s=_LOCK_TIMEOUT_S):
            yield


def _report_linked_attachments(store: Store) -> StoreReport | None:
    """Return a report that nothing is deleted if the attachments folder is a link. Report each target once."""
    folder = store.attachments.folder
    if not is_link(folder):
        return None
    target = os.path.realpath(folder)
    if store.chats.remembered(_REPORTED_LINK) == target:
        return None
    store.chats.remember(_REPORTED_LINK, target)
    sentence = tr(
        "{0} is a link to {1}. QwenDesk saves pictures there, but never deletes anything through a link. Pictures of "
        "deleted chats stay there until you delete them.",
        folder,
        target,
    )
    return StoreReport(tr("The attachments folder is a link"), sentence)


def _recover(path: Path, problem: FileProblem) -> tuple[Store, StoreReport]:
    """Recover a damaged file into a new one.

    The damaged file is moved away only when the new one is complete, so that a crash only restarts the recovery.
    """
    fresh = path.with_name(UNFINISHED)
    _remove(fresh)
    database = Database(fresh)
    try:
        # Imported only now, because hardly any start finds a damaged file.
        from qwendesk.store.recovery import recover  # noqa: PLC0415

        recovered = recover(path, _newest_readable(path), database, path.with_name(ATTACHMENTS))
    finally:
        database.close()
    _mark_complete(fresh, path)
    aside = _move_aside(path, "damaged") if path.exists() else None
    finish_recovery(path)
    with suppress(OSError):
        damage_mark(path).unlink(missing_ok=True)
    store = Store(Database(path), path.parent, keeps_attachments=True)
    return store, recovery_report(recovered, problem, path, aside)


def _newest_readable(path: Path) -> Backup | None:
    """Return the newest backup that is not damaged; None if there is none."""
    for backup in backups(path):
        try:
            with closing(read_only(backup.path)) as connection:
                if connection.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok":
                    connection.execute("SELECT count(*) FROM messages").fetchone()
                    return backup
        except (sqlite3.Error, UnicodeDecodeError):
            continue
    return None


def _move_aside(path: Path, name: str) -> Path:
    """Move the file into a folder whose name begins with `name`, and return the folder. Raises StoreFailure."""
    try:
        from qwendesk.store.recovery import set_aside  # noqa: PLC0415 - as above

        return set_aside(path, name=name)
    except OSError as error:
        sentence = tr(
            "The chats file couldn't be moved ({0}). Nothing was changed, and new messages aren't saved. Check the "
            "permissions of {1} and whether another program is using {2}, then restart QwenDesk.",
            error.strerror,
            path.parent,
            path.name,
        )
        raise StoreFailure(tr(DAMAGED), sentence) from error


def choose_backup(folder: Path, name: str) -> None:
    """Restore the backup of this name at the next start. Raises StoreFailure."""
    with store_failures():
        write_whole((folder / FILE_NAME).with_name(CHOSEN_BACKUP), name.encode())


def _restore_chosen(path: Path) -> StoreReport | None:
    """Replace the file by the backup that the user chose, if any. Raises StoreFailure.

    The replaced file is kept in a folder whose name begins with "replaced".
    """
    chosen = path.with_name(CHOSEN_BACKUP)
    with store_failures(NOT_OPEN):
        if not chosen.exists():
            return None
        name = chosen.read_text(encoding="utf-8", errors="replace")
        backup = next((each for each in backups(path) if each.path.name == name), None)
        if backup is not None:
            fresh = path.with_name(UNFINISHED)
            with backup.path.open("rb") as source, create_own(fresh) as target:
                shutil.copyfileobj(source, target, 1 << 20)
                target.flush()
                os.fsync(target.fileno())
            _mark_complete(fresh, path)
            if path.exists():
                _move_aside(path, "replaced")
            finish_recovery(path)
        chosen.unlink()
    if backup is None:
        return StoreReport(tr("Backup not found"), tr("{0} could not be found. Nothing was changed.", name))
    return restored_report(backup, path.parent)


def _mark_complete(fresh: Path, path: Path) -> None:
    """Mark `fresh` as complete by renaming it. It replaces the file once that has been moved away."""
    _rename(fresh, path.with_name(RECOVERING))


def finish_recovery(path: Path) -> None:
    """Rename the complete new file if the old one has been moved away. Raises StoreFailure."""
    fresh = path.with_name(RECOVERING)
    if not path.exists() and fresh.exists():
        _rename(fresh, path)


def _rename(fresh: Path, path: Path) -> None:
    try:
        replace(fresh, path)
    except OSError as error:
        sentence = tr(
            "{0} couldn't be renamed to {1}: {2}. Restart QwenDesk to try again.", fresh, path.name, error.strerror
        )
        raise StoreFailure(tr(NOT_SAVED), sentence) from error


def _remove(database: Path) -> None:
    """Delete a database that an earlier attempt left unfinished. Raises StoreFailure."""
    try:
        for ending in ("", "-wal", "-shm"):
            database.with_name(database.name + ending).unlink(missing_ok=True)
    except OSError as error:
        sentence = tr(
            "QwenDesk couldn't delete the unfinished file {0}: {1}. Delete it and restart QwenDesk.",
            database,
            error.strerror,
        )
        raise StoreFailure(tr(DAMAGED), sentence) from error
