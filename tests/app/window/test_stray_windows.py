"""A widget that is shown before it has a parent is a window of its own for a moment, at the edge of the screen."""

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtWidgets import QApplication, QMainWindow, QPushButton, QWidget

from tests.window_desk import Desk

PAGES = ("models", "engine", "bench", "server", "settings", "chat")


class Watcher(QObject):
    """Notes each plain widget that is shown as a window."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
        if event.type() == QEvent.Type.Show and isinstance(watched, QWidget) and watched.isWindow():
            is_plain = watched.windowType() == Qt.WindowType.Window and not isinstance(watched, QMainWindow)
            if is_plain:
                self.found.append(f"{type(watched).__name__} {watched.objectName()}")
        return False


@pytest.fixture
def watcher(app: QApplication) -> Iterator[Watcher]:
    watcher = Watcher()
    app.installEventFilter(watcher)
    yield watcher
    app.removeEventFilter(watcher)


async def test_no_page_shows_a_part_as_a_window_of_its_own(desk: Desk, watcher: Watcher) -> None:
    await desk.parts.services.models.catalog.load()
    for page in PAGES:
        desk.window.show_page(page)
        for button in desk.window.findChildren(QPushButton):
            if ".tab." in button.objectName():
                button.click()
    assert watcher.found == []
    QWidget().show()
    assert watcher.found == ["QWidget "]
