"""Windows on an X server without a window manager, with the hints that one would keep. Through Xlib."""

import ctypes
from collections.abc import Sequence
from typing import Any, Self

_ATOM, _CARDINAL, _WINDOW = 4, 6, 33
"""Predefined atoms of X11."""
_REPLACE = 0


class XWindows:
    """A connection to one X server. Its windows end with it."""

    def __init__(self, display: str) -> None:
        library: Any = ctypes.CDLL("libX11.so.6")
        self._x, pointer, number = library, ctypes.c_void_p, ctypes.c_ulong
        library.XOpenDisplay.restype, library.XOpenDisplay.argtypes = pointer, (ctypes.c_char_p,)
        library.XDefaultRootWindow.restype, library.XDefaultRootWindow.argtypes = number, (pointer,)
        library.XInternAtom.restype, library.XInternAtom.argtypes = number, (pointer, ctypes.c_char_p, ctypes.c_int)
        library.XCreateSimpleWindow.restype = number
        library.XCreateSimpleWindow.argtypes = (
            pointer,
            number,
            *(ctypes.c_int,) * 2,
            *(ctypes.c_uint,) * 3,
            number,
            number,
        )
        library.XChangeProperty.argtypes = (
            pointer, number, number, number, *(ctypes.c_int,) * 2, pointer, ctypes.c_int,
        )  # fmt: skip
        library.XDestroyWindow.argtypes = (pointer, number)
        library.XSync.argtypes, library.XCloseDisplay.argtypes = (pointer, ctypes.c_int), (pointer,)
        self._display = library.XOpenDisplay(display.encode())
        self._root = library.XDefaultRootWindow(self._display)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._x.XCloseDisplay(self._display)

    def make(self, *, pid: int | None, states: Sequence[str] = ()) -> int:
        """Make a window of this process id and these states, which isn't shown; return its number."""
        window = int(self._x.XCreateSimpleWindow(self._display, self._root, 0, 0, 100, 100, 0, 0, 0))
        if pid is not None:
            self._set(window, "_NET_WM_PID", _CARDINAL, [pid])
        self._set(window, "_NET_WM_STATE", _ATOM, [self._atom(state) for state in states])
        return window

    def activate(self, window: int) -> None:
        """Make a window the active one; 0 for none."""
        self._set(self._root, "_NET_ACTIVE_WINDOW", _WINDOW, [window])

    def destroy(self, window: int) -> None:
        self._x.XDestroyWindow(self._display, window)
        self._x.XSync(self._display, 0)

    def _atom(self, name: str) -> int:
        return int(self._x.XInternAtom(self._display, name.encode(), 0))

    def _set(self, window: int, name: str, kind: int, values: Sequence[int]) -> None:
        data = (ctypes.c_ulong * len(values))(*values)
        self._x.XChangeProperty(self._display, window, self._atom(name), kind, 32, _REPLACE, data, len(values))
        self._x.XSync(self._display, 0)
