"""Background work on the store: writes, reading changed summaries, and the daily backup.

Use all classes on the event loop's thread. Failures are passed to `report`.
"""

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import msgspec

from qwendesk.chat.chat_settings import inherited_settings
from qwendesk.core.chats import ChatSettings, ChatSummary
from qwendesk.core.errors import FailureGuard
from qwendesk.core.json_decoding import decode_json
from qwendesk.store.chats import ChatStore
from qwendesk.store.database import StoreFailure
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

    def read(self, store: Store, chat_id: str) -> None:
        """Read the summary soon. Several calls until then cause only one read."""
        self._outdated.add(chat_id)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._read(store))

    async def wait(self) -> None:
        """Return when all requested summaries are read."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _read(self, store: Store) -> None:
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

    def remember(self, store: ChatStore, settings: ChatSettings) -> Future[None] | None:
        """Save what a new chat inherits from `settings`. Return the write, or None if nothing has changed."""
        inherited = inherited_settings(settings)
        if inherited == self._latest:
            return None
        self._latest = inherited
        return store.remember(_INHERITED_SETTINGS, msgspec.json.encode(inherited).decode())

    async def load(self, store: ChatStore) -> ChatSettings:
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

    def start(self, store: Store) -> None:
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

    async def _run(self, store: Store, closing: asyncio.Event) -> None:
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
