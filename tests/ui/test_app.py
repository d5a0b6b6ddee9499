"""The composition root: arguments, and errors that nobody caught."""

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest
from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QApplication, QWidget

from qwendesk.app.main import _arguments, _run, main, report_errors
from qwendesk.engine.state import Phase
from qwendesk.services.crash_reports import CrashReports
from qwendesk.services.engine.engines import EnginesService
from qwendesk.ui.frame.main_window import MainWindow
from qwendesk.ui.frame.single_instance import Handover
from tests.fakes.engine_folders import VERSION, Tries, make_engine
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


class OtherStarts(QObject):
    """Stands in for the socket on which other starts hand over."""

    asked = Signal(object)

    def end(self) -> None:
        """Nothing was opened."""


def test_the_window_lives_and_ends_while_engines_are_tried(
    app: QApplication,
    qt_loop: asyncio.Runner,
    shape_picture: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make_engine(tmp_path, "vulkan", "vulkan")
    tries = Tries()
    tries.wait_for["vulkan"] = asyncio.Event()
    engines = EnginesService((tmp_path,), VERSION, has_installed=False, try_one=tries, features=lambda: ("sse4_2",))
    monkeypatch.setattr("qwendesk.app.main.engines_here", lambda *, is_safe: engines)
    monkeypatch.setattr("qwendesk.app.main.CrashReports", lambda: CrashReports(tmp_path / "crashes", tmp_path / "log"))
    monkeypatch.setattr("qwendesk.services.crash_reports.faulthandler", Mock())
    monkeypatch.setattr("qwendesk.app.main.keep_collector_quick", lambda: None)
    others, picture = OtherStarts(), str(shape_picture("red", "circle"))

    async def start_hand_over_and_close() -> int:
        running = asyncio.create_task(_run(app, _arguments([]), others))  # type: ignore[arg-type]
        await until(lambda: bool(tries.started))
        window = next(each for each in app.topLevelWidgets() if isinstance(each, MainWindow) and each.isVisible())
        assert window.engine.state.phase is Phase.OFF, "nobody asked for a model"
        others.asked.emit(Handover((picture,)))
        await until(lambda: window.findChild(QWidget, "composer.attachment.1") is not None)
        window.end()
        return await running

    assert qt_loop.run(start_hand_over_and_close()) == 0
    assert engines.engines.chosen == ""
    assert not list((tmp_path / "crashes").glob("*"))


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110  (widgets tell nobody when they change)
        await asyncio.sleep(0)
