"""A widget follows observed state from the first moment until Qt destroys it."""

import asyncio

import msgspec
from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtWidgets import QApplication, QLabel

from qwendesk.core.observed import Observed
from qwendesk.widgets.bind import bind, bind_field


class Meter(msgspec.Struct, frozen=True):
    text: str = "empty"
    speed: int = 0


def test_a_widget_shows_the_state_at_once_and_later(app: QApplication) -> None:
    observed, label = Observed(Meter()), QLabel()

    bind_field(label, observed, lambda meter: meter.text, label.setText)
    assert label.text() == "empty"

    observed.update(text="full")
    assert label.text() == "full"


def test_unchanged_field_redraws_nothing(app: QApplication) -> None:
    observed, label, drawn = Observed(Meter()), QLabel(), []
    bind_field(label, observed, lambda meter: meter.text, drawn.append)

    observed.update(speed=3)

    assert drawn == ["empty"]


def test_destroyed_widget_is_not_called(app: QApplication) -> None:
    observed, label, drawn = Observed(Meter()), QLabel(), []
    bind(label, observed, drawn.append)

    label.deleteLater()
    QCoreApplication.sendPostedEvents(label, QEvent.Type.DeferredDelete)
    observed.update(text="full")

    assert drawn == [Meter()]


async def test_quick_changes_are_drawn_together_with_the_last_one(qt_loop: asyncio.Runner) -> None:
    observed, label = Observed(Meter()), QLabel()
    drawn: list[int] = []
    last_shown = asyncio.Event()

    def show(meter: Meter) -> None:
        drawn.append(meter.speed)
        if meter.speed == 100:
            last_shown.set()

    bind(label, observed, show, every_ms=1)
    for speed in range(1, 101):
        observed.update(speed=speed)
    await last_shown.wait()

    assert drawn == [0, 100]
