"""Uses the window as a user does: finds controls by objectName, types, clicks, drops."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QLabel, QPlainTextEdit, QWidget

from qwendesk.app.parts import Parts
from qwendesk.app.window.main_window import MainWindow
from qwendesk.chat.view.composer.tools_menu import ToolsMenu
from qwendesk.chat.view.thread.assistant_message import AssistantMessage
from qwendesk.engine.state import Phase
from qwendesk.widgets.controls import Switch
from tests.fakes.engine import FakeEngineClient

WidgetT = TypeVar("WidgetT", bound=QWidget)
_TURNS_TO_DRAW = 500
_NO_MODIFIER = Qt.KeyboardModifier.NoModifier


class Desk:
    def __init__(self, parts: Parts, client: FakeEngineClient) -> None:
        self.parts = parts
        self.client = client

    @property
    def window(self) -> MainWindow:
        return self.parts.window

    @property
    def composer_text(self) -> QPlainTextEdit:
        return self.find("composer.text", QPlainTextEdit)

    def find(self, name: str, kind: type[WidgetT]) -> WidgetT:
        """The control of this objectName; fails when there is none."""
        found = self.window.findChild(kind, name)
        assert found is not None, f"no {kind.__name__} is called {name}"
        return found

    def has(self, name: str) -> bool:
        return self.window.findChild(QWidget, name) is not None

    def is_shown(self, name: str) -> bool:
        """Whether the control is there and on screen."""
        widget = self.window.findChild(QWidget, name)
        return widget is not None and widget.isVisible()

    def text_of(self, name: str) -> str:
        widget = self.find(name, QWidget)
        assert isinstance(widget, QLabel | QAbstractButton)
        return widget.text()

    def message(self, turn: int) -> AssistantMessage:
        return self.find(f"thread.message.{turn}", AssistantMessage)

    def click(self, name: str) -> None:
        button = self.find(name, QAbstractButton)
        assert button.isVisible(), f"{name} is not on screen"
        assert button.isEnabled(), f"{name} is disabled"
        QTest.mouseClick(button, Qt.MouseButton.LeftButton)

    def open_tools(self) -> ToolsMenu:
        """Open the menu of tools of the message field."""
        self.find("composer.tools", QAbstractButton).click()
        return self.find("composer.menu.tools", ToolsMenu)

    def choose_tool(self, name: str) -> None:
        """Switch a tool in that menu, and close it."""
        menu = self.open_tools()
        self.find(f"composer.tools.{name}", Switch).click()
        menu.close()

    def press(self, key: Qt.Key, modifier: Qt.KeyboardModifier = _NO_MODIFIER) -> None:
        """A key, where the focus is."""
        QTest.keyClick(self.window.focusWidget(), key, modifier)

    def type(self, text: str) -> None:
        self.composer_text.setFocus()
        QTest.keyClicks(self.composer_text, text)

    def send(self, text: str) -> None:
        self.type(text)
        QTest.keyClick(self.composer_text, Qt.Key.Key_Return)

    async def ask(self, text: str) -> None:
        """Type, send, and wait for the end of the answer, and as a rule until it is drawn."""
        turns = len(self.parts.chat.conversation.turns)
        self.send(text)
        await self.until(lambda: len(self.parts.chat.conversation.turns) > turns and not self.parts.chat.busy)
        # A huge answer, or a page that is not shown, may stay busy for longer.
        for _ in range(_TURNS_TO_DRAW):
            if not self.window.chat_page.thread_view.is_busy:
                break
            await asyncio.sleep(0.002)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Let the window live until `condition` holds; the time limit of tests/window.py ends a wait for ever."""
        # Most conditions are about widgets, which tell nobody when they change.
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.002)

    async def load_demo(self) -> None:
        self.parts.window.load_demo()
        await self.until(lambda: self.parts.engine.state.phase is Phase.READY)

    def drag(self, mime: QMimeData) -> QDragEnterEvent:
        event = QDragEnterEvent(self._middle(), Qt.DropAction.CopyAction, mime, Qt.MouseButton.LeftButton, _NO_MODIFIER)
        QApplication.sendEvent(self.window, event)
        return event

    def drop(self, *paths: Path) -> None:
        """Drop files on the window, as the desktop does: enter, then drop."""
        mime = files_mime(*paths)
        self.drag(mime)
        event = QDropEvent(
            QPointF(self._middle()), Qt.DropAction.CopyAction, mime, Qt.MouseButton.LeftButton, _NO_MODIFIER
        )
        QApplication.sendEvent(self.window, event)

    def paste(self, mime: QMimeData) -> None:
        QApplication.clipboard().setMimeData(mime)
        self.composer_text.setFocus()
        QTest.keyClick(self.composer_text, Qt.Key.Key_V, Qt.KeyboardModifier.ControlModifier)

    def _middle(self) -> QPoint:
        return self.window.rect().center()


def files_mime(*paths: Path) -> QMimeData:
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    return mime


def image_mime(width: int = 40, height: int = 30) -> QMimeData:
    image = QImage(width, height, QImage.Format.Format_RGB32)
    image.fill(Qt.GlobalColor.blue)
    mime = QMimeData()
    mime.setImageData(image)
    return mime
