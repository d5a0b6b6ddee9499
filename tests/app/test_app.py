"""The composition root: arguments, and errors that nobody caught."""

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import msgspec
import pytest
from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QAbstractButton, QApplication, QLabel, QWidget

from qwendesk.app.application import Application
from qwendesk.app.error_reporting import report_errors
from qwendesk.app.main import _arguments, _run, main
from qwendesk.app.window.main_window import MainWindow
from qwendesk.app.window.single_instance import Handover
from qwendesk.core import paths
from qwendesk.core.options import LoadOptions
from qwendesk.engine.state import Phase
from qwendesk.engines.engine_choice import EngineChoiceService
from qwendesk.hardware.snapshot import Snapshot
from qwendesk.hardware.snapshot_reader import SnapshotReader
from qwendesk.help.crash_reports import CrashReports
from qwendesk.models.last_model import last_model_file
from qwendesk.services import App
from qwendesk.settings.deletion import note_file
from tests.fakes.engine_folders import VERSION, Tries, make_engine
from tests.user_folders import user_variables
from tests.window_desk import Desk


def boom() -> None:
    raise ValueError("for a test")


async def test_error_in_a_slot_is_shown_and_the_window_stays_open(desk: Desk) -> None:
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


async def test_error_hooks_are_restored(desk: Desk) -> None:
    before = sys.excepthook
    report_errors(desk.window, lambda: None)()
    assert sys.excepthook is before


