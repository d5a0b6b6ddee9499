"""How a chat gets onto the disk while it goes on: nobody waits for it, and a bad disk stops no answer."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import msgspec

from qwendesk.core.chat_tree import ChatNode
from qwendesk.core.chats import ChatSettings
from qwendesk.core.messages import ImagePart
from qwendesk.core.subscribers import Subscribers
from qwendesk.store.chats import ChatStore
from qwendesk.store.database import StoreFailure
from qwendesk.store.opening import Store

GROWING_EVERY_S = 0.5
"""How often a streaming answer is saved: with the time of a write, less than 1 s of text is lost by a crash."""


class Kept(msgspec.Struct, frozen=True):
    """Something of this chat is on the disk that its row in the list may show."""

    chat_id: str


class NotKept(msgspec.Struct, frozen=True):
    """Nothing can be saved at present. Told once until it works again; what waits is saved then."""

    title: str
    sentence: str


class KeptAgain(msgspec.Struct, frozen=True):
    """Saving works again, and all that waited is saved."""


KeeperNews = Kept | NotKept | KeptAgain


class ChatKeeper(Protocol):
    """Where the chat service puts what must last. All methods are called on the event loop's thread.

    Those without `async` return at once and never fail: a disk that does is news to whoever subscribed. What is saved
    for one chat gets onto the disk in the order of the calls.
    """

    def save(self, chat_id: str, node: ChatNode) -> None:
        """Adds or replaces a message that is whole: a question, or an answer that ended. A new one is shown."""

    def grow(self, chat_id: str, node_id: str, current: Callable[[], ChatNode]) -> None:
        """To be called with each piece of an answer, first when it begins (with its question saved before).

        `current` gives the answer so far; it is called every half second at most, and never after `save` of the same
        node. So calling this for every token costs next to nothing.
        """

    def show(self, chat_id: str, parent_id: str, node_id: str) -> None:
        """Which version is shown below `parent_id` ("" for the first message)."""

    def delete(self, chat_id: str, node_id: str) -> None:
        """Takes a message away with everything below it."""

    def save_settings(self, chat_id: str, settings: ChatSettings) -> None:
        """What the chat has of its own; for one without a message it is saved with its first."""

    def leave_out(self, chat_id: str) -> None:
        """Write nothing of this chat from now on (incognito)."""

    def is_left_out(self, chat_id: str) -> bool:
        """Whether nothing of this chat is written."""

    async def settled(self) -> None:
        """Returns when everything asked for so far is on the disk, or could not be saved."""


class NothingKept:
    """A keeper for a chat that is never written, and for tests that look at no disk."""

    def save(self, chat_id: str, node: ChatNode) -> None:
        pass

    def grow(self, chat_id: str, node_id: str, current: Callable[[], ChatNode]) -> None:
        pass

    def show(self, chat_id: str, parent_id: str, node_id: str) -> None:
        pass

    def delete(self, chat_id: str, node_id: str) -> None:
        pass

    def save_settings(self, chat_id: str, settings: ChatSettings) -> None:
        pass

    def leave_out(self, chat_id: str) -> None:
        pass

    def is_left_out(self, chat_id: str) -> bool:
        """Not kept is not secret: smaller copies of pictures may lie in the cache."""
        return False

    async def settled(self) -> None:
        pass


_Key = tuple[str, str, str]
"""Chat, what is saved, and of which message: a later write with the same key makes an earlier one needless."""


_Save = Callable[[], Future[Any]]


class _Growing(msgspec.Struct):
    chat_id: str
    current: Callable[[], ChatNode]
    writing: Future[None] | None = None


class StoreKeeper:
    """Keeps chats in the store, but for those that are left out. What comes before the store is open waits for it."""

    def __init__(self, store: Store | None = None, *, growing_every_s: float = GROWING_EVERY_S) -> None:
        self._opened = store
        self._given_up = False
        self._every_s = growing_every_s
        self._left_out: set[str] = set()
        self._settings: dict[str, ChatSettings] = {}
        self._growing: dict[str, _Growing] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._pending: set[asyncio.Future[Any]] = set()
        self._failed: dict[_Key, _Save] = {}
        self._works = True
        self._written_to: set[str] = set()
        self._subscribers = Subscribers[KeeperNews]()

    def attach(self, store: Store) -> None:
        """The store is open now."""
        self._opened = store
        self._retry()

    def give_up(self) -> None:
        """There is no store this time: nothing is kept."""
        self._given_up = True
        self._failed.clear()
        self.close()

    @property
    def _store(self) -> ChatStore:
        if self._opened is None:
            raise StoreFailure("Chats are not open", "The file of your chats is not open.")
        return self._opened.chats

    def subscribe(self, callback: Callable[[KeeperNews], None]) -> Callable[[], None]:
        """Call `callback` with each piece of news. Returns what ends it."""
        return self._subscribers.add(callback)

    def leave_out(self, chat_id: str) -> None:
        """Write nothing of this chat from now on (incognito)."""
        self._left_out.add(chat_id)
        self._growing = {name: growing for name, growing in self._growing.items() if growing.chat_id != chat_id}
        self._failed = {key: save for key, save in self._failed.items() if key[0] != chat_id}

    def is_left_out(self, chat_id: str) -> bool:
        return chat_id in self._left_out

    def has_written(self, chat_id: str) -> bool:
        """Whether anything of this chat was saved, or waits to be, since the app began."""
        return chat_id in self._written_to

    def save(self, chat_id: str, node: ChatNode) -> None:
        self._growing.pop(node.id, None)
        for image in node.message.images:
            self._write((chat_id, "file", image.sha256), partial(self._keep_file, image))
        self._write((chat_id, "node", node.id), lambda: self._store.save_node(chat_id, node))
        if not node.parent_id and chat_id in self._settings:
            # They may have been chosen before the chat had a message, and so before it was on the disk.
            self.save_settings(chat_id, self._settings[chat_id])

    def grow(self, chat_id: str, node_id: str, current: Callable[[], ChatNode]) -> None:
        if self._given_up or chat_id in self._left_out or node_id in self._growing:
            return
        self._growing[node_id] = _Growing(chat_id, current)
        self._save_growing()

    def show(self, chat_id: str, parent_id: str, node_id: str) -> None:
        self._write((chat_id, "shown", parent_id), lambda: self._store.set_shown(chat_id, parent_id, node_id))

    def delete(self, chat_id: str, node_id: str) -> None:
        self._growing.pop(node_id, None)
        self._write((chat_id, "delete", node_id), lambda: self._store.delete_node(chat_id, node_id))

    def save_settings(self, chat_id: str, settings: ChatSettings) -> None:
        self._settings[chat_id] = settings
        self._write((chat_id, "settings", ""), lambda: self._store.save_settings(chat_id, settings))

    async def settled(self) -> None:
        self._retry()
        while self._pending:
            await asyncio.wait(self._pending)

    def close(self) -> None:
        """Stops saving what grows. Call `settled` afterwards."""
        self._growing.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _save_growing(self) -> None:
        """Saves what grew, unless the disk is not done with it yet, and looks again later while something grows."""
        self._timer = None
        for node_id, growing in tuple(self._growing.items()):
            if growing.writing is None or growing.writing.done():
                self._save_grown(node_id, growing)
        if self._growing:
            self._timer = asyncio.get_running_loop().call_later(self._every_s, self._save_growing)

    def _save_grown(self, node_id: str, growing: _Growing) -> None:
        node = growing.current()

        def save() -> Future[None]:
            growing.writing = self._store.save_node(growing.chat_id, node, growing=True)
            return growing.writing

        self._write((growing.chat_id, "node", node_id), save)

    def _write(self, key: _Key, save: _Save) -> None:
        if self._given_up or key[0] in self._left_out:
            return
        self._written_to.add(key[0])
        self._retry()
        self._submit(key, save)

    def _keep_file(self, image: ImagePart) -> Future[Path | None]:
        if self._opened is None:
            raise StoreFailure("Chats are not open", "The file of your chats is not open.")
        return self._opened.attachments.keep(image)

    def _retry(self) -> None:
        """What could not be saved before, in its order: what comes now may follow on it."""
        failed, self._failed = self._failed, {}
        for key, save in failed.items():
            self._submit(key, save)

    def _submit(self, key: _Key, save: _Save) -> None:
        if self._opened is None:
            self._failed[key] = save
            return
        try:
            pending = asyncio.wrap_future(save())
        except StoreFailure as failure:
            self._not_kept(key, save, failure)
            return
        self._pending.add(pending)
        pending.add_done_callback(lambda done: self._on_done(key, save, done))

    def _on_done(self, key: _Key, save: _Save, done: asyncio.Future[Any]) -> None:
        self._pending.discard(done)
        if done.cancelled():
            return
        failure = done.exception()
        if isinstance(failure, StoreFailure):
            self._not_kept(key, save, failure)
        elif failure is not None:
            raise failure
        else:
            if not self._works and not self._failed:
                self._works = True
                self._subscribers.notify(KeptAgain())
            self._subscribers.notify(Kept(key[0]))

    def _not_kept(self, key: _Key, save: _Save, failure: StoreFailure) -> None:
        self._failed[key] = save
        if self._works:
            self._works = False
            self._subscribers.notify(NotKept(failure.title, failure.sentence))
