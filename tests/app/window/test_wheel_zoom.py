"""Ctrl and the wheel change the text size, as in browsers, wherever the pointer is."""

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QApplication, QWidget

from qwendesk.widgets.theme_keeper import app_theme
from tests.window_desk import Desk

CONTROL = Qt.KeyboardModifier.ControlModifier


def turn(desk: Desk, over: str, delta: int, keys: Qt.KeyboardModifier = CONTROL) -> None:
    """Turn the wheel over a control as the system reports it: an eighth of a degree is 1, a notch is 120."""
    widget = desk.find(over, QWidget)
    place = widget.mapTo(desk.window, widget.rect().center())
    event = QWheelEvent(
        QPointF(place),
        QPointF(desk.window.mapToGlobal(place)),
        QPoint(),
        QPoint(0, delta),
        Qt.MouseButton.NoButton,
        keys,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(desk.window.windowHandle(), event)


@pytest.mark.parametrize("over", ["composer.text", "chats.list", "meter.bar"])
async def test_a_notch_with_ctrl_is_a_step_of_zoom(desk: Desk, over: str) -> None:
    turn(desk, over, 120)
    assert app_theme().text_scale == 1.1
    turn(desk, over, -240)
    assert app_theme().text_scale == 0.9


async def test_a_touchpad_zooms_by_whole_steps_and_without_ctrl_nothing_does(desk: Desk) -> None:
    for _ in range(3):
        turn(desk, "composer.text", 50)
    assert app_theme().text_scale == 1.1
    turn(desk, "composer.text", 240, Qt.KeyboardModifier.NoModifier)
    assert app_theme().text_scale == 1.1
