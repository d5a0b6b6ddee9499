"""Callbacks with which services and the engine client announce events."""

import logging
from collections.abc import Callable
from typing import Generic, TypeVar

_logger = logging.getLogger(__name__)

EventT = TypeVar("EventT")


class Subscribers(Generic[EventT]):
    """Callbacks for one type of event, called in the order in which they were added, on the notifying thread."""

    def __init__(self) -> None:
        self._callbacks: dict[object, Callable[[EventT], None]] = {}

    def add(self, callback: Callable[[EventT], None]) -> Callable[[], None]:
        """Call `callback` with every event until the returned function is called; calling that again does nothing."""
        ticket = object()
        self._callbacks[ticket] = callback

        def unsubscribe() -> None:
            self._callbacks.pop(ticket, None)

        return unsubscribe

    def notify(self, event: EventT) -> None:
        """Call all callbacks with `event`. One that raises is logged: a broken view must not stop an answer."""
        for callback in tuple(self._callbacks.values()):
            try:
                callback(event)
            except Exception:
                _logger.exception("A subscriber failed on %s", type(event).__name__)
