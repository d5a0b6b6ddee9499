"""The chats of the list and their folders, the actions on them, and their background work on the store.

Use all classes on the event loop's thread. Failures are passed to `report`.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from qwendesk.chat.chat_settings import inherited_settings
from qwendesk.chat.tree_edits import new_id
from qwendesk.core.chats import ChatSettings, ChatSummary, Folder
from qwendesk.core.errors import FailureGuard, StoreFailure
from qwendesk.core.json_decoding import decode_json
from qwendesk.core.translation import name_order, tr

if TYPE_CHECKING:
    from qwendesk.store.chats import ChatStore
    from qwendesk.store.opening import Store

_logger = logging.getLogger(__name__)

# Shorter than a day, because a PC may sleep in between.
BACKUP_CHECK_EVERY_S = 3600.0

_INHERITED_SETTINGS = "settings_of_new_chats"

Report = Callable[[StoreFailure], None]


class PendingWrites:
    def __init__(self, report: Report) -> None:
        self._report = report
        self._pending: set[asyncio.Future[Any]] = set()

    def add(self, write: Future[Any]) -> None:
        pending = asyncio.wrap_future(write)
        self._pending.add(pending)
        pending.add_done_callback(self._on_done)

    async def wait(self) -> None:
        """Return when all writes have ended."""
        while self._pending:
            await asyncio.wait(self._pending)

    def _on_done(self, done: asyncio.Future[Any]) -> None:
        self._pending.discard(done)
        failure = done.exception()
        if isinstance(failure, StoreFailure):
            self._report(failure)
        elif failure is not None:
            raise failure


class SummaryReader:
    """Reads the summaries of chats with new messages, one at a time, however fast the messages arrive."""

    def __init__(self, on_read: Callable[[ChatSummary], None], report: Report) -> None:
        self._on_read, self._report = on_read, report
        self._outdated: set[str] = set()
        self._task: asyncio.Task[None] | None = None

    def read(self, store: "Store", chat_id: str) -> None:
        """Read the summary soon. Several calls until then cause only one read."""
        self._outdated.add(chat_id)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._read(store))

    async def wait(self) -> None:
        """Return when all requested summaries are read."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _read(self, store: "Store") -> None:
        try:
            while self._outdated:
                found = await asyncio.to_thread(store.chats.summary, self._outdated.pop())
                if found is not None:
                    self._on_read(found)
        except StoreFailure as failure:
            self._report(failure)
        finally:
            self._task = None


class InheritedSettings:
    """Saves the settings that new chats inherit, for the empty chat after the next start."""

    def __init__(self) -> None:
        self._latest: ChatSettings | None = None

    def remember(self, store: "ChatStore", settings: ChatSettings) -> Future[None] | None:
        """Save what a new chat inherits from `settings`. Return the write, or None if nothing has changed."""
        inherited = inherited_settings(settings)
        if inherited == self._latest:
            return None
        self._latest = inherited
        return store.remember(_INHERITED_SETTINGS, msgspec.json.encode(inherited).decode())

    async def load(self, store: "ChatStore") -> ChatSettings:
        """Return the saved settings; defaults if there are none. Raises StoreFailure."""
        text = await asyncio.to_thread(store.remembered, _INHERITED_SETTINGS)
        try:
            return inherited_settings(decode_json(text, ChatSettings)) if text else ChatSettings()
        except msgspec.DecodeError:
            return ChatSettings()  # written by a newer version


class DailyBackup:
    """Makes a backup of the chats once a day while the app runs. Only the first failure is reported."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._stopped = threading.Event()
        self._closing: asyncio.Event | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self, store: "Store") -> None:
        """Make today's backup now if there is none."""
        if self._stopped.is_set():
            return
        self._closing = asyncio.Event()
        self._task = asyncio.create_task(self._run(store, self._closing))

    async def close(self) -> None:
        """Stop, and abandon a backup that is being made. The previous backup is kept."""
        self._stopped.set()
        if self._closing is not None and self._task is not None:
            self._closing.set()
            await self._task

    async def _run(self, store: "Store", closing: asyncio.Event) -> None:
        has_failed, guard = False, FailureGuard(_logger, "The chats couldn't be backed up")
        while not closing.is_set():
            with guard:
                try:
                    await asyncio.to_thread(store.back_up, self._stopped.is_set)
                except StoreFailure as failure:
                    if not has_failed:
                        self._report(failure)
                    has_failed = True
            try:
                await asyncio.wait_for(closing.wait(), BACKUP_CHECK_EVERY_S)
            except TimeoutError:
                continue


_COLLAPSED = "folded_folders"


class FolderList:
    """Owns the folders. Changes apply in memory at once and are written in the background; `changed` is called."""

    def __init__(self, writes: PendingWrites, changed: Callable[[], None]) -> None:
        self._writes, self._changed = writes, changed
        self._store: ChatStore | None = None
        self._folders: tuple[Folder, ...] = ()
        self._collapsed: frozenset[str] = frozenset()

    async def load(self, store: "ChatStore") -> None:
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
        self._folders = tuple(sorted((*others, folder), key=lambda each: (name_order(each.name), each.id)))
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


