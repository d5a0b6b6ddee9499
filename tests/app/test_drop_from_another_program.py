"""A picture is dragged from another program's window and dropped on ours: real XDND on an X server of its own."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.app import drag_source, drop_window
from tests.xvfb import running_xvfb

pytestmark = [
    pytest.mark.real_display,
    pytest.mark.timeout(180),
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Xvfb is for Linux"),
    pytest.mark.skipif(shutil.which("xdotool") is None, reason="needs xdotool, which moves the mouse"),
]
_ROOT = Path(__file__).resolve().parents[2]


class Screen:
    """An X server with a window manager, if one is installed, and a mouse."""

    def __init__(self, display: str, stack: ExitStack) -> None:
        self._environment = {**os.environ, "DISPLAY": display, "QT_QPA_PLATFORM": "xcb"}
        self._stack = stack
        if shutil.which("openbox") is not None:
            stack.enter_context(self._running("openbox", "--sm-disable"))

    def start(self, module: str, argument: Path, title: str) -> str:
        """Run a module of the tests and return the id of its window, once that is shown."""
        self._stack.enter_context(self._running(sys.executable, "-m", module, str(argument)))
        return self.mouse("search", "--sync", "--onlyvisible", "--name", title).split()[0]

    def mouse(self, *command: str) -> str:
        done = subprocess.run(
            ["xdotool", *command], env=self._environment, capture_output=True, text=True, timeout=120, check=True
        )
        return done.stdout

    @contextmanager
    def _running(self, *command: str) -> Iterator[None]:
        process = subprocess.Popen(
            command, cwd=_ROOT, env=self._environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            yield
        finally:
            process.terminate()
            process.wait(60)


@pytest.fixture
def screen() -> Iterator[Screen]:
    with ExitStack() as stack:
        display = stack.enter_context(running_xvfb(1600, 900))
        yield Screen(display, stack)


def repeat(action: Callable[[], object], until: Callable[[], bool]) -> None:
    """Repeat `action`, which starts a program and so takes a while, until a condition holds."""
    while not until():
        action()


def test_a_picture_from_another_window_lights_the_drop_target_and_is_attached(
    screen: Screen, shape_picture: Callable[..., Path], tmp_path: Path
) -> None:
    picture, log = shape_picture("red", "circle"), tmp_path / "log.txt"
    log.touch()
    window = screen.start("tests.app.drop_window", log, drop_window.TITLE)
    source = screen.start("tests.app.drag_source", picture, drag_source.TITLE)

    screen.mouse("mousemove", "--window", source, "100", "100", "mousedown", "1")
    screen.mouse("mousemove_relative", "20", "20")
    steps = iter(range(1_000_000))

    def move_over_window() -> None:
        screen.mouse("mousemove", "--window", window, str(500 + next(steps) % 40), "400")

    repeat(move_over_window, until=lambda: "over" in log.read_text())
    move_over_window()
    screen.mouse("mouseup", "1")
    repeat(lambda: screen.mouse("getmouselocation"), until=lambda: picture.name in log.read_text().splitlines())
