"""The SQLite file: one thread writes, readers have connections of their own, nothing half done survives a crash.

WAL lets readers go on while something is written; `synchronous = FULL` makes a commit survive a power loss. Every write
is a transaction of its own on the writer's thread, so whoever asks for one never waits for the disk.
"""

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from qwendesk.core.errors import QwenDeskError
from qwendesk.store.migrations import MIGRATIONS, Migration

ResultT = TypeVar("ResultT")

_BUSY_S = 5.0
"""How long a statement waits for another process that writes."""


class StoreFailure(QwenDeskError):
    """The chats' file could not be read or written; the sentence says what to do."""


class NewerStore(StoreFailure):
    """The file was written by a newer version of the app; it is left as it is."""


class DamagedStore(StoreFailure):
    """The file is not a whole database any more; see recovery.py."""


class Database:
    """An open database of today's version. Close it to end its thread and its connections."""

    def __init__(self, path: Path, migrations: Sequence[Migration] = MIGRATIONS) -> None:
        """Opens or makes the file, checks it, and brings it to today's version. Blocks; for a worker thread.

        Raises NewerStore, DamagedStore, or StoreFailure for a disk that does not do as it should; then nothing runs.
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
        """Runs `work` on the writer's thread in a transaction of its own, after all that was asked for before.

        The future has its result once it is on the disk, or StoreFailure; then nothing of it was written.
        """
        if self._closed:
            raise StoreFailure("Chats are closed", "The app is about to end; nothing can be saved any more.")
        return self._thread.submit(_in_transaction, self._writer, work)

    def read(self, work: Callable[[sqlite3.Connection], ResultT]) -> ResultT:
        """Runs `work` on the calling thread, on one consistent state of the file. Raises StoreFailure."""
        with self._reader() as connection, _translated():
            connection.execute("BEGIN")
            try:
                return work(connection)
            finally:
                connection.execute("ROLLBACK")

    def close(self) -> None:
        """Ends after everything that was asked for is written."""
        self._closed = True
        self._thread.submit(_close_writer, self._writer).result()
        self._thread.shutdown()
        with self._lock:
            while self._idle:
                self._idle.pop().close()

    @contextmanager
    def _reader(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        if connection is None:
            with _translated():
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


def connect(path: Path) -> sqlite3.Connection:
    """A connection that begins and ends its transactions by hand. Raises sqlite3.Error."""
    connection = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def backup_path(path: Path, version: int) -> Path:
    """Where the file is copied before it is brought from `version` to a newer one."""
    return path.with_name(f"{path.stem}-version-{version}.backup{path.suffix}")


def _open(path: Path, migrations: Sequence[Migration]) -> sqlite3.Connection:
    with _translated(_NOT_OPEN):
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = connect(path)
        try:
            _check(connection, len(migrations))
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA temp_store = MEMORY")
            # What is deleted is overwritten where that costs no extra writing.
            connection.execute("PRAGMA secure_delete = FAST")
            _migrate(connection, path, migrations)
        except BaseException:
            connection.close()
            raise
        return connection


def _check(connection: sqlite3.Connection, newest: int) -> None:
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > newest:
        raise NewerStore(
            "Chats of a newer version",
            f"Your chats were saved by a newer QwenDesk (format {version}; this one knows {newest}). Update QwenDesk "
            "to see them. Nothing was changed; what you write now is not kept.",
        )
    (answer,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    if answer != "ok":
        raise DamagedStore("Chats are damaged", f"The file of your chats is damaged ({answer}).")


def _migrate(connection: sqlite3.Connection, path: Path, migrations: Sequence[Migration]) -> None:
    """Each step is a transaction of its own: a crash leaves the version before or after it."""
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if 0 < version < len(migrations):
        copy = backup_path(path, version)
        copy.unlink(missing_ok=True)
        connection.execute("VACUUM INTO ?", (str(copy),))
    for number, apply in enumerate(migrations[version:], version + 1):
        connection.execute("BEGIN IMMEDIATE")
        try:
            apply(connection)
            connection.execute(f"PRAGMA user_version = {number}")
            connection.execute("COMMIT")
        except BaseException:
            # A full disk may have ended the transaction already.
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def _in_transaction(connection: sqlite3.Connection, work: Callable[[sqlite3.Connection], ResultT]) -> ResultT:
    with _translated():
        connection.execute("BEGIN IMMEDIATE")
        try:
            result = work(connection)
            connection.execute("COMMIT")
            return result
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


def _close_writer(connection: sqlite3.Connection) -> None:
    """The planner's statistics are renewed where that pays; closing folds the WAL back into the file."""
    try:
        # A disk that is full or gone keeps nobody from leaving; what was saved is in the file or in the WAL beside it.
        with suppress(sqlite3.Error):
            connection.execute("PRAGMA optimize")
    finally:
        connection.close()


_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_LATER = "The chat goes on; what waits is saved with the next message."
_NOT_OPEN = (
    "Your chats are as they were. When that is put right, start QwenDesk again: until then none of them is shown, and "
    "what you write is not kept."
)


@contextmanager
def _translated(then: str = _LATER) -> Iterator[None]:
    """What went wrong as a sentence, with what to do, and `then` what that means for what is written meanwhile."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in _DAMAGE:
            sentence = f"The file of your chats is damaged ({error}). What can be read is recovered at the next start."
            raise DamagedStore("Chats are damaged", sentence) from error
        raise StoreFailure("Chats cannot be saved", f"{_sentence(code, error)} {then}") from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise StoreFailure(
            "Chats cannot be saved",
            f"The folder of your chats cannot be used: {reason}. Look at its disk and rights. {then}",
        ) from error


def _sentence(code: int, error: sqlite3.Error) -> str:
    match code:
        case sqlite3.SQLITE_FULL:
            return "The disk is full. Free some space."
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return "The folder of your chats cannot be written. Look at its rights, or whether the disk is full."
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return "Another program keeps the file of your chats busy. Close it and try again."
        case sqlite3.SQLITE_IOERR:
            return f"The disk reported an error ({error}). Look at the disk's health and its free space."
    return f"The file of your chats could not be used: {error}. Look at its disk and rights."
