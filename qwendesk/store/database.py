"""The SQLite file, with one thread that writes and a separate connection for each reader.

In WAL mode a write doesn't block readers, and with `synchronous = FULL` a commit survives a power loss. Every write is
one transaction on the writer's thread, so its caller never waits for the disk.
"""

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from qwendesk.core.errors import StoreFailure
from qwendesk.core.permissions import make_folder, touch
from qwendesk.core.translation import join_sentences, mark, tr
from qwendesk.store import checks
from qwendesk.store.backups import Backup, BackupStopped, is_due, make_backup
from qwendesk.store.checks import Findings, examine, header_problem
from qwendesk.store.migrations import MIGRATIONS, Migration

ResultT = TypeVar("ResultT")

# Decodes texts. A byte that is not UTF-8 becomes a replacement character, so that the rest is still shown.
_TEXT = partial(str, encoding="utf-8", errors="replace")
# A version number that is further ahead counts as damage.
_MOST_VERSIONS_AHEAD = 1000
# Seconds that a statement waits while another process writes.
_BUSY_S = 5.0


class NewerStore(StoreFailure):
    """The file was written by a newer version of the app and is left unchanged."""


class DamagedStore(StoreFailure):
    """The database is damaged; see recovery.py."""


class DamagedIndex(DamagedStore):
    """Only the full-text index is damaged; it is rebuilt from the texts."""


