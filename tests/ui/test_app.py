"""The composition root: arguments, and errors that nobody caught."""

import asyncio
import sys

import pytest
from PySide6.QtCore import QTimer

from qwendesk.app.main import main, report_errors
from tests.ui.desk import Desk


def boom() -> None:
    raise ValueError("for a test")


async def test_an_error_in_a_slot_is_shown_and_the_window_lives(desk: Desk) -> None:
    stopped: list[bool] = []
    restore = report_errors(desk.window, lambda: stopped.append(True))
    try:
        QTimer.singleShot(0, boom)
        await desk.until(lambda: desk.is_shown("banner"))
    finally:
        restore()
    assert desk.text_of("banner.title") == "Something went wrong"
    assert "for a test" in desk.text_of("banner.sentence")
    await desk.ask("Still there?")
    assert desk.message(1).answer_view.markdown == "You said: Still there?"
    assert not stopped


async def test_an_error_on_the_event_loop_is_shown(desk: Desk) -> None:
    restore = report_errors(desk.window, lambda: None)
    try:
        asyncio.get_running_loop().call_soon(boom)
        await desk.until(lambda: desk.is_shown("banner"))
    finally:
        restore()
    assert "for a test" in desk.text_of("banner.sentence")


async def test_a_failed_task_of_the_window_is_shown(desk: Desk) -> None:
    async def fail() -> None:
        boom()

    desk.parts.tasks.start(fail())
    await desk.until(lambda: desk.is_shown("banner"))
    assert "for a test" in desk.text_of("banner.sentence")


async def test_hooks_are_given_back(desk: Desk) -> None:
    before = sys.excepthook
    report_errors(desk.window, lambda: None)()
    assert sys.excepthook is before


@pytest.mark.parametrize("arguments", [["--theme", "pink"], ["--screenshot", "x.png"], ["--unknown"]])
def test_bad_arguments_are_refused_in_words(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "error:" in capsys.readouterr().err
