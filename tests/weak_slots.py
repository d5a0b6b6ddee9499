"""Refuses signal connections that PySide makes only now and then: to methods of an object without weak references.

PySide keeps no such object alive, but asks to be told of its end. Where that is impossible, as with a msgspec.Struct
without `weakref=True`, connecting raises SystemError; but not if it is the first connection of a sender made in Python.
Such a connection calls a method of freed memory once the object is gone.
"""

import inspect
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from PySide6.QtCore import SignalInstance


@contextmanager
def checked_slots() -> Iterator[None]:
    """Within it, each such connection raises TypeError and names the class of the object."""
    connect: Callable[..., Any] = SignalInstance.connect

    def connect_checked(signal: SignalInstance, slot: object, *more: object, **named: object) -> object:
        if inspect.ismethod(slot):
            weakref.ref(slot.__self__)
        return connect(signal, slot, *more, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SignalInstance, "connect", connect_checked)
        yield
