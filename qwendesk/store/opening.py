"""The store of this user, opened; or a sentence why it cannot be, with the app going on without it."""

from pathlib import Path

import msgspec

from qwendesk.core.files import replace
from qwendesk.store.attachments import AttachmentStore
from qwendesk.store.chats import ChatStore
from qwendesk.store.database import DamagedStore, Database, StoreFailure
from qwendesk.store.recovery import carry_over, set_aside
from qwendesk.store.search import ChatSearch

FILE_NAME = "chats.db"
RECOVERING = "chats.db.recovering"
"""What could be read of a damaged file, until that one is out of the way."""


class StoreReport(msgspec.Struct, frozen=True):
    """Something a person should know about the file of their chats."""

    title: str
    sentence: str


class Store:
    """Everything that is kept, on one database."""

    def __init__(self, database: Database, folder: Path) -> None:
        self._database = database
        self.folder = folder
        self.chats = ChatStore(database)
        self.search = ChatSearch(database)
        self.attachments = AttachmentStore(database, folder / "attachments")

    def close(self) -> None:
        """Ends when all that was asked for is written. Blocks."""
        self._database.close()


def open_store(folder: Path) -> tuple[Store | None, StoreReport | None]:
    """The store in `folder`, made if need be, with what a crash left put right; and what to tell, if anything. Blocks.

    None when it cannot be used: it belongs to a newer version, or the disk refuses.
    """
    path = folder / FILE_NAME
    try:
        finish_recovery(path)
        try:
            store, report = Store(Database(path), folder), None
        except DamagedStore:
            store, report = _recovered(path, folder)
        store.chats.finish_index()
        return store, report
    except StoreFailure as failure:
        return None, StoreReport(failure.title, failure.sentence)


def _recovered(path: Path, folder: Path) -> tuple[Store, StoreReport]:
    """The new file is whole before the damaged one is moved: if this ends half way, the next start begins anew."""
    fresh = path.with_name(RECOVERING)
    _remove(fresh)
    database = Database(fresh)
    try:
        recovered = carry_over(path, database)
    finally:
        database.close()
    try:
        aside = set_aside(path)
    except OSError as error:
        sentence = (
            f"The file of your chats is damaged, and could not be moved away ({error.strerror}). It is as it was, and "
            f"nothing you write is kept. Look at the rights of {folder}, and whether another program uses {path.name}, "
            "and start QwenDesk again."
        )
        raise StoreFailure("Chats are damaged", sentence) from error
    finish_recovery(path)
    sentence = (
        f"The file of your chats was damaged. {_count(recovered.chats, 'chat')} with "
        f"{_count(recovered.messages, 'message')} could be read and are here. The damaged file is kept in {aside}: "
        f"delete that folder when nothing is missing. If you have a copy of {path.name} from before, close QwenDesk "
        f"and put it into {folder}."
    )
    return Store(Database(path), folder), StoreReport("Chats recovered", sentence)


def finish_recovery(path: Path) -> None:
    """Gives the recovered file its name, if the damaged one has been moved away. Raises StoreFailure."""
    fresh = path.with_name(RECOVERING)
    if path.exists() or not fresh.exists():
        return
    try:
        replace(fresh, path)
    except OSError as error:
        sentence = (
            f"{fresh} could not be renamed to {path.name}: {error.strerror}. Start QwenDesk again to try once more."
        )
        raise StoreFailure("Chats cannot be saved", sentence) from error


def _remove(database: Path) -> None:
    """What an earlier try left. Raises StoreFailure."""
    try:
        for ending in ("", "-wal", "-shm"):
            database.with_name(database.name + ending).unlink(missing_ok=True)
    except OSError as error:
        sentence = (
            f"{database} is in the way and cannot be deleted: {error.strerror}. Delete it and start QwenDesk again."
        )
        raise StoreFailure("Chats are damaged", sentence) from error


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
