"""The store of this user, opened; or a sentence why it cannot be, with the app going on without it."""

from pathlib import Path

import msgspec

from qwendesk.store.attachments import AttachmentStore
from qwendesk.store.chats import ChatStore
from qwendesk.store.database import DamagedStore, Database, StoreFailure
from qwendesk.store.recovery import carry_over, set_aside
from qwendesk.store.search import ChatSearch

FILE_NAME = "chats.db"


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
        try:
            store, report = Store(Database(path), folder), None
        except DamagedStore as damage:
            store, report = _recovered(path, folder, damage)
        store.chats.finish_index()
        return store, report
    except StoreFailure as failure:
        return None, StoreReport(failure.title, failure.sentence)


def _recovered(path: Path, folder: Path, damage: DamagedStore) -> tuple[Store, StoreReport]:
    try:
        aside = set_aside(path)
    except OSError as error:
        sentence = f"{damage.sentence}. It could not be moved away either ({error.strerror}), so nothing can be saved."
        raise StoreFailure(damage.title, sentence) from error
    database = Database(path)
    try:
        recovered = carry_over(aside / path.name, database)
    except BaseException:
        database.close()
        raise
    sentence = (
        f"The file of your chats was damaged. {recovered.chats} chats with {recovered.messages} messages could be read "
        f"and are here. The damaged file is kept in {aside}."
    )
    return Store(database, folder), StoreReport("Chats recovered", sentence)
