"""The folders of the chat list, and which of them are collapsed."""

import asyncio
from collections.abc import Callable

from qwendesk.chat.store_tasks import PendingWrites
from qwendesk.chat.tree_edits import new_id
from qwendesk.core.chats import Folder
from qwendesk.store.chats import ChatStore

_COLLAPSED = "folded_folders"


class FolderList:
    """Owns the folders. Changes apply in memory at once and are written in the background; `changed` is called."""

    def __init__(self, writes: PendingWrites, changed: Callable[[], None]) -> None:
        self._writes, self._changed = writes, changed
        self._store: ChatStore | None = None
        self._folders: tuple[Folder, ...] = ()
        self._collapsed: frozenset[str] = frozenset()

    async def load(self, store: ChatStore) -> None:
        """Read the folders, and write changes to this store from now on. Raises StoreFailure."""
        self._store = store
        self._folders, ids = await asyncio.to_thread(lambda: (store.folders(), store.remembered(_COLLAPSED)))
        self._collapsed = frozenset(ids.split())

    @property
    def folders(self) -> tuple[Folder, ...]:
        """The folders, sorted by name."""
        return self._folders

    @property
    def collapsed(self) -> frozenset[str]:
        """Ids of the collapsed folders, which are saved."""
        return self._collapsed

    def add(self, name: str) -> Folder:
        return self.save(Folder(new_id(), " ".join(name.split())))

    def rename(self, folder_id: str, name: str) -> None:
        """Rename a folder; an empty name changes nothing."""
        if name.strip():
            self.save(Folder(folder_id, " ".join(name.split())))

    def toggle(self, folder_id: str) -> None:
        """Collapse or expand a folder."""
        known = {folder.id for folder in self._folders}
        self._collapsed = (self._collapsed ^ {folder_id}) & known
        if self._store is not None:
            self._writes.add(self._store.remember(_COLLAPSED, " ".join(sorted(self._collapsed))))
        self._changed()

    def save(self, folder: Folder) -> Folder:
        """Add a folder, or rename the one with its id."""
        others = [each for each in self._folders if each.id != folder.id]
        self._folders = tuple(sorted((*others, folder), key=lambda each: (each.name.casefold(), each.id)))
        if self._store is not None:
            self._writes.add(self._store.save_folder(folder))
        self._changed()
        return folder

    def delete(self, folder_id: str) -> Folder | None:
        """Delete a folder. Return it; None if there is no such folder."""
        deleted = next((each for each in self._folders if each.id == folder_id), None)
        self._folders = tuple(each for each in self._folders if each.id != folder_id)
        if self._store is not None:
            self._writes.add(self._store.delete_folder(folder_id))
        self._changed()
        return deleted
