"""Receivers of the worker's events: one Reply per request, and the stream of one answer."""

import asyncio
from collections.abc import Callable

import msgspec

from qwendesk.core.failures import EngineExit
from qwendesk.core.translation import tr
from qwendesk.engine.contract import AnswerItem
from qwendesk.engine.protocol import (
    AnyEvent,
    Benched,
    BenchProgress,
    Devices,
    Finished,
    Loaded,
    LoadRefused,
    Measured,
    RequestFailed,
    StateSaved,
    Streamed,
    Tokenized,
    Unloaded,
    Warmed,
    Welcome,
)
from qwendesk.engine.watchdog import TemplateGuard

# The events that end a request.
LastEvent = (
    Welcome
    | Loaded
    | LoadRefused
    | Unloaded
    | Measured
    | Tokenized
    | Warmed
    | StateSaved
    | Streamed
    | Benched
    | Finished
    | RequestFailed
    | Devices
)


class Reply:
    """The events of one request, in order. The last one is a LastEvent or an EngineExit."""

    def __init__(self, request_id: int, *, is_public: bool, is_load: bool = False) -> None:
        self.id, self.is_load = request_id, is_load
        self.is_public = is_public
        """Whether the events change the engine's state. Those of background token counts don't."""
        self.cancelled_at: float | None = None
        """When the request was cancelled, by the event loop's clock; None if it was not."""
        self.is_acknowledged = False
        """Whether the worker has confirmed the cancellation."""
        self.last_event: AnyEvent | EngineExit | None = None
        self.last_event_at = asyncio.get_running_loop().time()
        """When the last event arrived, by the event loop's clock; before the first event, when the request was made."""
        self._items: asyncio.Queue[AnyEvent | EngineExit] = asyncio.Queue()
        self._deadline: asyncio.TimerHandle | None = None
        self._guard: TemplateGuard | None = None

    @property
    def is_cancelled(self) -> bool:
        return self.cancelled_at is not None

    def put(self, item: AnyEvent | EngineExit) -> None:
        self.last_event, self.last_event_at = item, asyncio.get_running_loop().time()
        self._items.put_nowait(item)

    async def next(self) -> AnyEvent | EngineExit:
        return await self._items.get()

    async def last(self, show: Callable[[BenchProgress], None] | None = None) -> LastEvent | EngineExit:
        """Wait for the last event and return it. The events before it are dropped, but progress is shown by `show`."""
        while True:
            item = await self.next()
            if isinstance(item, LastEvent | EngineExit):
                return item
            if show is not None and isinstance(item, BenchProgress):
                show(item)

    def expire_in(self, seconds: float, expired: Callable[[], None]) -> None:
        """Call `expired` after `seconds`, unless the reply is closed or gets another limit before that."""
        self._cancel_deadline()
        self._deadline = asyncio.get_running_loop().call_later(seconds, expired)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def guard_with(self, guard: TemplateGuard | None) -> None:
        """Stop the current guard, if any, and replace it."""
        if self._guard is not None:
            self._guard.stop()
        self._guard = guard

    def close(self) -> None:
        """Stop the deadline and the guard."""
        self._cancel_deadline()
        self.guard_with(None)


class WorkerAnswer:
    """The AnswerStream of a worker."""

    def __init__(self, reply: Reply, cancel: Callable[[int], None], answer_now: Callable[[int], None]) -> None:
        self._reply = reply
        self._cancel = cancel
        self._answer_now = answer_now
        self._loop = asyncio.get_running_loop()
        self._has_ended = False

    def __aiter__(self) -> "WorkerAnswer":
        return self

    async def __anext__(self) -> AnswerItem:
        if self._has_ended:
            raise StopAsyncIteration
        try:
            item = await self._reply.next()
            while not isinstance(item, AnswerItem):
                item = await self._reply.next()
        except asyncio.CancelledError:
            self._cancel(self._reply.id)
            raise
        self._has_ended = isinstance(item, Finished | RequestFailed | EngineExit)
        return item

    async def cancel(self) -> None:
        if not self._has_ended:
            self._cancel(self._reply.id)

    async def answer_now(self) -> None:
        if not self._has_ended:
            self._answer_now(self._reply.id)

    def __del__(self) -> None:
        # Nobody reads the answer any more. This may run on any thread, and after the event loop was closed.
        if not self._has_ended and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._cancel, self._reply.id)


def no_model_failure() -> RequestFailed:
    return RequestFailed(id=0, title=tr("No model"), sentence=tr("No model is loaded. Choose one first."))


def closed_exit() -> EngineExit:
    return EngineExit(None, tr("The engine is closed."))


def translated(failed: RequestFailed) -> RequestFailed:
    """Return a failure translated into the user's language: the worker sends it in English."""
    sentence = tr(failed.sentence, *failed.values)
    return msgspec.structs.replace(failed, title=tr(failed.title), sentence=sentence, values=())
