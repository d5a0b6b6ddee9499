"""Compact and comfortable, from small to large text: nothing that is to be read is cut off."""

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QModelIndex
from PySide6.QtWidgets import (
    QAbstractButton,
    QLabel,
    QPushButton,
    QSizePolicy,
    QStyleOptionViewItem,
    QToolButton,
    QWidget,
)

from qwendesk.widgets.theme_keeper import Density, ThemeKeeper
from tests.fakes.engine import ScriptedAnswer
from tests.window_desk import Desk

PAGES = ("chat", "models", "engine", "settings")


def read_texts(window: QWidget) -> Iterator[QLabel | QAbstractButton]:
    for label in window.findChildren(QLabel):
        if label.isVisible() and label.text():
            yield label
    for kind in (QPushButton, QToolButton):
        for button in window.findChildren(kind):
            if button.isVisible() and button.text() and button.size().width() > 1:
                yield button


def settle() -> None:
    """Let the layouts take their new places; a child's may ask its parent's again."""
    for _ in range(6):
        QCoreApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest.value)


def cut_off(window: QWidget) -> list[str]:
    """Labels and buttons whose text has less room than it takes; those that shorten it themselves by width aside."""
    found: list[str] = []
    for widget in read_texts(window):
        high, wide = widget.fontMetrics().height(), 0
        if isinstance(widget, QLabel):
            room = widget.contentsRect().size()
            if widget.wordWrap():
                high = widget.heightForWidth(widget.width())
                room = widget.size()
            elif widget.sizePolicy().horizontalPolicy() is not QSizePolicy.Policy.Ignored:
                wide = widget.sizeHint().width()
                room = widget.size()
        else:
            room = widget.size()
            if widget.sizePolicy().horizontalPolicy() is not QSizePolicy.Policy.Ignored:
                wide = max(widget.fontMetrics().horizontalAdvance(line) for line in widget.text().split("\n"))
            is_under = isinstance(widget, QToolButton) and not widget.icon().isNull() and widget.height() > 40
            high += widget.iconSize().height() if is_under else 0
        if room.height() < high or room.width() < wide:
            name = widget.objectName() or widget.text()[:30]
            found.append(f"{name}: {room.width()}x{room.height()} of {wide}x{high}")
    return found


@pytest.mark.parametrize("density", ["comfortable", "compact"])
async def test_no_text_is_cut_off(desk: Desk, keeper: ThemeKeeper, density: Density) -> None:
    desk.client.answers.append(ScriptedAnswer(reasoning="hm", text="See:\n\n```python\nx = 1\n```\n"))
    await desk.ask("Show code")
    keeper.set_density(density)
    found: dict[str, list[str]] = {}
    for scale in (0.8, 1.0, 1.6):
        keeper.set_text_scale(scale)
        for page in PAGES:
            desk.window.show_page(page)
            settle()
            if cut := cut_off(desk.window):
                found[f"{page} at {scale}"] = cut
    assert found == {}


async def test_compact_density_moves_rows_closer_and_back(desk: Desk, keeper: ThemeKeeper) -> None:
    desk.window.show_page("settings")
    row = desk.find("settings.appearance.theme.row", QWidget)
    rows = desk.parts.chats.sidebar.list.itemDelegate()
    bar, top = desk.window.meter_bar, desk.window.top_bar

    def heights() -> tuple[int, ...]:
        settle()
        return row.height(), bar.height(), top.height(), rows.sizeHint(QStyleOptionViewItem(), QModelIndex()).height()

    comfortable = heights()
    desk.parts.services.settings.change({"density": "compact"})
    compact = heights()
    assert all(less < before for less, before in zip(compact, comfortable, strict=True)), (compact, comfortable)
    desk.parts.services.settings.change({"density": "comfortable"})
    assert heights() == comfortable
