"""Who wants to hear of a change: the one way that services and the engine client tell others."""

import logging
from collections.abc import Callable
from typing import Generic, TypeVar

_logger = logging.getLogger(__name__)

NewsT = TypeVar("NewsT")


class Subscribers(Generic[NewsT]):
    """Callbacks for one kind of news, called in the order they came, on the thread that notifies."""

    def __init__(self) -> None:
        self._callbacks: dict[object, Callable[[NewsT], None]] = {}

    def add(self, callback: Callable[[NewsT], None]) -> Callable[[], None]:
        """Returns what ends the subscription; calling it again does nothing."""
        ticket = object()
        self._callbacks[ticket] = callback

        def unsubscribe() -> None:
            self._callbacks.pop(ticket, None)

        return unsubscribe

    def notify(self, news: NewsT) -> None:
        """Calls everyone, also when one of them raises: a broken view must not stop an answer. It is logged."""
        for callback in tuple(self._callbacks.values()):
            try:
                callback(news)
            except Exception:
                _logger.exception("A subscriber failed on %s", type(news).__name__)
