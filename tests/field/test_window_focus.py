"""A control that hides or is disabled gives the focus to one beside it, wherever in the app it is."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication, QDialog, QWidget

from qwendesk.chat.view.composer.folder_view import FolderDialog
from qwendesk.mcp.view.server_dialog import ServerDialog
from qwendesk.widgets.actions import installed
from qwendesk.widgets.question_dialog import Dialog, DialogButton, QuestionDialog
from qwendesk.widgets.tab_order import tab_stops_in
from tests.chat.documents.test_document_reader import pdf
from tests.fakes.engine import ScriptedAnswer
from tests.field.grid import SERVER, Kind, Way, case
from tests.window_desk import Desk

LOST_FOCUS = Kind(
    "The focus leaves for the top of the window, and keys go to another control",
    dict.fromkeys((Way.CLI, *SERVER, Way.MCP, Way.IMPORT), "has no focus"),
)
FIRST_USE = "first use, 28 November"
STILL = 10
"""Looks at the controls that find the same."""
Loss = Callable[[QWidget, bool], None]
LOSSES: dict[str, Loss] = {
    "hidden": lambda control, is_back: control.setVisible(is_back),
    "disabled": lambda control, is_back: control.setEnabled(is_back),
}


def lost_by(loss: Loss, part: QWidget, *, fine: QWidget | None = None) -> list[str]:
    """Take each control of `part` away while it has the focus. Return those whose focus went to none beside them.

    `fine` may have it as well: the message field, where users type next.
    """
    lost = []
    for control in [stop for stop in tab_stops_in(part) if stop is not fine]:
        control.setFocus()
        expected = [*beside(control, part), fine]  # only now, since of radio buttons Tab then stops at one
        loss(control, False)
        focus: QWidget | None = part.window().focusWidget()
        if focus not in expected and expected != [fine]:
            lost.append(f"{control.objectName()} -> {focus.objectName() if focus else None}")
        loss(control, True)
    return lost


def beside(control: QWidget, part: QWidget) -> list[QWidget]:
    """Return the other controls in the smallest part of the window that has any, without those a step farther away."""
    around = control.parentWidget()
    others: list[QWidget] = []
    while around is not None and not others:
        others = [stop for stop in tab_stops_in(around) if stop not in (control, around)]
        around = around.parentWidget() if around is not part else None
    if part.isWindow() and others:
        nearest = min(distance(control, other) for other in others)
        return [other for other in others if distance(control, other) <= nearest + 8]
    return others


def distance(one: QWidget, other: QWidget) -> int:
    way = one.mapToGlobal(one.rect().center()) - other.mapToGlobal(other.rect().center())
    return way.manhattanLength()


async def laid_out(desk: Desk, page: QWidget) -> None:
    """Wait until a page that was just built has its size: a narrow one has other controls."""
    seen: list[list[QWidget]] = []

    def is_still() -> bool:
        seen.append(tab_stops_in(page))
        return len(seen) > STILL and all(each == seen[-1] for each in seen[-STILL:])

    await desk.until(is_still)


@pytest.mark.parametrize("page", ["chat", "models", "engine", "bench", "server", "settings"])
@case(LOST_FOCUS, Way.WINDOW, report=FIRST_USE, before="failed")
async def test_on_a_page(desk: Desk, page: str) -> None:
    desk.window.show_page(page)
    shown = desk.window._pages.currentWidget()
    assert shown is not None
    await laid_out(desk, shown)

    for loss in LOSSES.values():
        assert not lost_by(loss, shown, fine=desk.composer_text)


@case(LOST_FOCUS, Way.WINDOW, report=FIRST_USE, before="failed")
async def test_in_a_chat(desk: Desk) -> None:
    desk.client.answers += [
        ScriptedAnswer(reasoning="hm", text="A [link](https://example.org/a).\n\n```\nx = 1\n```\n")
    ]
    await desk.ask("hello")

    for loss in LOSSES.values():
        assert not lost_by(loss, desk.find("thread.view", QWidget), fine=desk.composer_text)


@pytest.mark.parametrize("page", ["chat", "models"])
@pytest.mark.parametrize("part", ["rail", "top_bar"])
@case(LOST_FOCUS, Way.WINDOW, report=FIRST_USE, before="failed")
async def test_around_the_page(desk: Desk, part: str, page: str) -> None:
    desk.window.show_page(page)

    for loss in LOSSES.values():
        assert not lost_by(loss, getattr(desk.window, part), fine=desk.composer_text)


def question(parent: QWidget) -> QDialog:
    answers = [DialogButton(name, name) for name in ("save", "discard", "cancel")]
    return QuestionDialog(parent, "question", "Save?", "Words.", answers, "save")


DIALOGS: dict[str, Callable[[QWidget], QDialog]] = {
    "a question": question,
    "a server": lambda parent: ServerDialog(parent, ()),
    "a folder": lambda parent: FolderDialog("/some/folder", lambda: None, lambda: None, parent),
}


@pytest.mark.parametrize("name", DIALOGS)
@case(LOST_FOCUS, Way.WINDOW, report=FIRST_USE, before="failed")
async def test_in_a_dialog(desk: Desk, name: str) -> None:
    dialog = DIALOGS[name](desk.window)
    dialog.open()
    await in_front(dialog, desk)

    found = [lost_by(loss, dialog) for loss in LOSSES.values()]
    dialog.close()

    assert found == [[], []]


@case(LOST_FOCUS, Way.WINDOW, report=FIRST_USE, before="failed")
async def test_in_a_popover(desk: Desk) -> None:
    await desk.ask("hello")
    installed(desk.window)["context"].trigger()
    await assert_kept_in("context.sheet", desk)


@case(LOST_FOCUS, Way.WINDOW, report=FIRST_USE, before="failed")
async def test_in_the_sheet_of_a_pdf_file(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf("Hello"))
    desk.drop(tmp_path / "a.pdf")
    await assert_kept_in("pdf.sheet", desk)


@case(LOST_FOCUS, Way.WINDOW, report=FIRST_USE, before="failed")
async def test_in_the_guide(desk: Desk) -> None:
    desk.parts.help.open()
    await assert_kept_in("help", desk)


async def assert_kept_in(name: str, desk: Desk) -> None:
    await desk.until(lambda: desk.is_shown(name))
    window = desk.find(name, QWidget)
    await in_front(window, desk)

    found = [lost_by(loss, window) for loss in LOSSES.values()]
    window.close()

    assert found == [[], []]


async def in_front(window: QWidget, desk: Desk) -> None:
    await desk.until(window.isVisible)
    # Qt hands out layouts between two turns of the loop.
    await asyncio.sleep(0)
    await asyncio.sleep(0)


async def test_every_dialog_has_the_base_that_keeps_the_focus(desk: Desk) -> None:
    assert QApplication.instance() is not None
    own = [each for each in QDialog.__subclasses__() if each.__module__.startswith("qwendesk.")]
    assert own == [Dialog]
