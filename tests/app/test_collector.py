"""Garbage collections of all generations wait until nothing is being written."""

import gc
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from PySide6.QtCore import QObject
from PySide6.QtWidgets import QApplication

from qwendesk.app.event_loop import IdleCollector, keep_collector_quick


@pytest.fixture
def collections() -> Iterator[list[int]]:
    """The generation of each collection while the test runs."""
    threshold, found = gc.get_threshold(), []

    def note(phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            found.append(info["generation"])

    gc.callbacks.append(note)
    yield found
    gc.callbacks.remove(note)
    gc.set_threshold(*threshold)
    gc.unfreeze()


def test_only_young_objects_are_collected_by_themselves(collections: list[int]) -> None:
    keep_collector_quick()
    collections.clear()
    kept = [[number] for number in range(400_000)]
    assert len(kept) == 400_000
    assert collections
    assert 2 not in collections


def test_all_objects_are_collected_while_nothing_is_written(app: QApplication, collections: list[int]) -> None:
    chat, parent = SimpleNamespace(busy=True), QObject()
    collector = IdleCollector(chat, parent)
    collector.collect()
    assert 2 not in collections
    chat.busy = False
    collector.collect()
    assert 2 in collections
