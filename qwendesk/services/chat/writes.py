"""What was given to the disk and is not on it yet."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from qwendesk.store.database import StoreFailure


class Writes:
    """Nobody waits for one write; `tell` gets the failure of one. For the event loop's thread."""

    def __init__(self, tell: Callable[[StoreFailure], None]) -> None:
        self._tell = tell
        self._pending: set[asyncio.Future[Any]] = set()

    def add(self, write: Future[Any]) -> None:
        pending = asyncio.wrap_future(write)
        self._pending.add(pending)
        pending.add_done_callback(self._on_done)

    async def settled(self) -> None:
        """Returns when all of them have ended."""
        while self._pending:
            await asyncio.wait(self._pending)

    def _on_done(self, done: asyncio.Future[Any]) -> None:
        self._pending.discard(done)
        failure = done.exception()
        if isinstance(failure, StoreFailure):
            self._tell(failure)
        elif failure is not None:
            raise failure
