"""ChatListService: all chats of the user, the one that is open, and the store they are saved in.

Changes apply in memory at once and are written to the store soon after. If the store can't be opened (its file is from
a newer version, or a disk error), the app works in memory only and reports that.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from qwendesk.chat.chat_saver import ChatSaved, SaverEvent, SavingFailed, SavingWorksAgain, StoreChatSaver
from qwendesk.chat.drafts import NEW_CHAT, Drafts
from qwendesk.chat.listed_chats import (
    DailyBackup,
    FolderList,
    InheritedSettings,
    ListedChats,
    PendingWrites,
    SummaryReader,
)
from qwendesk.chat.reopen_guard import MayReopen, always
from qwendesk.chat.tree_edits import new_id, shown_up_to
from qwendesk.core.chats import ChatSettings, ChatSummary, Folder, ReadPosition, SavedDraft, SearchHit
from qwendesk.core.conversation import ChatTree
from qwendesk.core.errors import StoreFailure
from qwendesk.core.links import remove_tree
from qwendesk.core.observed import Observed, Subscribers
from qwendesk.core.paths import cache_folder
from qwendesk.core.translation import tr

if TYPE_CHECKING:
    from qwendesk.store.opening import Store, StoreReport


class ChatListState(msgspec.Struct, frozen=True, kw_only=True):
    current_id: str
    """Id of the open chat. The chat is added to `summaries` with its first message."""
    is_incognito: bool = False
    """Nothing of the open chat is written to disk."""
    is_loaded: bool = False
    """The store is open, and `summaries` contains its chats."""
    summaries: Mapping[str, ChatSummary] = {}
    """All chats that have a message, by id, archived ones included."""
    folders: tuple[Folder, ...] = ()
    """Sorted by name."""
    collapsed_folders: frozenset[str] = frozenset()
    """Ids of the folders whose chats are hidden in the list."""


class ChatOpened(msgspec.Struct, frozen=True):
    """Another chat was opened: an empty one, or one from the store."""

    chat_id: str
    tree: ChatTree
    settings: ChatSettings
    node_id: str = ""
    """Id of the message to jump to; "" for none."""
    position: ReadPosition = ReadPosition()
    draft: SavedDraft = SavedDraft()


class StoreProblem(msgspec.Struct, frozen=True):
    """A problem of the chats file that the user should know about."""

    title: str
    sentence: str
    backup: str = ""
    """Name of a backup that can be restored instead; "" if none is offered."""


class StoreWorksAgain(msgspec.Struct, frozen=True):
    """The last StoreProblem about saving is solved."""


ChatListEvent = ChatOpened | StoreProblem | StoreWorksAgain


_LAST_CHAT = "last_chat"


class ChatListService:
    """Opens the store, and chats from it. All methods are called on the event loop's thread.

    `chats` and `folders` are what the list consists of, with the actions on them.

    A view observes `state`, an `Observed[ChatListState]`, and subscribes with `subscribe` to the `ChatListEvent`s:
    another chat was opened, the store has a problem, or it works again.
    """

    def __init__(
        self,
        saver: StoreChatSaver,
        drafts: Drafts,
        current_id: str = "",
        *,
        on_deleted: Callable[[Iterable[str]], None] = lambda _chat_ids: None,
    ) -> None:
        """`current_id` is the id of the empty chat that the app starts with.

        `on_deleted` is called with the ids of chats that were deleted, although that can be undone.
        """
        self._saver = saver
        self._on_deleted = on_deleted
        self.drafts = drafts
        self._store: Store | None = None
        self._opened_store: asyncio.Future[tuple[Store | None, StoreReport | None]] | None = None
        self._current_id = current_id or new_id()
        self._inherited_settings = InheritedSettings()
        self._opening: object = None
        """Token of the latest call that opens a chat. Earlier calls stop when it changes."""
        self._is_loaded = False
        self._summary_reader = SummaryReader(self._on_summary_read, self._report)
        self._writes = PendingWrites(self._report)
        self._subscribers = Subscribers[ChatListEvent]()
        self.folders = FolderList(self._writes, self._update_state)
        self.chats = ListedChats(self._writes, self.folders, self._update_state)
        self._daily_backup = DailyBackup(self._report)
        self._unsubscribe = saver.subscribe(self._on_saver_event)
        self.state = Observed(self._current_state())

    def title_of(self, chat_id: str) -> str:
        """Return the title of a chat; "" if there is none."""
        summary = self.chats.summaries.get(chat_id)
        return summary.title if summary is not None else ""

    def subscribe(self, callback: Callable[[ChatListEvent], None]) -> Callable[[], None]:
        """Call `callback` with each event until the returned function is called."""
        return self._subscribers.add(callback)

    @property
    def current_id(self) -> str:
        """Id of the open chat. The chat is added to the list with its first message."""
        return self._current_id

    @property
    def is_incognito(self) -> bool:
        """Whether nothing of the open chat is written to disk."""
        return self._saver.is_excluded(self._current_id)

    async def start(self, folder: Path, may_reopen: MayReopen = always) -> None:
        """Open the store in `folder`, purge what the last run deleted, and open the chat that was open last.

        `may_reopen` is called with that chat's id first. If it returns False, the empty chat stays open.
        """
        # Shielded, so that `close` can close the store even if this is cancelled.
        self._opened_store = asyncio.ensure_future(asyncio.to_thread(_open_store, folder))
        store, report = await asyncio.shield(self._opened_store)
        if report is not None:
            self._subscribers.notify(StoreProblem(report.title, report.sentence, report.backup))
        if store is None:
            self._saver.give_up()
            return
        self._store = store
        self._saver.attach(store)
        self.drafts.attach(store.chats)
        self.chats.attach(store.chats)
        try:
            await self._load(store, may_reopen)
        except StoreFailure as failure:
            self._report(failure)
        self._daily_backup.start(store)

    async def _load(self, store: "Store", may_reopen: MayReopen) -> None:
        self._writes.add(store.chats.purge())
        self._writes.add(store.attachments.clean())
        listed, last, uncopied = await asyncio.to_thread(
            lambda: (store.chats.list(), store.chats.remembered(_LAST_CHAT), store.attachments.find_uncopied())
        )
        self._saver.copy_files(uncopied)
        if not uncopied:
            await asyncio.to_thread(_forget_frames)
        await self.folders.load(store.chats)
        self._is_loaded = True
        self.chats.add(listed)
        if self._has_begun():
            return
        reopens = last in self.chats.summaries and await may_reopen(last)
        if not self._has_begun():
            await (self.open(last) if reopens else self._restore_new_chat(self._current_id))

    def _has_begun(self) -> bool:
        """Return whether the user has opened a chat or written in the empty one."""
        return self._opening is not None or self._saver.has_written(self._current_id)

    async def close(self) -> None:
        """Return when everything is on disk and the store is closed."""
        self._unsubscribe()
        await self._daily_backup.close()
        await self.drafts.close()
        self._saver.close()
        await self._saver.wait_for_writes()
        await self._saver.wait_for_copies()
        await self._summary_reader.wait()
        if self._store is not None and self.chats.can_restore_deleted:
            self._writes.add(self._store.chats.purge())
            self._writes.add(self._store.attachments.clean())
        await self.wait_for_writes()
        store = (await self._opened_store)[0] if self._opened_store is not None else None
        if store is not None:
            await asyncio.to_thread(store.close)

    async def wait_for_writes(self) -> None:
        """Return when all writes requested so far have ended or failed."""
        self.drafts.save_now()
        await self.drafts.wait_for_writes()
        await self._saver.wait_for_writes()
        await self._writes.wait()

    async def use_backup(self, name: str) -> None:
        """Choose the backup that replaces the chats at the next start. Raises StoreFailure."""
        if self._store is not None:
            from qwendesk.store.opening import choose_backup  # noqa: PLC0415

            await asyncio.to_thread(choose_backup, self._store.folder, name)

    async def open(self, chat_id: str, node_id: str = "") -> None:
        """Open a chat of the list and show this message. The last call wins; an unknown id does nothing."""
        store, summary = self._store, self.chats.summaries.get(chat_id)
        if store is None or summary is None:
            return
        self._opening = this_call = object()
        await self.wait_for_writes()
        try:
            tree, position, stored = await asyncio.to_thread(
                lambda: (
                    store.attachments.with_copies(store.chats.load(chat_id)),
                    store.chats.read_position(chat_id),
                    store.chats.summary(chat_id),
                )
            )
        except StoreFailure as failure:
            self._report(failure)
            return
        draft = await self.drafts.get(chat_id)
        if self._opening is not this_call:
            return
        self._set_current(chat_id, remembered_as=chat_id)
        tree = shown_up_to(tree, node_id) if node_id else tree
        settings = (stored or summary).settings
        if any(node.message.is_damaged for node in tree.nodes.values()):
            settings = msgspec.structs.replace(settings, is_damaged=True)
            if store.chats.damage is not None:
                self._report(store.chats.damage)
        self._subscribers.notify(ChatOpened(chat_id, tree, settings, node_id, position, draft))

    def new(self, *, incognito: bool = False) -> None:
        """Open an empty chat. It is added to the list with its first message, unless it is incognito."""
        chat_id = new_id()
        if incognito:
            self._saver.exclude(chat_id)
        self._opening = object()
        self.drafts.save_now()
        self._set_current(chat_id)
        self._subscribers.notify(ChatOpened(chat_id, ChatTree(), ChatSettings()))

    def follow(self, chat_id: str) -> None:
        """Set the open chat after the chat service has opened another: an empty one, or a branch of the last one."""
        if chat_id != self._current_id:
            self._opening = object()
            self.drafts.save_now()
            self._set_current(chat_id)

    def remember_settings(self, settings: ChatSettings) -> None:
        """Save the settings that a new chat inherits from the open one, for the empty chat after the next start."""
        if self._store is None or not self._is_loaded or self.is_incognito:
            return
        write = self._inherited_settings.remember(self._store.chats, settings)
        if write is not None:
            self._writes.add(write)

    async def add_chats(self, chats: Iterable[tuple[ChatSummary, ChatTree]]) -> None:
        """Add imported chats under their own ids. Raises StoreFailure; chats added before the error are kept."""
        if self._store is None:
            raise StoreFailure(tr("Chats not added"), tr("Your chats file isn't open."))
        added: list[ChatSummary] = []
        try:
            for summary, tree in chats:
                for image in {image for node in tree.nodes.values() for image in node.message.all_images}:
                    await asyncio.wrap_future(self._store.attachments.save_copy(image))
                saving = asyncio.wrap_future(self._store.chats.save_tree(summary, tree))
                try:
                    await asyncio.shield(saving)
                finally:  # a caller that is cancelled meanwhile doesn't undo it: what is saved belongs in the list
                    if not saving.done():
                        await asyncio.wait({saving})
                    if saving.exception() is None:
                        added.append(summary)
        finally:
            self.chats.add(added)

    async def known_ids(self, ids: Iterable[str]) -> frozenset[str]:
        """Return the `ids` that belong to a chat or message, including deleted ones that can still be restored."""
        store, wanted = self._store, tuple(ids)
        return frozenset() if store is None else await asyncio.to_thread(store.chats.known_ids, wanted)

    async def tree(self, chat_id: str) -> ChatTree:
        """Return all messages of a chat of the list. Raises StoreFailure."""
        store = self._store
        if store is None:
            return ChatTree()
        await self.wait_for_writes()
        return await asyncio.to_thread(lambda: store.attachments.with_copies(store.chats.load(chat_id)))

    def delete(self, chat_ids: Iterable[str]) -> None:
        """Delete chats, and open an empty one if the open chat is among them."""
        deleted = self.chats.delete(chat_ids)
        self._on_deleted(deleted)
        if self._current_id in deleted:
            self.new()

    async def search(self, query: str, *, reasoning: bool = False) -> tuple[SearchHit, ...]:
        """Return where these words occur (see store/search.py); () while there is no store."""
        store = self._store
        if store is None:
            return ()
        try:
            return await asyncio.to_thread(lambda: store.search.find(query, reasoning=reasoning))
        except StoreFailure as failure:
            self._report(failure)
            return ()

    def change_draft(self, draft: SavedDraft) -> None:
        """Save the unsent message of the open chat."""
        if not self.is_incognito:
            self.drafts.change(self._current_id if self._current_id in self.chats.summaries else NEW_CHAT, draft)

    def save_read_position(self, chat_id: str, position: ReadPosition) -> None:
        if self._store is not None and chat_id in self.chats.summaries:
            self._writes.add(self._store.chats.save_read_position(chat_id, position))

    async def _restore_new_chat(self, chat_id: str) -> None:
        """Restore the draft and settings of the last run in the empty chat that the app starts with."""
        draft = await self.drafts.get(NEW_CHAT)
        settings = await self._inherited_settings.load(self._store.chats) if self._store is not None else ChatSettings()
        is_changed = draft != SavedDraft() or settings != ChatSettings()
        if self._current_id == chat_id and is_changed and chat_id not in self.chats.summaries:
            self._subscribers.notify(ChatOpened(chat_id, ChatTree(), settings, draft=draft))

    def _set_current(self, chat_id: str, *, remembered_as: str = "") -> None:
        """Set the open chat. `remembered_as` is the id of the chat to open at the next start; "" for an empty chat."""
        self._current_id = chat_id
        self._remember_last(remembered_as)
        self._update_state()

    def _remember_last(self, chat_id: str) -> None:
        if self._store is not None:
            self._writes.add(self._store.chats.remember(_LAST_CHAT, chat_id))

    def _on_saver_event(self, event: SaverEvent) -> None:
        match event:
            case ChatSaved(chat_id=chat_id):
                if self._store is not None:
                    self._summary_reader.read(self._store, chat_id)
            case SavingFailed(title=title, sentence=sentence):
                self._subscribers.notify(StoreProblem(title, sentence))
            case SavingWorksAgain():
                self._subscribers.notify(StoreWorksAgain())

    def _on_summary_read(self, read: ChatSummary) -> None:
        is_new = read.id not in self.chats.summaries
        self.chats.update(read)
        if is_new and read.id == self._current_id:
            self._remember_last(read.id)

    def _report(self, failure: StoreFailure) -> None:
        self._subscribers.notify(StoreProblem(failure.title, failure.sentence))

    def _update_state(self) -> None:
        self.state.set(self._current_state())

    def _current_state(self) -> ChatListState:
        return ChatListState(
            current_id=self._current_id,
            is_incognito=self.is_incognito,
            is_loaded=self._is_loaded,
            summaries=dict(self.chats.summaries),
            folders=self.folders.folders,
            collapsed_folders=self.folders.collapsed,
        )


def _open_store(folder: Path) -> "tuple[Store | None, StoreReport | None]":
    """Import and open the store: on its thread, because the window opens sooner without SQLite."""
    from qwendesk.store.opening import open_store  # noqa: PLC0415

    return open_store(folder)


# `qwendesk ask` may be reading frames of a clip at this moment.
_FRAMES_KEPT_S = 3600.0


def _forget_frames() -> None:
    """Delete frames of clips in the cache: chats have copies of theirs, and those of deleted chats must go. Blocks."""
    for folder in (cache_folder() / "clips").glob("*"):
        with contextlib.suppress(OSError):  # the next start tries again
            if time.time() - folder.stat().st_mtime > _FRAMES_KEPT_S:
                remove_tree(folder, cache_folder())
