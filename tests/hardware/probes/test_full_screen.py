"""The program in full screen: by the hints of a real X server, and as Windows tells it."""

import ctypes
import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from qwendesk.hardware.probes import full_screen
from qwendesk.hardware.probes.full_screen import D3D_FULL_SCREEN, MonitorInfo, Rect
from tests.hardware.probes.x_windows import XWindows
from tests.xvfb import running_xvfb

on_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="X11 is asked on Linux alone")
FULL, ABOVE = "_NET_WM_STATE_FULLSCREEN", "_NET_WM_STATE_ABOVE"


@pytest.fixture(scope="module")
def display() -> Iterator[str]:
    with running_xvfb(640, 480) as display:
        yield display


@pytest.fixture
def windows(display: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[XWindows]:
    monkeypatch.setenv("DISPLAY", display)
    with XWindows(display) as windows:
        yield windows
        windows.activate(0)


@on_linux
def test_the_active_window_counts_if_it_is_in_full_screen(windows: XWindows) -> None:
    assert full_screen.full_screen_pid_x11() is None
    windows.activate(windows.make(pid=4711, states=[ABOVE, FULL]))
    assert full_screen.full_screen_pid_x11() == 4711
    windows.activate(windows.make(pid=4711, states=[ABOVE]))
    assert full_screen.full_screen_pid_x11() is None
    windows.activate(windows.make(pid=None, states=[FULL]))
    assert full_screen.full_screen_pid_x11() is None
    windows.activate(0)
    assert full_screen.full_screen_pid_x11() is None


@on_linux
def test_a_window_that_is_gone_does_not_count(windows: XWindows) -> None:
    window = windows.make(pid=4711, states=[FULL])
    windows.activate(window)
    windows.destroy(window)
    assert full_screen.full_screen_pid_x11() is None


@on_linux
@pytest.mark.parametrize("name", ["", ":65000"], ids=["none", "not there"])
def test_without_an_x_server_nothing_is_in_full_screen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISPLAY", name)
    assert full_screen.full_screen_pid_x11() is None


@on_linux
def test_qwendesk_itself_does_not_count(windows: XWindows) -> None:
    windows.activate(windows.make(pid=os.getpid(), states=[FULL]))
    assert full_screen.full_screen_program() is None
    windows.activate(windows.make(pid=os.getppid(), states=[FULL]))
    program = full_screen.full_screen_program()
    assert program is not None
    assert program.pid == os.getppid()
    assert program.name


class FakeUser:
    """user32.dll: the foreground window with its class, place and process."""

    def __init__(self, *, window: int = 7, name: str = "UnrealWindow", place: tuple[int, int, int, int]) -> None:
        self.window, self.name, self.place = window, name, place

    def GetForegroundWindow(self) -> int | None:  # noqa: N802
        return self.window or None

    def GetClassNameW(self, _window: int, text: Any, _length: int) -> int:  # noqa: N802
        text.value = self.name
        return len(self.name)

    def GetWindowRect(self, _window: int, place: Any) -> int:  # noqa: N802
        ctypes.memmove(place, ctypes.byref(Rect(*self.place)), ctypes.sizeof(Rect))
        return 1

    def MonitorFromWindow(self, _window: int, _flags: int) -> int:  # noqa: N802
        return 3

    def GetMonitorInfoW(self, monitor: int, info: Any) -> int:  # noqa: N802
        if monitor != 3 or info._obj.size != ctypes.sizeof(MonitorInfo):
            return 0
        info._obj.monitor, info._obj.work = Rect(1920, 0, 4480, 1440), Rect(1920, 0, 4480, 1400)
        return 1

    def GetWindowThreadProcessId(self, _window: int, pid: Any) -> int:  # noqa: N802
        pid._obj.value = 4711
        return 1


class FakeShell:
    """shell32.dll: the state for notifications, or an error."""

    def __init__(self, state: int, result: int = 0) -> None:
        self.state, self.result = state, result

    def SHQueryUserNotificationState(self, state: Any) -> int:  # noqa: N802
        state._obj.value = self.state
        return self.result


MONITOR, MAXIMIZED, WINDOW = (1920, 0, 4480, 1440), (1912, -8, 4488, 1408), (2000, 100, 3000, 900)
NOTHING_SPECIAL, BUSY = 5, 2


@pytest.mark.parametrize(
    ("user", "shell", "pid"),
    [
        (FakeUser(place=MONITOR), FakeShell(BUSY), 4711),
        (FakeUser(place=MONITOR), FakeShell(NOTHING_SPECIAL), 4711),
        (FakeUser(place=MONITOR), FakeShell(0, result=-1), 4711),
        (FakeUser(place=WINDOW), FakeShell(D3D_FULL_SCREEN), 4711),
        (FakeUser(place=WINDOW), FakeShell(D3D_FULL_SCREEN, result=-1), None),
        (FakeUser(place=MAXIMIZED), FakeShell(NOTHING_SPECIAL), None),
        (FakeUser(place=WINDOW), FakeShell(BUSY), None),
        (FakeUser(place=MONITOR, name="Progman"), FakeShell(NOTHING_SPECIAL), None),
        (FakeUser(place=MONITOR, window=0), FakeShell(NOTHING_SPECIAL), None),
    ],
    ids=[
        "borderless", "silent", "no answer", "Direct3D", "error", "maximized", "a window", "the desktop", "no window",
    ],
)  # fmt: skip
def test_windows_tells_which_window_covers_its_monitor(user: FakeUser, shell: FakeShell, pid: int | None) -> None:
    assert full_screen.full_screen_pid_windows(user, shell) == pid


@pytest.mark.skipif(sys.platform != "win32", reason="asks Windows itself")
def test_windows_can_be_asked() -> None:
    pid = full_screen.full_screen_pid_windows()
    assert pid is None or pid > 0
