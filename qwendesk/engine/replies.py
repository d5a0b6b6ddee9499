"""What waits for the worker's events: one Reply per request, and the stream of one answer."""

import asyncio
from collections.abc import Callable

from qwendesk.core.failures import EngineDeath
from qwendesk.engine.contract import AnswerItem
from qwendesk.engine.protocol import (
    AnyEvent,
    Delta,
    Devices,
    Finished,
    Loaded,
    LoadRefused,
    Measured,
    PromptProgress,
    RequestFailed,
    Unloaded,
    Welcome,
)
from qwendesk.engine.watchdog import TemplateGuard

LastEvent = Welcome | Loaded | LoadRefused | Unloaded | Measured | Finished | RequestFailed | Devices
"""Each of these ends its request."""


class Reply:
    """The events of one request, in order; the last one is a LastEvent or an EngineDeath."""

    def __init__(self, request_id: int, *, is_public: bool) -> None:
        self.id = request_id
        self.is_public = is_public
        """Whether the engine's state follows its events; counting tokens meanwhile changes nothing."""
        self.cancelled = False
        self._items: asyncio.Queue[AnyEvent | EngineDeath] = asyncio.Queue()
        self._deadline: asyncio.TimerHandle | None = None
        self._guard: TemplateGuard | None = None

    def put(self, item: AnyEvent | EngineDeath) -> None:
        self._items.put_nowait(item)

    async def next(self) -> AnyEvent | EngineDeath:
        return await self._items.get()

    async def last(self) -> LastEvent | EngineDeath:
        """Waits for the end; what came before is dropped."""
        while True:
            item = await self.next()
            if isinstance(item, LastEvent | EngineDeath):
                return item

    def expire_in(self, seconds: float, expired: Callable[[], None]) -> None:
        """Call `expired` unless the reply ends, or gets another limit, before."""
        self.keep_alive()
        self._deadline = asyncio.get_running_loop().call_later(seconds, expired)

    def keep_alive(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def guard_with(self, guard: TemplateGuard | None) -> None:
        """Replaces the guard that runs, if one does."""
        if self._guard is not None:
            self._guard.stop()
        self._guard = guard

    def close(self) -> None:
        """Stops all clocks."""
        self.keep_alive()
        self.guard_with(None)


class WorkerAnswer:
    """One answer as it comes; see AnswerStream for the contract."""

    def __init__(self, reply: Reply, cancel: Callable[[int], None], answer_now: Callable[[int], None]) -> None:
        self._reply = reply
        self._cancel = cancel
        self._answer_now = answer_now
        self._loop = asyncio.get_running_loop()
        self._ended = False

    def __aiter__(self) -> "WorkerAnswer":
        return self

    async def __anext__(self) -> AnswerItem:
        if self._ended:
            raise StopAsyncIteration
        try:
            item = await self._reply.next()
            while not isinstance(item, PromptProgress | Delta | Finished | RequestFailed | EngineDeath):
                item = await self._reply.next()
        except asyncio.CancelledError:
            self._cancel(self._reply.id)
            raise
        self._ended = isinstance(item, Finished | RequestFailed | EngineDeath)
        return item

    async def cancel(self) -> None:
        if not self._ended:
            self._cancel(self._reply.id)

    async def answer_now(self) -> None:
        if not self._ended:
            self._answer_now(self._reply.id)

    def __del__(self) -> None:
        # Nobody reads on. This may run on any thread, and after the loop.
        if not self._ended and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._cancel, self._reply.id)
