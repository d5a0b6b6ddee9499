"""Finds the program whose window is in full screen, on the systems that tell.

macOS isn't asked: there the GPU's memory is the RAM, and full screen only counts when video memory is short.

On Wayland no program may ask for other programs' windows. Those that run through Xwayland, as many games do, are
found if the compositor keeps the hints.
"""

import contextlib
import ctypes
import ctypes.util
import os
import sys
from collections.abc import Iterator
from typing import Any

from qwendesk.hardware.programs import RunningProgram
from qwendesk.hardware.snapshot_reader import program_name


def full_screen_program() -> RunningProgram | None:
    """Return the program in front if it is in full screen; None if none is, it is QwenDesk, or the system is silent.

    Blocks for about a millisecond.
    """
    if sys.platform == "win32":
        pid = full_screen_pid_windows()
    elif sys.platform == "darwin":
        pid = None
    else:
        pid = full_screen_pid_x11()
    return RunningProgram(pid, program_name(pid)) if pid and pid != os.getpid() else None


# QUNS_RUNNING_D3D_FULL_SCREEN of SHQueryUserNotificationState.
D3D_FULL_SCREEN = 3
_NEAREST_MONITOR = 2
# Classes of the desktop itself, which covers its monitor too.
_DESKTOP_CLASSES = ("Progman", "WorkerW", "Shell_TrayWnd")


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


def full_screen_pid_windows(user: Any = None, shell: Any = None) -> int | None:
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


_ANY_TYPE, _WINDOW_WORDS, _STATE_WORDS = 0, 1, 64


class _Cookie(ctypes.Structure):
    _fields_ = (("sequence", ctypes.c_uint),)


class _Screen(ctypes.Structure):
    """The beginning of xcb_screen_t."""

    _fields_ = (("root", ctypes.c_uint32),)


class _ScreenIterator(ctypes.Structure):
    _fields_ = (("data", ctypes.POINTER(_Screen)), ("rem", ctypes.c_int), ("index", ctypes.c_int))


class _AtomReply(ctypes.Structure):
    _fields_ = (
        ("response_type", ctypes.c_uint8),
        ("pad0", ctypes.c_uint8),
        ("sequence", ctypes.c_uint16),
        ("length", ctypes.c_uint32),
        ("atom", ctypes.c_uint32),
    )


def full_screen_pid_x11() -> int | None:
    """Return the process of the active window if it is in full screen; None if none is, or nobody tells.

    Blocks for about a millisecond: it connects to the X server that DISPLAY names each time, so that no connection is
    kept that may break.
    """
    if not os.environ.get("DISPLAY"):
        return None
    xcb = _libxcb()
    if xcb is None:
        return None
    with _connection(xcb) as connection:
        return _Display(xcb, connection).full_screen_pid() if connection is not None else None


class _Display:
    """Asks one X server."""

    def __init__(self, xcb: Any, connection: Any) -> None:
        self._xcb, self._connection = xcb, connection

    def full_screen_pid(self) -> int | None:
        root = self._root()
        window = self._words(root, "_NET_ACTIVE_WINDOW", _WINDOW_WORDS) if root is not None else ()
        if not window or not window[0]:
            return None
        if self._atom("_NET_WM_STATE_FULLSCREEN") not in self._words(window[0], "_NET_WM_STATE", _STATE_WORDS):
            return None
        pid = self._words(window[0], "_NET_WM_PID", _WINDOW_WORDS)
        return pid[0] if pid else None

    def _root(self) -> int | None:
        screens = self._xcb.xcb_setup_roots_iterator(self._xcb.xcb_get_setup(self._connection))
        return int(screens.data.contents.root) if screens.rem else None

    def _atom(self, name: str) -> int:
        """Return the number of a name; 0 if the server doesn't know it."""
        cookie = self._xcb.xcb_intern_atom(self._connection, 1, len(name), name.encode())
        with _freed(self._xcb.xcb_intern_atom_reply(self._connection, cookie, None)) as reply:
            return int(ctypes.cast(reply, ctypes.POINTER(_AtomReply)).contents.atom) if reply else 0

    def _words(self, window: int, name: str, n_words: int) -> tuple[int, ...]:
        """Return a property of 32-bit numbers; () if the window has none, or is gone."""
        atom, xcb = self._atom(name), self._xcb
        if not atom:
            return ()
        cookie = xcb.xcb_get_property(self._connection, 0, window, atom, _ANY_TYPE, 0, n_words)
        with _freed(xcb.xcb_get_property_reply(self._connection, cookie, None)) as reply:
            if not reply:
                return ()
            count = xcb.xcb_get_property_value_length(reply) // 4
            values = ctypes.cast(xcb.xcb_get_property_value(reply), ctypes.POINTER(ctypes.c_uint32))
            return tuple(int(values[index]) for index in range(count))


def _libxcb() -> Any:
    """Return libxcb with the types of what is called; None if it isn't installed."""
    try:
        xcb = ctypes.CDLL(ctypes.util.find_library("xcb") or "libxcb.so.1")
    except OSError:
        return None
    pointer, word = ctypes.c_void_p, ctypes.c_uint32
    for name, result, arguments in (
        ("xcb_connect", pointer, (ctypes.c_char_p, pointer)),
        ("xcb_connection_has_error", ctypes.c_int, (pointer,)),
        ("xcb_disconnect", None, (pointer,)),
        ("xcb_get_setup", pointer, (pointer,)),
        ("xcb_setup_roots_iterator", _ScreenIterator, (pointer,)),
        ("xcb_intern_atom", _Cookie, (pointer, ctypes.c_uint8, ctypes.c_uint16, ctypes.c_char_p)),
        ("xcb_intern_atom_reply", pointer, (pointer, _Cookie, pointer)),
        ("xcb_get_property", _Cookie, (pointer, ctypes.c_uint8, word, word, word, word, word)),
        ("xcb_get_property_reply", pointer, (pointer, _Cookie, pointer)),
        ("xcb_get_property_value", pointer, (pointer,)),
        ("xcb_get_property_value_length", ctypes.c_int, (pointer,)),
    ):
        function = getattr(xcb, name)
        function.restype, function.argtypes = result, arguments
    return xcb


@contextlib.contextmanager
def _connection(xcb: Any) -> Iterator[Any]:
    """Connect to the X server and give the connection, or None if it refuses; disconnect at the end."""
    connection = xcb.xcb_connect(None, None)
    try:
        yield None if xcb.xcb_connection_has_error(connection) else connection
    finally:
        xcb.xcb_disconnect(connection)


@contextlib.contextmanager
def _freed(reply: int | None) -> Iterator[int | None]:
    """Give a reply of libxcb and free it, as its documentation asks."""
    try:
        yield reply
    finally:
        if reply:
            free = ctypes.CDLL(None).free
            free.argtypes, free.restype = (ctypes.c_void_p,), None
            free(reply)
