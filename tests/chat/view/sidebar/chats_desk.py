"""Uses the window's list of chats as a user does."""

from pathlib import Path

from PySide6.QtCore import QModelIndex, QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLineEdit, QListView, QMenu

from qwendesk.chat.view.sidebar.chat_model import ROW_ROLE, Heading, Row
from qwendesk.core.chats import ChatSummary
from tests.fakes.engine import ScriptedAnswer
from tests.window_desk import Desk


class ChatsDesk:
    """The window, with what a person does with the list."""

    def __init__(self, desk: Desk, folder: Path) -> None:
        self.desk = desk
        self.folder = folder

    @property
    def view(self) -> QListView:
        return self.desk.find("chats.list", QListView)

    @property
    def lines(self) -> list[str]:
        model = self.view.model()
        return [str(model.index(row, 0).data()) for row in range(model.rowCount())]

    @property
    def titles(self) -> list[str]:
        return [row.title for row in self._rows if isinstance(row, ChatSummary)]

    @property
    def headings(self) -> list[str]:
        return [row.text for row in self._rows if isinstance(row, Heading)]

    @property
    def _rows(self) -> list[Row]:
        model = self.view.model()
        return [model.index(row, 0).data(ROW_ROLE) for row in range(model.rowCount())]

    @property
    def questions(self) -> list[str]:
        return [turn.question.text for turn in self.desk.parts.chat.conversation.turns]

    async def open_file(self) -> "ChatsDesk":
        self.desk.parts.chats.start(self.folder)
        await self.desk.until(lambda: self.desk.parts.chats.services.chat_list.state.value.is_loaded)
        return self

    async def ask(self, text: str) -> None:
        """In a new chat; done when the list has it."""
        self.desk.click("chats.new")
        self.desk.client.answers.append(ScriptedAnswer(text=f"About {text}"))
        await self.desk.ask(text)
        await self.desk.until(lambda: text in self.titles)

    def index(self, line: str) -> QModelIndex:
        return self.view.model().index(self.lines.index(line), 0)

    def click(self, line: str, modifier: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
        place = self.view.visualRect(self.index(line)).center()
        QTest.mouseClick(self.view.viewport(), Qt.MouseButton.LeftButton, modifier, place)

    def menu(self, line: str) -> QMenu:
        """The context menu of a row; its entries by objectName."""
        if not self.view.selectionModel().isSelected(self.index(line)):
            self.view.setCurrentIndex(self.index(line))
        sidebar = self.desk.parts.chats.sidebar
        sidebar._open_menu(sidebar.mapToGlobal(QPoint(50, 100)))
        return sidebar.findChildren(QMenu, "chats.menu")[-1]

    def choose(self, line: str, entry: str) -> None:
        menu = self.menu(line)
        actions = {
            action.objectName(): action for each in (menu, *menu.findChildren(QMenu)) for action in each.actions()
        }
        actions[f"chats.menu.{entry}"].trigger()
        menu.close()

    async def search(self, text: str) -> QListView:
        field = self.desk.find("chats.search", QLineEdit)
        field.setText(text)
        hits = self.desk.find("chats.hits", QListView)
        await self.desk.until(hits.isVisible)
        return hits
