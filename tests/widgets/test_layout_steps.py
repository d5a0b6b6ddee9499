"""Widgets that are shown together are arranged once, and hidden ones are measured ahead."""

import asyncio
import itertools
from collections.abc import Iterator

import pytest
import shiboken6
from PySide6.QtCore import QRect, QSize
from PySide6.QtWidgets import QApplication, QPushButton, QVBoxLayout, QWidget

from qwendesk.widgets.layouts import laid_out_once, size_hidden


class CountingLayout(QVBoxLayout):
    """Counts how often it arranges its widgets."""

    arranged = 0

    def setGeometry(self, place: QRect) -> None:  # noqa: N802 - Qt's name
        self.arranged += 1
        super().setGeometry(place)


class Measured(QPushButton):
    """Counts how often its size was asked for."""

    asked = 0

    def sizeHint(self) -> QSize:  # noqa: N802 - Qt's name
        self.asked += 1
        return super().sizeHint()


@pytest.fixture
def window(app: QApplication) -> Iterator[QWidget]:
    """A window whose layout holds one with three hidden buttons."""
    window = QWidget()
    outer, holder = CountingLayout(window), QWidget()
    outer.addWidget(holder)
    inner = CountingLayout(holder)
    for _ in range(3):
        inner.addWidget(button := Measured("A button"))
        button.hide()
    window.resize(300, 300)
    window.show()
    QApplication.processEvents()
    yield window
    window.deleteLater()


def show_all(window: QWidget) -> None:
    for button in window.findChildren(QPushButton):
        button.setVisible(True)


def layouts(window: QWidget) -> list[CountingLayout]:
    return window.findChildren(CountingLayout)


def test_widgets_shown_together_are_arranged_once(window: QWidget) -> None:
    for each in layouts(window):
        each.arranged = 0
    with laid_out_once(layouts(window)[1].parentWidget()):
        show_all(window)
        assert [each.arranged for each in layouts(window)] == [0, 0]
    QApplication.sendPostedEvents()
    places = [button.geometry() for button in window.findChildren(QPushButton)]
    assert layouts(window)[1].arranged >= 1
    assert all(place.height() > 0 for place in places)
    assert all(above.bottom() < below.top() for above, below in itertools.pairwise(places))


def test_without_it_each_is_arranged_at_once(window: QWidget) -> None:
    """What Qt does: should this fail with a newer Qt, `laid_out_once` may no longer be needed."""
    before = layouts(window)[1].arranged
    show_all(window)
    assert layouts(window)[1].arranged >= before + 3


def test_inner_block_leaves_the_outer_one_in_force(window: QWidget) -> None:
    holder = layouts(window)[1].parentWidget()
    with laid_out_once(window):
        with laid_out_once(holder):
            pass
        assert not layouts(window)[0].isEnabled()
        assert layouts(window)[1].isEnabled()
    assert layouts(window)[0].isEnabled()


def test_layouts_are_in_force_again_after_an_error(window: QWidget) -> None:
    with pytest.raises(ValueError, match="wrong"), laid_out_once(layouts(window)[1].parentWidget()):
        raise ValueError("wrong")
    assert all(each.isEnabled() for each in layouts(window))


async def test_hidden_widgets_are_measured_and_deleted_ones_left_out(window: QWidget) -> None:
    first, second, third = window.findChildren(Measured)
    third.setVisible(True)
    for each in (first, second, third):
        each.asked = 0
    work = asyncio.create_task(size_hidden(window))
    await asyncio.sleep(0)
    shiboken6.delete(second)
    await work
    assert first.asked > 0
    assert third.asked == 0
