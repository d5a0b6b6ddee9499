"""Cancels a coroutine at one of its awaits, so that a test can try each of them."""

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeVar

T = TypeVar("T")


async def cancelled_at(number: int, work: Coroutine[Any, Any, Any], *, when_done: bool = False) -> bool:
    """Run `work`, and cancel it at its await with this number, from 1. Return whether it ended before that.

    The awaits of tasks that it starts count too. `when_done` cancels not as soon as something is awaited, but in the
    moment in which it has come.
    """
    left = number

    def note(awaited: "asyncio.Future[Any] | None") -> None:
        nonlocal left
        left -= 1
        if left == 0 and when_done and awaited is not None:
            awaited.add_done_callback(lambda _: task.cancel())
        elif left == 0:
            task.cancel()

    def watched_task(loop: asyncio.AbstractEventLoop, started: Coroutine[Any, Any, T], **named: Any) -> asyncio.Task[T]:
        return asyncio.Task(_Watched(started, note), loop=loop, **named)

    loop = asyncio.get_running_loop()
    loop.set_task_factory(watched_task)
    try:
        task = loop.create_task(work)
        await asyncio.wait({task})
    finally:
        loop.set_task_factory(None)
    if not task.cancelled():
        task.result()
    return left > 0


def public_coroutines(service: type) -> set[str]:
    """Return the names of the public methods of a class that have to be awaited."""
    return {
        name
        for name, method in vars(service).items()
        if inspect.iscoroutinefunction(method) and not name.startswith("_")
    }


class _Watched(Coroutine[Any, Any, T]):
    """A coroutine that tells of each of its awaits."""

    def __init__(self, work: Coroutine[Any, Any, T], note: Callable[[Any], None]) -> None:
        self._work, self._note = work, note

    def send(self, value: Any) -> Any:
        awaited = self._work.send(value)
        self._note(awaited)
        return awaited

    def throw(self, *error: Any) -> Any:
        awaited = self._work.throw(*error)
        self._note(awaited)
        return awaited

    def close(self) -> None:
        self._work.close()

    def __await__(self) -> Generator[Any, Any, T]:
        return self._work.__await__()
