"""How services announce changes: their state as one frozen value that can be observed, and events."""

import logging
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec

_logger = logging.getLogger(__name__)

StateT = TypeVar("StateT")
FieldT = TypeVar("FieldT")
# Ends a subscription; calling it again does nothing.
Unsubscribe = Callable[[], None]


class Observed(Generic[StateT]):
    """Holds the current state and tells subscribers about every change.

    The state is a frozen value: a change replaces it. Callbacks run in the order in which they subscribed, on the
    thread that makes the change, which is the event loop's (and Qt's) for all services.
    """

    def __init__(self, value: StateT) -> None:
        self._value = value
        self._callbacks: dict[object, Callable[[StateT], None]] = {}

    @property
    def value(self) -> StateT:
        return self._value

    def set(self, value: StateT) -> None:
        """Replace the state and call every subscriber, unless the new state equals the old one.

        If a callback raises, the error is logged and the other callbacks are still called.
        """
        if value == self._value:
            return
        self._value = value
        for callback in tuple(self._callbacks.values()):
            if self._value is not value:
                return  # a callback changed the state again, and that call has told all subscribers
            try:
                callback(value)
            except Exception:
                _logger.exception("A subscriber failed on %s", type(value).__name__)

    def update(self, **changes: Any) -> None:
        """Replace some fields of a state that is a msgspec struct."""
        self.set(msgspec.structs.replace(self._value, **changes))  # type: ignore[type-var]

    def subscribe(self, callback: Callable[[StateT], None]) -> Unsubscribe:
        """Call `callback` with every later state until the returned function is called."""
        key = object()
        self._callbacks[key] = callback

        def unsubscribe() -> None:
            self._callbacks.pop(key, None)

        return unsubscribe

    def subscribe_field(self, field: Callable[[StateT], FieldT], callback: Callable[[FieldT], None]) -> Unsubscribe:
        """Call `callback` with the result of `field` for each later state in which it differs from the previous one."""
        last = field(self._value)

        def on_state(state: StateT) -> None:
            nonlocal last
            before, last = last, field(state)
            if last != before:
                callback(last)

        return self.subscribe(on_state)


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
