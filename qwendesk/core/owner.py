"""Owner: builds services from top to bottom, and closes them in reverse order."""

import inspect
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any, Protocol, TypeVar


class Closable(Protocol):
    def close(self) -> Any:
        """End everything that runs. May be a coroutine."""


ServiceT = TypeVar("ServiceT", bound=Closable)


class Owner:
    """Base of what owns services."""

    def __init__(self) -> None:
        self._closing = AsyncExitStack()

    def own(self, service: ServiceT) -> ServiceT:
        """Return `service`, and close it when this object is closed."""
        self._closing.push_async_callback(_close, service)
        return service

    def at_close(self, *callbacks: Callable[[], object]) -> None:
        """Call these functions, such as the ends of subscriptions, when this object is closed, the last one first."""
        for callback in callbacks:
            self._closing.callback(callback)

    async def close(self) -> None:
        """Close everything in reverse order.

        An error does not keep the rest from being closed. The last one is raised at the end, with earlier ones as its
        context.
        """
        await self._closing.aclose()


async def _close(service: Closable) -> None:
    ending = service.close()
    if inspect.isawaitable(ending):
        await ending
