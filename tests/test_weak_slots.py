"""The check that every test of the window gets."""

import msgspec
import pytest
from PySide6.QtCore import QObject

from tests.weak_slots import checked_slots


class Plain(msgspec.Struct):
    def listen(self, _name: str) -> None:
        """Nothing to do."""


class Weak(Plain, weakref=True):
    pass


def test_method_of_an_object_without_weak_references_is_refused() -> None:
    sender, plain, weak = QObject(), Plain(), Weak()
    with checked_slots():
        with pytest.raises(TypeError, match="'Plain'"):
            sender.objectNameChanged.connect(plain.listen)
        sender.objectNameChanged.connect(weak.listen)
