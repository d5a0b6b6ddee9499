"""The list of chats and which one is open: all that can be done with a chat as a whole.

Everything here is in memory and changes at once; the store follows. Without a store (a newer version's file, a disk
that refuses) the app goes on with what is in memory, and says so.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from qwendesk.core.chat_tree import ChatTree
from qwendesk.core.chats import ChatSettings, ChatSummary, Folder, ReadPosition, SavedDraft, SearchHit
from qwendesk.core.subscribers import Subscribers
from qwendesk.services.chat.chats_news import ChatOpened, ChatsNews, ListChanged, StoreTold, StoreWorks
from qwendesk.services.chat.choices import Choices
from qwendesk.services.chat.copying import leading_to, new_id
from qwendesk.services.chat.drafts import NEW_CHAT, Drafts
from qwendesk.services.chat.folder_list import FolderList
from qwendesk.services.chat.fresh_rows import FreshRows
from qwendesk.services.chat.keeping import KeeperNews, Kept, KeptAgain, NotKept, StoreKeeper
from qwendesk.services.chat.writes import Writes
from qwendesk.store.database import StoreFailure
from qwendesk.store.opening import Store, StoreReport, open_store

_LAST_CHAT = "last_chat"
__all__ = ["ChatOpened", "ChatsNews", "ChatsService", "ListChanged", "StoreTold", "StoreWorks"]


class ChatsService:
    """Owns the list. All methods are called on the event loop's thread."""

    def __init__(
        self, keeper: StoreKeeper, drafts: Drafts, current_id: str = "", *, now: Callable[[], float] = time.time
    ) -> None:
        """`current_id` is the empty chat that the app begins with."""
        self._keeper = keeper
        self.drafts = drafts
        self._now = now
        self._store: Store | None = None
        self._file: asyncio.Future[tuple[Store | None, StoreReport | None]] | None = None
        self._summaries: dict[str, ChatSummary] = {}
        self._deleted: tuple[ChatSummary, ...] = ()
        self._undo: Callable[[], None] | None = None
        self._current_id = current_id or new_id()
        self._choices = Choices()
        self._opening: object = None
        self._is_open = False
        self._fresh = FreshRows(self._take_row, self._tell)
        self._writes = Writes(self._tell)
        self._subscribers = Subscribers[ChatsNews]()
        self._folders = FolderList(self._writes, self._on_folders)
        self._unsubscribe = keeper.subscribe(self._on_kept)

    def subscribe(self, callback: Callable[[ChatsNews], None]) -> Callable[[], None]:
        """Call `callback` with each piece of news. Returns what ends it."""
        return self._subscribers.add(callback)

    @property
    def summaries(self) -> Mapping[str, ChatSummary]:
        """Every chat with a message, by id; archived ones too."""
        return self._summaries

    @property
    def folders(self) -> tuple[Folder, ...]:
        """By name."""
        return self._folders.folders

    @property
    def folded(self) -> frozenset[str]:
        """Ids of the folders whose chats are not shown in the list."""
        return self._folders.folded

    def toggle_folder(self, folder_id: str) -> None:
        """Fold it, or open it again."""
        self._folders.toggle(folder_id)

    @property
    def current_id(self) -> str:
        """The open chat; it is in the list once it has a message."""
        return self._current_id

    @property
    def is_open(self) -> bool:
        """Whether the file is open and the list is what it holds."""
        return self._is_open

    @property
    def is_incognito(self) -> bool:
        """Whether nothing of the open chat is written."""
        return self._keeper.is_left_out(self._current_id)

    async def start(self, folder: Path) -> None:
        """Opens the store in `folder`, ends what was deleted last time, and opens the chat that was open then."""
        # Not lost when this is cancelled: `close` must end what was opened.
        self._file = asyncio.ensure_future(asyncio.to_thread(open_store, folder))
        store, report = await asyncio.shield(self._file)
        if report is not None:
            self._subscribers.notify(StoreTold(report.title, report.sentence))
        if store is None:
            self._keeper.give_up()
            return
        self._store = store
        self._keeper.attach(store)
        self.drafts.attach(store.chats)
        self._folders.attach(store.chats)
        try:
            await self._take_list(store)
        except StoreFailure as failure:
            self._tell(failure)

    async def _take_list(self, store: Store) -> None:
        self._writes.add(store.chats.purge(self._now()))
        self._writes.add(store.attachments.clean())
        listed, last = await asyncio.to_thread(lambda: (store.chats.list(), store.chats.remembered(_LAST_CHAT)))
        await self._folders.read()
        self._summaries = {each.id: each for each in listed} | self._summaries
        self._is_open = True
        self._subscribers.notify(ListChanged())
        if self._opening is None and not self._keeper.has_written(self._current_id):
            await (self.open(last) if last in self._summaries else self._open_new(self._current_id))

    async def close(self) -> None:
        """Ends when everything is on the disk."""
        self._unsubscribe()
        await self.drafts.close()
        self._keeper.close()
        await self._keeper.settled()
        await self._fresh.settled()
        if self._store is not None and self._deleted:
            self._writes.add(self._store.chats.purge(self._now() + 1))
            self._writes.add(self._store.attachments.clean())
        await self.written()
        store = (await self._file)[0] if self._file is not None else None
        if store is not None:
            await asyncio.to_thread(store.close)

    async def open(self, chat_id: str, node_id: str = "") -> None:
        """Shows a chat of the list, with this message in what is shown. The last call wins; nothing for others."""
        store, summary = self._store, self._summaries.get(chat_id)
        if store is None or summary is None:
            return
        self._opening = ticket = object()
        self.drafts.save_now()
        await self.written()
        try:
            tree, position, fresh = await asyncio.to_thread(
                lambda: (
                    store.attachments.in_place(store.chats.load(chat_id)),
                    store.chats.read_position(chat_id),
                    store.chats.summary(chat_id),
                )
            )
        except StoreFailure as failure:
            self._tell(failure)
            return
        draft = await self.drafts.get(chat_id)
        if self._opening is not ticket:
            return
        self._current_id = chat_id
        self._remember(chat_id)
        tree = leading_to(tree, node_id) if node_id else tree
        settings = (fresh or summary).settings
        self._subscribers.notify(ChatOpened(chat_id, tree, settings, node_id, position, draft))

    def new(self, *, incognito: bool = False) -> None:
        """Opens an empty chat; it joins the list with its first message, an incognito one never does."""
        chat_id = new_id()
        if incognito:
            self._keeper.leave_out(chat_id)
        self._opening = object()
        self.drafts.save_now()
        self._current_id = chat_id
        self._remember("")
        self._subscribers.notify(ChatOpened(chat_id, ChatTree(), ChatSettings()))

    def note_settings(self, settings: ChatSettings) -> None:
        """Those of the open chat: what a new one takes over of them is there again after a start without a chat."""
        if self._store is not None and self._is_open and not self.is_incognito:
            writing = self._choices.note(self._store.chats, settings)
            if writing is not None:
                self._writes.add(writing)

    def follow(self, chat_id: str) -> None:
        """The chat service opened another chat by itself: an empty one, or a branch of the one before."""
        if chat_id != self._current_id:
            self._opening = object()
            self.drafts.save_now()
            self._current_id = chat_id
            self._remember("")

    async def add_as_is(self, chats: Iterable[tuple[ChatSummary, ChatTree]]) -> None:
        """Chats under the ids they have: for an import. Raises StoreFailure; those before it are kept then."""
        if self._store is None:
            raise StoreFailure(
                "Chats are not open", "The file of your chats could not be opened, so none can be added."
            )
        try:
            for summary, tree in chats:
                for image in {image for node in tree.nodes.values() for image in node.message.images}:
                    await asyncio.wrap_future(self._store.attachments.keep(image))
                await asyncio.wrap_future(self._store.chats.save_tree(summary, tree))
                self._summaries[summary.id] = summary
        finally:
            self._subscribers.notify(ListChanged())

    async def known_ids(self, ids: Iterable[str]) -> frozenset[str]:
        """Those that a chat or message has already, deleted ones that can still come back included."""
        store = self._store
        wanted = tuple(ids)
        return frozenset() if store is None else await asyncio.to_thread(store.chats.known_ids, wanted)

    async def tree(self, chat_id: str) -> ChatTree:
        """All messages of a chat of the list. Raises StoreFailure."""
        store = self._store
        if store is None:
            return ChatTree()
        await self.written()
        return await asyncio.to_thread(lambda: store.attachments.in_place(store.chats.load(chat_id)))

    def rename(self, chat_id: str, title: str) -> None:
        """An empty title changes nothing."""
        if title.strip():
            self._change((chat_id,), title=" ".join(title.split()))

    def pin(self, chat_ids: Iterable[str], *, pinned: bool) -> None:
        self._change(chat_ids, pinned=pinned)

    def archive(self, chat_ids: Iterable[str], *, archived: bool) -> None:
        """Until `undo`."""
        self._change_for_now(tuple(chat_ids), archived=archived)

    def move(self, chat_ids: Iterable[str], folder_id: str) -> None:
        """Into a folder, or out of all of them (""), until `undo`."""
        self._change_for_now(tuple(chat_ids), folder_id=folder_id)

    def delete(self, chat_ids: Iterable[str]) -> None:
        """Takes chats out of the list; `undo` brings the last ones back, until the app ends."""
        gone = tuple(self._summaries.pop(chat_id) for chat_id in tuple(chat_ids) if chat_id in self._summaries)
        if not gone or self._store is None:
            return
        self._deleted, self._undo = gone, self._bring_back
        self._writes.add(self._store.chats.set_deleted([each.id for each in gone], self._now()))
        if any(each.id == self._current_id for each in gone):
            self.new()
        self._subscribers.notify(ListChanged())

    def undo(self) -> None:
        """Takes back the last deletion, archiving, move, or removal of a folder; nothing when there is none."""
        undo, self._undo = self._undo, None
        if undo is not None:
            undo()

    def _bring_back(self) -> None:
        back, self._deleted = self._deleted, ()
        if back and self._store is not None:
            self._writes.add(self._store.chats.set_deleted([each.id for each in back], None))
            self._summaries |= {each.id: each for each in back}
            self._subscribers.notify(ListChanged())

    def add_folder(self, name: str) -> Folder:
        return self._folders.save(Folder(new_id(), " ".join(name.split())))

    def rename_folder(self, folder_id: str, name: str) -> None:
        if name.strip():
            self._folders.save(Folder(folder_id, " ".join(name.split())))

    def delete_folder(self, folder_id: str) -> None:
        """Its chats stay. It comes back by `undo`."""
        inside = tuple(each for each in self._summaries.values() if each.folder_id == folder_id)
        self._change((each.id for each in inside), folder_id="")
        gone = self._folders.remove(folder_id)
        if gone is not None:
            self._undo = partial(self._put_back, inside, gone)

    async def search(self, query: str, *, reasoning: bool = False) -> tuple[SearchHit, ...]:
        """Where these words are; see store/search.py. Nothing while there is no store."""
        store = self._store
        if store is None:
            return ()
        try:
            return await asyncio.to_thread(lambda: store.search.find(query, reasoning=reasoning))
        except StoreFailure as failure:
            self._tell(failure)
            return ()

    def change_draft(self, draft: SavedDraft) -> None:
        """What the composer of the open chat holds now."""
        if not self.is_incognito:
            self.drafts.change(self._current_id if self._current_id in self._summaries else NEW_CHAT, draft)

    def save_read_position(self, chat_id: str, position: ReadPosition) -> None:
        if self._store is not None and chat_id in self._summaries:
            self._writes.add(self._store.chats.save_read_position(chat_id, position))

    async def written(self) -> None:
        """Returns when the disk has all that was asked for before."""
        self.drafts.save_now()
        await self.drafts.written()
        await self._keeper.settled()
        await self._writes.settled()

    async def _open_new(self, chat_id: str) -> None:
        """The empty chat the app begins with, and the question that was half written when it ended."""
        draft = await self.drafts.get(NEW_CHAT)
        chosen = await self._choices.get(self._store.chats) if self._store is not None else ChatSettings()
        something = draft != SavedDraft() or chosen != ChatSettings()
        if self._current_id == chat_id and something and chat_id not in self._summaries:
            self._subscribers.notify(ChatOpened(chat_id, ChatTree(), chosen, draft=draft))

    def _change(self, chat_ids: Iterable[str], **changes: Any) -> None:
        for chat_id in chat_ids:
            before = self._summaries.get(chat_id)
            if before is None:
                continue
            after = msgspec.structs.replace(before, **changes)
            self._summaries[chat_id] = after
            if self._store is not None and after != before:
                self._writes.add(self._store.chats.save_row(after))
        self._subscribers.notify(ListChanged())

    def _change_for_now(self, chat_ids: tuple[str, ...], **changes: Any) -> None:
        before = tuple(self._summaries[chat_id] for chat_id in chat_ids if chat_id in self._summaries)
        self._undo = partial(self._put_back, before)
        self._change(chat_ids, **changes)

    def _put_back(self, rows: Iterable[ChatSummary], folder: Folder | None = None) -> None:
        """Archive mark and folder as they were; the folder first, because the rows name it."""
        if folder is not None:
            self._folders.save(folder)
        for row in rows:
            self._change((row.id,), archived=row.archived, folder_id=row.folder_id)

    def _on_folders(self) -> None:
        self._subscribers.notify(ListChanged())

    def _remember(self, chat_id: str) -> None:
        if self._store is not None:
            self._writes.add(self._store.chats.remember(_LAST_CHAT, chat_id))

    def _on_kept(self, news: KeeperNews) -> None:
        match news:
            case Kept(chat_id=chat_id):
                if self._store is not None:
                    self._fresh.read(self._store, chat_id)
            case NotKept(title=title, sentence=sentence):
                self._subscribers.notify(StoreTold(title, sentence))
            case KeptAgain():
                self._subscribers.notify(StoreWorks())

    def _take_row(self, found: ChatSummary) -> None:
        """Of a chat that is known only what a message changes: the rest is newer here than on the disk."""
        known = self._summaries.get(found.id)
        if known is None:
            self._summaries[found.id] = found
            if found.id == self._current_id:
                self._remember(found.id)
        else:
            title = known.title or found.title
            row = msgspec.structs.replace(known, changed_s=found.changed_s, title=title, settings=found.settings)
            if row == known:
                return
            self._summaries[found.id] = row
        self._subscribers.notify(ListChanged())

    def _tell(self, failure: StoreFailure) -> None:
        self._subscribers.notify(StoreTold(failure.title, failure.sentence))