class ListedChats:
    """Owns the summaries. Changes apply in memory at once and are written in the background; `changed` is called."""

    def __init__(
        self,
        writes: PendingWrites,
        folders: FolderList,
        changed: Callable[[], None],
    ) -> None:
        self._writes, self._folders, self._changed = writes, folders, changed
        self._store: ChatStore | None = None
        self._summaries: dict[str, ChatSummary] = {}
        self._deleted: tuple[ChatSummary, ...] = ()
        self._undo: Callable[[], None] | None = None

    @property
    def summaries(self) -> Mapping[str, ChatSummary]:
        """All chats that have a message, by id, archived ones included."""
        return self._summaries

    @property
    def can_restore_deleted(self) -> bool:
        """Whether `undo` may still restore the chats that were deleted last."""
        return bool(self._deleted)

    def attach(self, store: "ChatStore") -> None:
        """Write changes to this store from now on."""
        self._store = store

    def add(self, summaries: Iterable[ChatSummary]) -> None:
        """Add chats that are in the store already. Chats of the list stay as they are."""
        self._summaries = {each.id: each for each in summaries} | self._summaries
        self._changed()

    def update(self, read: ChatSummary) -> None:
        """Add a summary from disk. Of a known chat, use only what messages change: the rest is newer in memory.

        A new branch is named after the chat it was branched from, and put into the same folder.
        """
        known = self._summaries.get(read.id)
        if known is not None:
            title = known.title or read.title
            changes = {"changed_s": read.changed_s, "title": title, "settings": read.settings}
            read = msgspec.structs.replace(known, **changes)
        self._summaries[read.id] = read
        original = self._summaries.get(read.settings.branched_from)
        # The settings may be written after the chat is first listed.
        if original is not None and (known is None or not known.settings.branched_from):
            self._change_one(read.id, title=self._branch_title(original), folder_id=original.folder_id)
        self._changed()

    def rename(self, chat_id: str, title: str) -> None:
        """Rename a chat; an empty title changes nothing."""
        if title.strip():
            self._change((chat_id,), title=" ".join(title.split()))

    def pin(self, chat_ids: Iterable[str], *, pinned: bool) -> None:
        self._change(chat_ids, pinned=pinned)

    def archive(self, chat_ids: Iterable[str], *, archived: bool) -> None:
        """Archive chats, or return them to the list. Can be undone."""
        self._change_undoably(tuple(chat_ids), archived=archived)

    def move(self, chat_ids: Iterable[str], folder_id: str) -> None:
        """Move chats into a folder, or out of any folder (""). Can be undone."""
        self._change_undoably(tuple(chat_ids), folder_id=folder_id)

    def delete(self, chat_ids: Iterable[str]) -> frozenset[str]:
        """Delete chats, and return their ids. The last deletion can be undone until the app closes."""
        deleted = tuple(self._summaries[chat_id] for chat_id in chat_ids if chat_id in self._summaries)
        ids = frozenset(each.id for each in deleted)
        if not deleted or self._store is None:
            return frozenset()
        self._deleted, self._undo = deleted, self._restore_deleted
        self._summaries = {each.id: each for each in self._summaries.values() if each.id not in ids}
        self._writes.add(self._store.set_deleted([each.id for each in deleted], time.time()))
        self._changed()
        return ids

    def delete_folder(self, folder_id: str) -> None:
        """Delete a folder and keep its chats. Can be undone."""
        inside = tuple(each for each in self._summaries.values() if each.folder_id == folder_id)
        self._change((each.id for each in inside), folder_id="")
        deleted = self._folders.delete(folder_id)
        if deleted is not None:
            self._undo = partial(self._restore, inside, deleted)

    def undo(self) -> None:
        """Undo the last deletion, archiving or move, or the deletion of a folder, if there is one."""
        undo, self._undo = self._undo, None
        if undo is not None:
            undo()

    def _branch_title(self, original: ChatSummary) -> str:
        """Return "One (branch)" for a branch of "One" or of its branches, or "One (branch 2)" if that exists."""
        for _ in self._summaries:  # a damaged file may say that two chats are branches of each other
            original = self._summaries.get(original.settings.branched_from, original)
        taken = {each.title for each in self._summaries.values()}
        title, number = tr("{0} (branch)", original.title), 1
        while title in taken:
            number += 1
            title = tr("{0} (branch {1})", original.title, number)
        return title

    def _change(self, chat_ids: Iterable[str], **changes: Any) -> None:
        for chat_id in chat_ids:
            self._change_one(chat_id, **changes)
        self._changed()

    def _change_one(self, chat_id: str, **changes: Any) -> None:
        before = self._summaries.get(chat_id)
        if before is not None:
            after = self._summaries[chat_id] = msgspec.structs.replace(before, **changes)
            if self._store is not None and after != before:
                self._writes.add(self._store.save_row(after))

    def _change_undoably(self, chat_ids: tuple[str, ...], **changes: Any) -> None:
        before = tuple(self._summaries[chat_id] for chat_id in chat_ids if chat_id in self._summaries)
        self._undo = partial(self._restore, before)
        self._change(chat_ids, **changes)

    def _restore(self, summaries: Iterable[ChatSummary], folder: Folder | None = None) -> None:
        """Restore the chats' folders and whether they are archived. A deleted folder goes first: chats refer to it."""
        if folder is not None:
            self._folders.save(folder)
        for each in summaries:
            self._change_one(each.id, archived=each.archived, folder_id=each.folder_id)
        self._changed()

    def _restore_deleted(self) -> None:
        restored, self._deleted = self._deleted, ()
        if restored and self._store is not None:
            self._writes.add(self._store.set_deleted([each.id for each in restored], None))
            self.add(restored)
