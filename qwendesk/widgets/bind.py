"""Connects the observed state of a service to a widget while the widget exists."""

from collections.abc import Callable
from typing import TypeVar

from PySide6.QtCore import QObject, QTimer

from qwendesk.core.observed import Observed, Unsubscribe

StateT = TypeVar("StateT")
FieldT = TypeVar("FieldT")
EventT = TypeVar("EventT")

# Minimum time between two repaints of fast-changing state: about two frames at 60 Hz.
REPAINT_EVERY_MS = 30


def bind(owner: QObject, observed: Observed[StateT], show: Callable[[StateT], None], *, every_ms: int = 0) -> None:
    """Call `show` with the current state and with each later one until Qt destroys `owner`.

    With `every_ms`, `show` is called at most once in that time, and always with the last state.
    """
    _show_now_and_later(owner, observed, lambda state: state, show, every_ms)


def bind_field(
    owner: QObject,
    observed: Observed[StateT],
    field: Callable[[StateT], FieldT],
    show: Callable[[FieldT], None],
) -> None:
    """Call `show` with `field(state)` now and whenever that value changes. See `bind`."""
    _show_now_and_later(owner, observed, field, show, 0)


def follow(
    owner: QObject,
    subscribe: Callable[[Callable[[EventT], None]], Unsubscribe],
    on_event: Callable[[EventT], None],
) -> None:
    """Call `on_event` with every event that a service reports to subscribers, until Qt destroys `owner`."""
    owner.destroyed.connect(subscribe(on_event))


def _show_now_and_later(
    owner: QObject,
    observed: Observed[StateT],
    field: Callable[[StateT], FieldT],
    show: Callable[[FieldT], None],
    every_ms: int,
) -> None:
    on_change = show
    if every_ms:
        timer = QTimer(owner, singleShot=True, interval=every_ms)
        timer.timeout.connect(lambda: show(field(observed.value)))

        def on_change(_field: FieldT) -> None:
            if not timer.isActive():
                timer.start()

    unsubscribe = observed.subscribe_field(field, on_change)
    owner.destroyed.connect(unsubscribe)
    show(field(observed.value))
