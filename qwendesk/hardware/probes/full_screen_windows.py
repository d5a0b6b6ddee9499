"""Finds the program in full screen on Windows: the foreground window, if it covers its whole monitor."""

import ctypes
from typing import Any

D3D_FULL_SCREEN = 3
"""QUNS_RUNNING_D3D_FULL_SCREEN of SHQueryUserNotificationState."""
_NEAREST_MONITOR = 2
_DESKTOP_CLASSES = ("Progman", "WorkerW", "Shell_TrayWnd")
"""Classes of the desktop itself, which covers its monitor too."""


class Rect(ctypes.Structure):
    _fields_ = (
        ("left", ctypes.c_int32),
        ("top", ctypes.c_int32),
        ("right", ctypes.c_int32),
        ("bottom", ctypes.c_int32),
    )

    @property
    def sides(self) -> tuple[int, int, int, int]:
        return self.left, self.top, self.right, self.bottom


class MonitorInfo(ctypes.Structure):
    """MONITORINFO."""

    _fields_ = (("size", ctypes.c_uint32), ("monitor", Rect), ("work", Rect), ("flags", ctypes.c_uint32))


def full_screen_pid(user: Any = None, shell: Any = None) -> int | None:
    """Return the process of the foreground window if it is in full screen; None if not, or if Windows doesn't tell.

    `user` and `shell` stand for user32.dll and shell32.dll.
    """
    user, shell = user or _library("user32"), shell or _library("shell32")
    if user is None or shell is None:
        return None
    window = user.GetForegroundWindow()
    if not window or _class_name(user, window) in _DESKTOP_CLASSES:
        return None
    state = ctypes.c_int32()
    knows = shell.SHQueryUserNotificationState(ctypes.byref(state)) == 0
    # A game in a borderless window is no Direct3D full screen for Windows, but it covers the monitor.
    if not (knows and state.value == D3D_FULL_SCREEN) and not _covers_monitor(user, window):
        return None
    pid = ctypes.c_uint32()
    user.GetWindowThreadProcessId(window, ctypes.byref(pid))
    return pid.value or None


def _covers_monitor(user: Any, window: Any) -> bool:
    place, info = Rect(), MonitorInfo(size=ctypes.sizeof(MonitorInfo))
    monitor = user.MonitorFromWindow(window, _NEAREST_MONITOR)
    if not user.GetWindowRect(window, ctypes.byref(place)) or not user.GetMonitorInfoW(monitor, ctypes.byref(info)):
        return False
    left, top, right, bottom = info.monitor.sides
    return bool(place.left <= left and place.top <= top and place.right >= right and place.bottom >= bottom)


def _class_name(user: Any, window: Any) -> str:
    text = ctypes.create_unicode_buffer(64)
    user.GetClassNameW(window, text, len(text))
    return text.value


def _library(name: str) -> Any:
    """Return a library of Windows with the types of what is called; None on other systems."""
    load = getattr(ctypes, "WinDLL", None)
    if load is None:
        return None
    library: Any = load(name)
    if name == "user32":
        handle = ctypes.c_void_p
        library.GetForegroundWindow.restype = library.MonitorFromWindow.restype = handle
        library.MonitorFromWindow.argtypes = (handle, ctypes.c_uint32)
        library.GetWindowRect.argtypes = library.GetMonitorInfoW.argtypes = (handle, ctypes.c_void_p)
        library.GetWindowThreadProcessId.argtypes = (handle, ctypes.c_void_p)
        library.GetClassNameW.argtypes = (handle, ctypes.c_wchar_p, ctypes.c_int)
    return library
