"""What is done with a chat's turns and with the list of chats: versions, editors, search, rows, branches."""

import msgspec
from PySide6.QtCore import QModelIndex, Qt
from PySide6.QtGui import QContextMenuEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit, QListView

from qwendesk.core.conversation import ChatTree
from tools.screenshots.gallery import texts
from tools.screenshots.gallery.made_up_chats import answered, asks, says, tree
from tools.screenshots.gallery.room import Room
from tools.screenshots.stage import settle, until


async def versions(room: Room) -> None:
    one = tree((asks("Name a river in three languages."), says("The Rhine, le Rhin, der Rhein."), {}))
    question, answer = one.nodes.values()
    again = answered("again", question.id, says("The Danube, le Danube, die Donau.", "Another one."))
    asked = msgspec.structs.replace(question, id="other", message=asks("Name a river in four languages."))
    last = answered("last", "other", says("Danube, Donau, Duna, Dunaj."), stop_reason="max_tokens")
    nodes = {each.id: each for each in (question, answer, again, asked, last)}
    room.open("versions", ChatTree(nodes))
    await settle()

    def hovered() -> None:
        room.hover(room.parts.chat.conversation.turns[0].id)
        room.hover(room.parts.chat.conversation.turns[0].id, "question")

    await room.shoot("versions", hovered)
    room.open("versions", ChatTree(nodes, {"": question.id}))
    await settle()
    await room.shoot("versions-first", hovered)
    turn = room.parts.chat.conversation.turns[0]
    room.click(f"thread.edit.{turn.id}")
    await room.shoot("editor-answer")
    room.open("versions", ChatTree(nodes, {"": question.id}))
    await settle()
    room.click(f"thread.question.edit.{room.parts.chat.conversation.turns[0].id}")
    await room.shoot("editor-question")


async def search(room: Room) -> None:
    field = room.window.findChild(QLineEdit, "chats.search")
    hits = room.window.findChild(QListView, "chats.hits")
    if field is None or hits is None:
        raise LookupError("the search of the chats")
    await room.open_listed(1)
    await settle()
    await room.shoot("chat-list")
    field.setText("particle")
    await until(hits.isVisible)
    await room.shoot("search-hits")
    hits.setCurrentIndex(hits.model().index(2, 0))
    QTest.keyClick(hits, Qt.Key.Key_Return)
    await settle()
    await room.shoot("search-jump")
    field.setText("zebra")
    await settle()
    await room.shoot("search-nothing")
    field.clear()
    await settle()
    room.thread.find_bar.open()
    room.thread.find_bar.text.setText("cruise")
    await settle()
    await room.shoot("find")
    room.thread.find_bar.close_bar()


async def chat_list(room: Room) -> None:
    """An open chat, another one that is selected, and a third below the pointer."""
    await room.open_listed(0)
    rows = room.parts.chats.sidebar.list

    def point() -> None:
        room.show_sidebar()
        rows.setCurrentIndex(_row(rows, texts.EARLIER[3][0]))
        rows.setFocus()
        QTest.mouseMove(rows.viewport(), rows.visualRect(_row(rows, texts.EARLIER[4][0])).center())

    await room.shoot("chat-rows", point)

    def rename() -> None:
        point()
        rows.rename_current()

    def open_menu() -> None:
        point()
        _open_menu(room)

    await room.shoot("chat-menu", open_menu)
    await room.shoot("chat-rename", rename)
    rows.setFocus()


def _row(rows: QListView, title: str) -> QModelIndex:
    model = rows.model()
    return next(index for index in (model.index(row, 0) for row in range(model.rowCount())) if index.data() == title)


def _open_menu(room: Room) -> None:
    rows = room.parts.chats.sidebar.list
    place = rows.visualRect(rows.currentIndex()).center()
    reason = QContextMenuEvent.Reason.Mouse
    event = QContextMenuEvent(reason, rows.mapTo(room.find("chats"), place), rows.viewport().mapToGlobal(place))
    QApplication.sendEvent(room.find("chats"), event)


async def branch(room: Room) -> None:
    """A branch, and the message that says that it was made."""
    await room.open_listed(0)
    room.thread.follow()
    last = room.parts.chat.conversation.turns[-1].id
    room.hover(last)
    room.click(f"thread.branch.{last}")
    await settle()
    await room.shoot("branch", room.show_sidebar)
    await room.shoot("branch-end", room.thread.follow)
