"""The folders that chats lie in, and which of them are folded: in memory at once, on the disk soon after."""

import asyncio
from collections.abc import Callable

from qwendesk.core.chats import Folder
from qwendesk.services.chat.writes import Writes
from qwendesk.store.chats import ChatStore

_FOLDED = "folded_folders"


class FolderList:
    """Owns them for the service of the chats. `changed` is called after each change."""

    def __init__(self, writes: Writes, changed: Callable[[], None]) -> None:
        self._writes, self._changed = writes, changed
        self._store: ChatStore | None = None
        self._folders: tuple[Folder, ...] = ()
        self._folded: frozenset[str] = frozenset()

    def attach(self, store: ChatStore) -> None:
        """The store is open now: what changes is written there."""
        self._store = store

    async def read(self) -> None:
        """What the store holds. Raises StoreFailure."""
        store = self._store
        if store is not None:
            self._folders, folded = await asyncio.to_thread(lambda: (store.folders(), store.remembered(_FOLDED)))
            self._folded = frozenset(folded.split())

    @property
    def folders(self) -> tuple[Folder, ...]:
        """By name."""
        return self._folders

    @property
    def folded(self) -> frozenset[str]:
        """Ids of those whose chats are not shown in the list; remembered from start to start."""
        return self._folded

    def toggle(self, folder_id: str) -> None:
        """Fold it, or open it again."""
        known = {folder.id for folder in self._folders}
        self._folded = (self._folded ^ {folder_id}) & known
        if self._store is not None:
            self._writes.add(self._store.remember(_FOLDED, " ".join(sorted(self._folded))))
        self._changed()

    def save(self, folder: Folder) -> Folder:
        """A new one, or an old one under another name."""
        others = [each for each in self._folders if each.id != folder.id]
        self._folders = tuple(sorted((*others, folder), key=lambda each: (each.name.casefold(), each.id)))
        if self._store is not None:
            self._writes.add(self._store.save_folder(folder))
        self._changed()
        return folder

    def remove(self, folder_id: str) -> Folder | None:
        """What was removed; None if there is no such folder."""
        gone = next((each for each in self._folders if each.id == folder_id), None)
        self._folders = tuple(each for each in self._folders if each.id != folder_id)
        if self._store is not None:
            self._writes.add(self._store.delete_folder(folder_id))
        self._changed()
        return gone