class Database:
    """An open database of the current version. `close` stops its thread and closes its connections."""

    def __init__(self, path: Path, migrations: Sequence[Migration] = MIGRATIONS) -> None:
        """Open or create the file, check it, and migrate it to the current version. Blocks: call it on a worker thread.

        Raises NewerStore, DamagedStore, or StoreFailure for an error of the disk. No thread is left running then.
        """
        self.path = path
        self._idle: list[sqlite3.Connection] = []
        self._lock = threading.Lock()
        self._closed = False
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="store-writer")
        try:
            self._writer = self._thread.submit(_open, path, migrations).result()
        except BaseException:
            self._thread.shutdown()
            raise

    def write(self, work: Callable[[sqlite3.Connection], ResultT]) -> Future[ResultT]:
        """Run `work` in a transaction on the writer's thread, after everything submitted before.

        The future returns the result once the changes are on disk. If it raises StoreFailure, nothing was written.
        """
        if self._closed:
            raise StoreFailure(tr(NOT_SAVED), tr("QwenDesk is closing, so nothing more can be saved."))
        return self._thread.submit(self._in_transaction, work)

    def read(self, work: Callable[[sqlite3.Connection], ResultT]) -> ResultT:
        """Run `work` on the calling thread, on one consistent state of the file. Raises StoreFailure.

        If the full-text index turns out to be damaged, it is rebuilt and `work` runs again.
        """
        with self._marking_damage():
            try:
                return self._read(work)
            except DamagedIndex:
                self.write(checks.rebuild).result()
                return self._read(work)

    def _read(self, work: Callable[[sqlite3.Connection], ResultT]) -> ResultT:
        with self._reader() as connection, store_failures():
            connection.execute("BEGIN")
            try:
                return work(connection)
            finally:
                connection.execute("ROLLBACK")

    def back_up(self, is_stopped: Callable[[], bool] = lambda: False) -> Backup | None:
        """Make a backup if the last one is older than a day and there are chats. Blocks, but not the writer.

        A damaged full-text index found in the copy is rebuilt. Raises StoreFailure.
        """
        now = datetime.now(UTC)
        with self._marking_damage(), store_failures(_NO_BACKUP, mark("Chats not backed up")), suppress(BackupStopped):
            if not is_due(self.path, now) or not self.read(_has_chats):
                return None
            try:
                return make_backup(self.path, _check_thoroughly, now, is_stopped)
            except DamagedIndex:
                self.write(checks.rebuild).result()
                return make_backup(self.path, _check_thoroughly, now, is_stopped)
        return None

    def close(self) -> None:
        """Close the database after all submitted writes are done. Blocks."""
        self._closed = True
        self._thread.submit(_close_writer, self._writer).result()
        self._thread.shutdown()
        with self._lock:
            while self._idle:
                self._idle.pop().close()

    def note_damage(self, damage: str) -> DamagedStore:
        """Have the next start recover the file, and return what to tell the user."""
        with suppress(OSError):
            touch(damage_mark(self.path))
        return DamagedStore(tr(DAMAGED), tr(_RECOVERED_LATER, damage))

    def _in_transaction(self, work: Callable[[sqlite3.Connection], ResultT]) -> ResultT:
        with self._marking_damage():
            try:
                with store_failures():
                    return _transaction(self._writer, work)
            except DamagedIndex:
                with store_failures():
                    _transaction(self._writer, checks.rebuild)
                    return _transaction(self._writer, work)

    @contextmanager
    def _marking_damage(self) -> Iterator[None]:
        """Mark the file when damage is found, so that the next start recovers it even if it doesn't notice it."""
        try:
            yield
        except DamagedStore:
            with suppress(OSError):
                touch(damage_mark(self.path))
            raise

    @contextmanager
    def _reader(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        if connection is None:
            with store_failures():
                connection = connect(self.path)
                connection.execute("PRAGMA query_only = ON")
        try:
            yield connection
        finally:
            with self._lock:
                keep = not self._closed
                if keep:
                    self._idle.append(connection)
            if not keep:
                connection.close()


class _ChatsConnection(sqlite3.Connection):
    """Raises DatabaseError where Python can't decode SQLite's error message, which quotes a damaged name of the schema.

    It is raised here, and not where all exceptions end, because the work of a reader may decode texts itself.
    """

    def execute(self, statement: str, values: Any = ()) -> sqlite3.Cursor:
        try:
            return super().execute(statement, values)
        except UnicodeDecodeError as error:
            damage = sqlite3.DatabaseError(tr("its schema isn't text"))
            damage.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
            raise damage from error


def connect(path: Path) -> sqlite3.Connection:
    """Return a connection with manual transactions. Raises sqlite3.Error."""
    connection = sqlite3.connect(
        path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False, factory=_ChatsConnection
    )
    connection.text_factory = _TEXT
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def read_only(path: Path) -> sqlite3.Connection:
    """Return a connection to a file that nothing writes to, such as a backup. Raises sqlite3.Error."""
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
    connection.text_factory = _TEXT
    return connection


def damage_mark(path: Path) -> Path:
    """Return the path of the file that marks the database as damaged."""
    return path.with_name(f"{path.name}.damaged")


def _open(path: Path, migrations: Sequence[Migration]) -> sqlite3.Connection:
    with store_failures(NOT_OPEN):
        make_folder(path.parent)
        if path.exists() and path.stat().st_size:
            _raise_if_damaged(header_problem(path))
        touch(path)
        connection = connect(path)
        try:
            version = _version(connection)
            _refuse_newer(version, len(migrations))
            findings = _check_rows(connection, migrations[:version])
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA temp_store = MEMORY")
            # Deleted content is overwritten with zeros where that needs no additional writes.
            connection.execute("PRAGMA secure_delete = FAST")
            if 0 < version < len(migrations):
                make_backup(path, partial(_check_copy, migrations=migrations[:version]), datetime.now(UTC))
            while _version(connection) < len(migrations):
                _transaction(connection, lambda each: _step(each, migrations))
            if findings.is_index_damaged:
                with _errors_as_damage():
                    _transaction(connection, checks.rebuild)
        except BaseException:
            connection.close()
            raise
        return connection


def _refuse_newer(version: int, newest: int) -> None:
    if not 0 <= version <= newest + _MOST_VERSIONS_AHEAD:
        _raise_if_damaged(tr("its version is {0}", version))
    if version > newest:
        sentence = tr(
            "Your chats were saved by a newer version of QwenDesk (format {0}, this version reads {1}). Update "
            "QwenDesk to see them. Nothing was changed, and new messages aren't saved.",
            version,
            newest,
        )
        raise NewerStore(tr("Chats from a newer version"), sentence)


def _check_rows(connection: sqlite3.Connection, migrations: Sequence[Migration]) -> Findings:
    """Return the findings if no row is affected. Raises DamagedStore."""
    with closing(sqlite3.connect(":memory:")) as model:
        for migration in migrations:
            migration(model)
        with _errors_as_damage():
            findings = examine(connection, model, len(migrations))
    _raise_if_damaged(findings.damage)
    return findings


@contextmanager
def _errors_as_damage() -> Iterator[None]:
    """Treat an SQLite error as damage of the file unless the disk or system caused it: the statements are correct."""
    try:
        yield
    except sqlite3.Error as error:
        if _code(error) in _ENVIRONMENT:
            raise
        _raise_if_damaged(str(error))


def _raise_if_damaged(damage: str) -> None:
    if damage:
        raise DamagedStore(tr(DAMAGED), tr("The chats file is damaged ({0}).", damage))


def _has_chats(connection: sqlite3.Connection) -> bool:
    return bool(connection.execute("SELECT EXISTS (SELECT 1 FROM messages)").fetchone()[0])


def _check_thoroughly(copy: sqlite3.Connection) -> None:
    """Check everything in a copy. Raises DamagedStore, or DamagedIndex if only the full-text index is damaged."""
    findings = _check_rows(copy, MIGRATIONS)
    if findings.is_index_damaged or not checks.is_sound(copy):
        raise DamagedIndex(tr(_SEARCH_DAMAGED), tr("The search index of your chats is damaged."))


def _check_copy(copy: sqlite3.Connection, migrations: Sequence[Migration]) -> None:
    _check_rows(copy, migrations)


def _step(connection: sqlite3.Connection, migrations: Sequence[Migration]) -> None:
    version = _version(connection)
    if version < len(migrations):
        migrations[version](connection)
        connection.execute(f"PRAGMA user_version = {version + 1}")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _transaction(connection: sqlite3.Connection, work: Callable[[sqlite3.Connection], ResultT]) -> ResultT:
    connection.execute("BEGIN IMMEDIATE")
    try:
        result = work(connection)
        connection.execute("COMMIT")
        return result
    except BaseException:
        # SQLite may have rolled back already, for example because the disk is full.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _close_writer(connection: sqlite3.Connection) -> None:
    """Update the query planner's statistics if worthwhile, and close, which merges the WAL into the file."""
    try:
        # A full or missing disk must not keep the app from closing. Saved data is in the file or in its WAL.
        with suppress(sqlite3.Error):
            connection.execute("PRAGMA optimize")
    finally:
        connection.close()


def _code(error: sqlite3.Error) -> int:
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
# Error codes that are caused by the disk or the system, not by the content of the file.
_ENVIRONMENT = (
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_INTERRUPT,
)
DAMAGED = mark("Chats are damaged")
NOT_SAVED = mark("Chats not saved")
NOT_OPEN = mark(
    "Your saved chats are unaffected. Fix this and restart QwenDesk to see them. Until then, new messages aren't saved."
)
_SEARCH_DAMAGED = mark("The search is damaged")
_RECOVERED_LATER = mark("The chats file is damaged ({0}). Restart QwenDesk to recover what can be read.")
_NO_BACKUP = mark("Your chats are still saved, but there is no new backup of them.")
_SAVED_LATER = mark("You can keep chatting. QwenDesk saves everything with your next message.")


@contextmanager
def store_failures(outlook: str = _SAVED_LATER, title: str = NOT_SAVED) -> Iterator[None]:
    """Raise StoreFailure for an error of SQLite or of the disk, with a sentence that says what to do.

    `outlook` says what happens to the chats in the meantime. It and `title` are marked texts.
    """
    try:
        yield
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_CORRUPT_VTAB:
            raise DamagedIndex(tr(_SEARCH_DAMAGED), tr(_RECOVERED_LATER, error)) from error
        code = _code(error)
        if code in _DAMAGE:
            raise DamagedStore(tr(DAMAGED), tr(_RECOVERED_LATER, error)) from error
        raise StoreFailure(tr(title), join_sentences(_sentence(code, error), tr(outlook))) from error
    except OSError as error:
        problem = tr(
            "The chats folder can't be used: {0}. Check its disk and permissions.", error.strerror or str(error)
        )
        raise StoreFailure(tr(title), join_sentences(problem, tr(outlook))) from error


def _sentence(code: int, error: sqlite3.Error) -> str:
    match code:
        case sqlite3.SQLITE_FULL:
            return tr("The disk is full. Free some space.")
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return tr("QwenDesk can't write to the chats folder. Check its permissions and the free space of the disk.")
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return tr("Another program is using the chats file. Close it and try again.")
        case sqlite3.SQLITE_IOERR:
            return tr("The disk reported an error ({0}). Check its health and its free space.", error)
    return tr("The chats file can't be used: {0}. Check its disk and permissions.", error)
