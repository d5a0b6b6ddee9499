"""Drafts saves unsent messages, at intervals while the user types, and at once when another chat is opened."""

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from qwendesk.core.chats import SavedDraft
from qwendesk.core.errors import StoreFailure

if TYPE_CHECKING:
    from qwendesk.store.chats import ChatStore

SAVE_EVERY_S = 0.5
# Key of the draft of a chat without a message.
NEW_CHAT = ""


class Drafts:
    """Owns the drafts of all chats. All methods are called on the event loop's thread."""

    def __init__(self, *, every_s: float = SAVE_EVERY_S) -> None:
        self._store: ChatStore | None = None
        self._every_s = every_s
        self._unsaved: dict[str, SavedDraft] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._pending: set[asyncio.Future[Any]] = set()

    def attach(self, store: "ChatStore") -> None:
        """Save to this store from now on."""
        self._store = store

    def change(self, key: str, draft: SavedDraft) -> None:
        """Save a draft soon. Don't call this for an incognito chat."""
        self._unsaved[key] = draft
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._every_s, self.save_now)

    async def get(self, key: str) -> SavedDraft:
        """Return the draft of a chat; an empty one if it can't be read."""
        if key in self._unsaved:
            return self._unsaved[key]
        if self._store is None:
            return SavedDraft()
        await self.wait_for_writes()
        try:
            return await asyncio.to_thread(self._store.draft, key)
        except StoreFailure:
            return SavedDraft()

    def save_now(self) -> None:
        """Start writing the unsaved drafts. A draft that can't be written is tried again later."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._store is None:
            return
        unsaved, self._unsaved = self._unsaved, {}
        for key, draft in unsaved.items():
            try:
                pending = asyncio.wrap_future(self._store.save_draft(key, draft, time.time()))
            except StoreFailure:
                continue
            self._pending.add(pending)
            pending.add_done_callback(partial(self._on_done, key, draft))

    async def close(self) -> None:
        self.save_now()
        await self.wait_for_writes()
        if self._timer is not None:
            self._timer.cancel()

    async def wait_for_writes(self) -> None:
        while self._pending:
            await asyncio.wait(self._pending)

    def _on_done(self, key: str, draft: SavedDraft, done: asyncio.Future[Any]) -> None:
        self._pending.discard(done)
        if isinstance(done.exception(), StoreFailure):
            self._unsaved.setdefault(key, draft)
