"""A change of theme, text size or density: what is hidden looks, once it is shown, as if it had been seen all along."""

import asyncio
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QEvent, QObject, QPoint
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication, QLabel, QMenu, QWidget

from qwendesk.chat.view.thread.think_block import ThinkBlock
from qwendesk.widgets.buttons import restyle
from qwendesk.widgets.theme_keeper import ThemeKeeper
from tests.fakes.answer_stream import ScriptedAnswer
from tests.window_desk import Desk

ANSWER = "# A table\n\n| a | b |\n|---|---|\n| 1 | `2` |\n\n```python\nprint(1)\n```\n\n> and **a quote**\n"
PAGES = ("chat", "models", "engine", "bench", "server", "settings")
DRAWN_WITHIN = 40
"""Turns of the event loop."""
STILL = 25
"""Pictures that are the same."""


async def settled(desk: Desk) -> None:
    """Wait until the layouts that are waiting are done, and what a page draws in parts is there."""
    thread = desk.window.chat_page.thread_view
    await desk.until(lambda: not thread.is_busy and not thread.highlighter.is_busy)
    for _ in range(DRAWN_WITHIN):
        await asyncio.sleep(0)


def picture(desk: Desk) -> QImage:
    return desk.window._pages.currentWidget().grab().toImage()


async def still_picture(desk: Desk) -> QImage:
    """Return how the page looks once it has stopped changing: answers are drawn and highlighted in parts."""
    seen = [picture(desk)]

    def is_still() -> bool:
        seen.append(picture(desk))
        return len(seen) > STILL and all(each == seen[-1] for each in seen[-STILL:])

    await desk.until(is_still)
    return seen[-1]


def change_look(desk: Desk) -> None:
    desk.parts.services.settings.change({"theme": "light", "density": "compact", "zoom_percent": 130})


def restore_look(desk: Desk) -> None:
    desk.parts.services.settings.change({"theme": "dark", "density": "comfortable", "zoom_percent": 100})


@pytest.fixture
def desk(desk: Desk) -> Iterator[Desk]:
    flash_time = QApplication.cursorFlashTime()
    QApplication.setCursorFlashTime(0)  # a blinking cursor would be a difference
    restore_look(desk)
    yield desk
    restore_look(desk)
    QApplication.setCursorFlashTime(flash_time)


@pytest.mark.parametrize("page", PAGES)
async def test_a_page_that_was_hidden_looks_like_one_that_was_seen(desk: Desk, page: str) -> None:
    desk.client.answers.append(ScriptedAnswer(reasoning="First this, then that.\n\nThen more.", text=ANSWER))
    await desk.ask("Show me a table")
    thought = desk.window.findChild(ThinkBlock)
    assert thought is not None
    thought.set_open(opened=True)
    other = "engine" if page != "engine" else "chat"
    desk.window.show_page(page)
    await settled(desk)
    change_look(desk)
    await settled(desk)
    seen = await still_picture(desk)
    restore_look(desk)
    await settled(desk)
    before = await still_picture(desk)

    desk.window.show_page(other)
    await settled(desk)
    change_look(desk)
    await settled(desk)
    desk.window.show_page(page)
    await settled(desk)

    now = await still_picture(desk)
    assert before != seen
    assert now == seen


async def test_a_hidden_part_of_a_shown_page_gets_the_look_with_its_first_show(desk: Desk, keeper: ThemeKeeper) -> None:
    notice = desk.find("composer.notice", QLabel)
    desk.window.chat_page.composer.show_notice("seen")
    await settled(desk)
    desk.window.chat_page.composer.show_notice("")
    restyles = Restyles(notice)
    keeper.choose("light")
    assert not restyles.n

    desk.window.chat_page.composer.show_notice("seen again")

    assert restyles.n == 1
    assert notice.palette().color(notice.foregroundRole()).name().upper() == keeper.theme["text_warn"]


async def test_only_the_page_that_is_seen_is_restyled(desk: Desk, keeper: ThemeKeeper) -> None:
    for page in PAGES:
        desk.window.show_page(page)
    await settled(desk)
    hidden = Restyles(desk.find("serve.card", QWidget))
    seen = Restyles(desk.find("settings.search", QWidget))

    keeper.zoom(1)

    assert (hidden.n, seen.n) == (0, 1)


async def test_keys_that_wait_are_one_step(desk: Desk, keeper: ThemeKeeper) -> None:
    changes: list[float] = []
    keeper.changed.connect(lambda: changes.append(keeper.theme.text_scale))

    for _ in range(5):
        keeper.zoom(1)
    await desk.until(lambda: len(changes) == 2)
    await settled(desk)

    assert changes == [1.1, 1.5]
    assert desk.window.font().pixelSize() == keeper.theme.px(13)


async def test_a_tone_that_ends_after_the_change_leaves_no_colour_behind(desk: Desk, keeper: ThemeKeeper) -> None:
    label, plain = QLabel("1", desk.window), QLabel("2", desk.window)
    label.setProperty("kind", "error")
    for each in (label, plain):
        each.show()
    keeper.choose("light")

    restyle(label, "kind", "")

    assert label.palette().color(label.foregroundRole()) == plain.palette().color(plain.foregroundRole())
    assert label.font() == plain.font()


async def test_a_menu_is_measured_with_the_new_text_size(desk: Desk, keeper: ThemeKeeper) -> None:
    menu = desk.find("composer.menu.styles", QMenu)
    menu.popup(QPoint(0, 0))
    menu.close()
    before = menu.sizeHint()
    keeper.zoom(5)

    assert menu.sizeHint().width() > before.width()
    menu.popup(QPoint(0, 0))
    assert menu.size() == menu.sizeHint()
    menu.close()


class Restyles(QObject):
    """Counts how often a widget got its style."""

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget)
        self.n = 0
        widget.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802
        self.n += event.type() is QEvent.Type.StyleChange
        return super().eventFilter(watched, event)