@pytest.mark.parametrize("arguments", [["--theme", "pink"], ["--screenshot", "x.png"], ["--unknown"]])
def test_bad_arguments_are_refused_with_a_message(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "error:" in capsys.readouterr().err


class OtherStarts(QObject):
    """Stands in for the socket on which other starts hand over."""

    asked = Signal(object)
    accepts = False

    def accept(self) -> None:
        self.accepts = True

    def end(self) -> None:
        """Nothing was opened."""


@pytest.fixture
def engines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EngineChoiceService:
    """One engine whose trial never ends; crash reports go to `tmp_path`."""
    make_engine(tmp_path, "vulkan", "vulkan")
    tries = Tries()
    tries.wait_for["vulkan"] = asyncio.Event()
    engines = EngineChoiceService(
        (tmp_path,), VERSION, has_installed=False, try_one=tries, features=lambda: ("sse4_2",)
    )
    monkeypatch.setattr("qwendesk.app.main.installed_engines", lambda *, is_safe: engines)
    monkeypatch.setattr("qwendesk.app.main.CrashReports", lambda: CrashReports(tmp_path / "crashes", tmp_path / "log"))
    monkeypatch.setattr("qwendesk.help.crash_reports.faulthandler", Mock())
    monkeypatch.setattr("qwendesk.app.main.keep_collector_quick", lambda: None)
    return engines


def shown_window(app: QApplication) -> MainWindow | None:
    windows = (each for each in app.topLevelWidgets() if isinstance(each, MainWindow) and each.isVisible())
    return next(windows, None)


def test_window_works_and_closes_while_engines_are_tried(
    app: Application,
    qt_loop: asyncio.Runner,
    engines: EngineChoiceService,
    shape_picture: Callable[..., Path],
    tmp_path: Path,
) -> None:
    others, picture = OtherStarts(), shape_picture("red", "circle")

    async def start_hand_over_and_close() -> int:
        running = asyncio.create_task(_run(app, _arguments([]), others))  # type: ignore[arg-type]
        await until(lambda: bool(engines.engines.trying) and others.accepts)
        window = shown_window(app)
        assert window is not None
        assert window.engine.state.phase is Phase.OFF, "nobody asked for a model"
        others.asked.emit(Handover.of([picture]))
        await until(lambda: window.findChild(QWidget, "composer.attachment.1") is not None)
        window.end()
        return await running

    assert qt_loop.run(start_hand_over_and_close()) == 0
    assert engines.engines.chosen == ""
    assert not list((tmp_path / "crashes").glob("*"))


def test_everything_is_deleted_even_if_closing_fails(
    app: Application,
    qt_loop: asyncio.Runner,
    engines: EngineChoiceService,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for variable, folder in user_variables(tmp_path / "user").items():
        monkeypatch.setenv(variable, folder)
    stuck = paths.data_folder() / "attachments" / "in-use.png"
    stuck.parent.mkdir(parents=True)
    stuck.touch()
    unlink, read = Path.unlink, Mock(side_effect=RuntimeError("the driver broke"))
    said: list[str] = []

    def refuse(self: Path, **options: bool) -> None:
        if self == stuck:
            raise PermissionError(13, "in use")
        unlink(self, **options)

    monkeypatch.setattr(SnapshotReader, "read", read)
    monkeypatch.setattr(Path, "unlink", refuse)
    monkeypatch.setattr(
        "qwendesk.settings.view.privacy_section.QMessageBox.warning", lambda *words: said.append(words[-1])
    )

    async def delete_everything() -> int:
        running = asyncio.create_task(_run(app, _arguments([]), None))
        await until(lambda: read.called and (paths.data_folder() / "chats.db").exists())
        window = shown_window(app)
        assert window is not None
        window.show_page("settings")
        await until(lambda: window.findChild(QAbstractButton, "settings.privacy.delete") is not None)
        button = window.findChild(QAbstractButton, "settings.privacy.delete")
        assert button is not None
        button.click()
        yes = window.findChild(QAbstractButton, "privacy.yes")
        assert yes is not None
        yes.click()
        return await running

    async def start_again() -> str:
        running = asyncio.create_task(_run(app, _arguments([]), None))
        await until(lambda: (found := shown_window(app)) is not None and found.findChild(QLabel, "left_over.sentence"))
        window = shown_window(app)
        assert window is not None
        words = window.findChild(QLabel, "left_over.sentence")
        assert words is not None, "the next start says it"
        assert window.findChild(QWidget, "crash") is None, "nothing crashed"
        text = words.text()
        window.end()
        await running
        return text

    assert qt_loop.run(delete_everything()) == 0
    assert said == [f"{stuck}: in use"]
    kept = [path for folder in paths.own_folders() for path in folder.rglob("*") if path.is_file()]
    assert sorted(kept) == sorted([stuck, note_file()])
    assert not list((tmp_path / "crashes").glob("*")), "no crash is reported"
    read.side_effect = None
    read.return_value = Snapshot(at_s=0.0)
    assert f"{stuck}: in use" in qt_loop.run(start_again())


def test_the_last_model_loads_while_the_window_is_imported(
    app: Application,
    qt_loop: asyncio.Runner,
    engines: EngineChoiceService,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for variable, folder in user_variables(tmp_path / "user").items():
        monkeypatch.setenv(variable, folder)
    model = tmp_path / "model.gguf"
    model.touch()
    last_model_file().parent.mkdir(parents=True)
    last_model_file().write_bytes(msgspec.json.encode(LoadOptions(model=str(model))))
    may_import, built = threading.Event(), list[App]()

    class KeptApp(App):
        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **named)
            built.append(self)

    monkeypatch.setattr("qwendesk.app.main.App", KeptApp)
    monkeypatch.setattr("qwendesk.app.main._import_window", may_import.wait)

    async def start() -> int:
        running = asyncio.create_task(_run(app, _arguments([]), None))
        try:
            await until(lambda: bool(built) and built[0].engine.was_load_requested)
            assert shown_window(app) is None
        finally:
            may_import.set()
        await until(lambda: shown_window(app) is not None)
        window = shown_window(app)
        assert window is not None
        window.end()
        return await running

    assert qt_loop.run(start()) == 0


@pytest.fixture
def usual_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has access lists, which are inherited")
@pytest.mark.usefixtures("usual_umask", "engines")
def test_other_users_cannot_read_the_apps_files(
    app: Application, qt_loop: asyncio.Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / "user" / variable))
    old = paths.data_folder() / "attachments" / "ab" / f"{'ab' * 32}.png"
    old.parent.mkdir(parents=True)
    old.touch()

    def readable() -> list[str]:
        found = (each for folder in paths.own_folders() for each in (folder, *folder.rglob("*")))
        return [str(each) for each in found if each.exists() and each.lstat().st_mode & 0o077]

    assert str(old) in readable(), "an earlier version left it so"

    async def run() -> int:
        running = asyncio.create_task(_run(app, _arguments([]), None))
        await until(lambda: (paths.data_folder() / "chats.db-wal").exists() and not readable())
        window = shown_window(app)
        assert window is not None
        window.end()
        return await running

    assert qt_loop.run(run()) == 0
    assert paths.config_folder().exists()
    assert readable() == []


_HUNG = """
import asyncio, sys, threading
from qwendesk.app import main

async def run(*_given):
    reading = threading.Event()
    def read_from_a_dead_drive():
        reading.set()
        threading.Event().wait()
    asyncio.get_running_loop().run_in_executor(None, read_from_a_dead_drive)
    while not reading.is_set():
        await asyncio.sleep(0)
    return 7

main._run, main._THREADS_END_WITHIN_S = run, 0.1
sys.exit(main.main([]))
"""


def test_thread_stuck_on_a_drive_does_not_keep_the_process_alive() -> None:
    assert subprocess.run([sys.executable, "-c", _HUNG], check=False, timeout=150).returncode == 7


_RESTARTING = """
import subprocess, sys
from pathlib import Path
from qwendesk.app import main

async def run(*_given):
    return main.RESTART

start = subprocess.Popen
main._run = run
main.subprocess.Popen = lambda command, **options: start(command, **options).wait()
main.own_command = lambda *options: (sys.executable, "-c", f"open({sys.argv[1]!r}, 'w').write({' '.join(options)!r})")
sys.exit(main.main(["--theme", "light"]))
"""


def test_a_restart_starts_a_new_process_with_the_same_options(tmp_path: Path) -> None:
    started = tmp_path / "started"
    done = subprocess.run([sys.executable, "-c", _RESTARTING, str(started)], check=False, timeout=150)
    assert done.returncode == 0
    assert started.read_text() == "--theme light"


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110  (widgets tell nobody when they change)
        await asyncio.sleep(0)
