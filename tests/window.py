"""A window on a scripted engine. Tests that are coroutines run on Qt's own event loop."""

import asyncio
import inspect
import itertools
import shutil
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QObject
from PySide6.QtWidgets import QApplication, QWidget

from qwendesk.app.application import Application
from qwendesk.app.event_loop import EventLoop
from qwendesk.app.parts import build
from qwendesk.core import paths
from qwendesk.widgets.lazy_page import LazyPage
from qwendesk.widgets.step_budget import StepBudget
from qwendesk.widgets.theme_keeper import ThemeKeeper
from tests.fakes.engine import FakeEngineClient, decide_by_default
from tests.weak_slots import checked_slots
from tests.window_desk import Desk


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine test that asks for `qt_loop` (as `desk` does) on it."""
    runner = pyfuncitem.funcargs.get("qt_loop")
    if not isinstance(runner, asyncio.Runner) or not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    runner.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture(scope="session")
def app() -> Iterator[Application]:
    existing = QApplication.instance()
    app = existing if isinstance(existing, Application) else Application(["qwendesk-tests"])
    app.setQuitOnLastWindowClosed(False)
    with checked_slots():
        yield app
    # Python's own data would be freed after Python is gone, and the process would end by a crash.
    app.clipboard().clear()


class Loop(EventLoop):
    """Runs what goes on in the background only while it runs itself, and no test or fixture for longer than `limit_s`.

    qasync handles events once more after the test has ended; a task that goes on then finds no running loop. The
    limit of pytest-timeout has no effect on this loop: it raises inside of a Qt callback, which loses the exception.
    """

    limit_s: float | None = None

    def run_until_complete(self, future: Any) -> Any:
        task = asyncio.ensure_future(_within(self.limit_s, future), loop=self)

        def stop(_task: object) -> None:
            self.stop()

        task.add_done_callback(stop)
        try:
            self.run_forever()
        finally:
            task.remove_done_callback(stop)
        return task.result()


async def _within(limit_s: float | None, future: Awaitable[Any]) -> Any:
    async with asyncio.timeout(limit_s):
        return await future


@pytest.fixture
def qt_loop(app: QApplication, request: pytest.FixtureRequest) -> Iterator[asyncio.Runner]:
    def make() -> Loop:
        loop = Loop(app)
        loop.limit_s = _limit_s(request)
        return loop

    with asyncio.Runner(loop_factory=make) as runner:
        yield runner


def _limit_s(request: pytest.FixtureRequest) -> float:
    """A bit less than the limit of pytest-timeout."""
    marker = request.node.get_closest_marker("timeout")
    limit = marker.args[0] if marker else request.config.getoption("timeout") or request.config.getini("timeout")
    return 0.75 * float(limit)


_IN_STEPS = LazyPage._begin


@pytest.fixture
def pages_in_steps(keeper: ThemeKeeper, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages are built in steps, as in the app, and on any machine one in each pass of the loop."""

    def one_step(owner: QObject) -> StepBudget:
        return StepBudget(owner, 2.0, clock=itertools.count().__next__)

    monkeypatch.setattr("qwendesk.widgets.lazy_page.StepBudget", one_step)
    monkeypatch.setattr(LazyPage, "_begin", _IN_STEPS)


@pytest.fixture
def keeper(app: QApplication, monkeypatch: pytest.MonkeyPatch) -> Iterator[ThemeKeeper]:
    """The theme. Widgets of earlier tests are deleted first: without a running loop they stay, and are restyled.

    Pages are built and arranged at once when they are shown, so that tests can use them on the next line.
    """

    def build_at_once(page: LazyPage[QWidget]) -> None:
        page.page()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest)

    monkeypatch.setattr(LazyPage, "_begin", build_at_once)
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    keeper = ThemeKeeper(app, "dark")
    yield keeper
    keeper.deleteLater()


@pytest.fixture
def client(qt_loop: asyncio.Runner) -> FakeEngineClient:
    return FakeEngineClient()


@pytest.fixture
def make_desk(
    qt_loop: asyncio.Runner, keeper: ThemeKeeper, client: FakeEngineClient, tmp_path: Path
) -> Iterator[Callable[[], Desk]]:
    """Makes the window without a model, for a test that says itself when to load.

    Closed before the test's folder, in which its chats may be, is deleted.
    """
    desks: list[Desk] = []

    def make() -> Desk:
        parts = build(client, decide=decide_by_default)
        desk = Desk(parts, client)
        desks.append(desk)
        desk.window.show()
        desk.window.activateWindow()
        return desk

    yield make
    for desk in desks:
        qt_loop.run(desk.parts.close())
        assert desk.client.closed
    # What was downloaded would be found by the window of a test that comes later.
    shutil.rmtree(paths.data_folder() / "models", ignore_errors=True)


@pytest.fixture
def desk(qt_loop: asyncio.Runner, make_desk: Callable[[], Desk]) -> Desk:
    """The window with the demo loaded."""
    desk = make_desk()
    qt_loop.run(desk.load_demo())
    return desk
