"""Reads the rows of chats that got a message, one after the other, however fast the messages come."""

import asyncio
from collections.abc import Callable

from qwendesk.core.chats import ChatSummary
from qwendesk.store.database import StoreFailure
from qwendesk.store.opening import Store


class FreshRows:
    """`take` gets each row as it is on the disk; `tell` why one could not be read."""

    def __init__(self, take: Callable[[ChatSummary], None], tell: Callable[[StoreFailure], None]) -> None:
        self._take, self._tell = take, tell
        self._stale: set[str] = set()
        self._reading: asyncio.Task[None] | None = None

    def read(self, store: Store, chat_id: str) -> None:
        """Soon, and once for all that is asked meanwhile."""
        self._stale.add(chat_id)
        if self._reading is None:
            self._reading = asyncio.get_running_loop().create_task(self._read(store))

    async def settled(self) -> None:
        if self._reading is not None:
            await asyncio.wait([self._reading])

    async def _read(self, store: Store) -> None:
        try:
            while self._stale:
                found = await asyncio.to_thread(store.chats.summary, self._stale.pop())
                if found is not None:
                    self._take(found)
        except StoreFailure as failure:
            self._tell(failure)
        finally:
            self._reading = None
