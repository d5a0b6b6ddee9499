"""The states that are looked at. Each scene leaves an idle window behind."""

import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QLineEdit, QListView

from qwendesk.core.chat_tree import ChatTree
from qwendesk.core.chats import ChatSummary
from qwendesk.core.failures import EngineDeath, LoadFailure
from qwendesk.core.messages import DocumentPart, ImagePart
from qwendesk.engine.protocol import RequestFailed
from qwendesk.ui.composer.intake import Intake
from qwendesk.ui.thread.picture_viewer import PictureViewer
from tests.fakes.engine import ScriptedAnswer
from tests.fakes.gaming_pc import OPTIONS
from tools.screenshots.gallery import texts
from tools.screenshots.gallery.room import Room, answered, asks, picture, says, tree
from tools.screenshots.stage import settle, until

_DAY = 86_400


def earlier_chats() -> list[tuple[ChatSummary, ChatTree]]:
    """The list of chats: some of today, some older, one pinned."""
    chats = []
    for number, (question, answer) in enumerate(texts.EARLIER):
        key = f"{number:x}" * 32
        changed = time.time() - (0, 60, _DAY, _DAY, 4 * _DAY, 20 * _DAY, 90 * _DAY)[number]
        filler = tree(*[(asks(f"Step {n}?"), says(f"Part {n}.\n\n" + texts.PICTURE_ANSWER), {}) for n in range(6)])
        nodes = {f"{key[:16]}{each.id}": each for each in filler.nodes.values()}
        moved = {
            id: msgspec.structs.replace(each, id=id, parent_id=f"{key[:16]}{each.parent_id}" if each.parent_id else "")
            for id, each in nodes.items()
        }
        first = list(moved)[:2]
        moved[first[0]] = msgspec.structs.replace(moved[first[0]], message=asks(question))
        moved[first[1]] = msgspec.structs.replace(moved[first[1]], message=says(answer))
        summary = ChatSummary(id=key, title=question, created_s=changed, changed_s=changed, pinned=number == 1)
        chats.append((summary, ChatTree(moved)))
    return chats


async def empty(room: Room) -> None:
    """Nothing is loaded; then the demo, then a model."""
    room.service.new_chat()
    await room.shoot("empty-no-model")
    await room.load()
    await room.shoot("empty-model")
    room.parts.engine.load_demo()
    await settle()
    await room.shoot("empty-demo")
    await room.load()


async def mixed(room: Room) -> None:
    plane = picture(room.folder / "plane.jpg", "plane", (1024, 640))
    room.open(
        "mixed",
        tree(
            (asks("Which plane is this, and how fast can it fly?", plane), says(texts.PICTURE_ANSWER, "A plane."), {}),
            (asks(texts.MIXED_QUESTION), says(texts.MIXED, texts.MIXED_THOUGHT), {}),
            (asks("Thanks! Which models fit?"), says(texts.WIDE_TABLE), {}),
        ),
    )
    await settle()
    thread = room.thread
    turn = room.parts.chat.conversation.turns[1]
    await room.shoot("mixed-0-picture", lambda: thread.show_row(0))
    await room.shoot("mixed-1-top", lambda: thread.show_row(2))
    for number in range(2, 6):
        await room.shoot(f"mixed-{number}", partial(_down, room, 3, number - 1))
    await room.shoot("mixed-6-end", thread.follow)

    def opened() -> None:
        thread.show_row(3)
        answer = thread.answer(turn.id)
        if answer is not None and answer.think_block is not None:
            answer.think_block.set_open(opened=True)
            room.hover(turn.id)

    await room.shoot("mixed-7-thought", opened)


def _down(room: Room, row: int, screens: int) -> None:
    room.thread.show_row(row)
    room.thread.look_around()
    bar = room.thread.verticalScrollBar()
    for _ in range(screens):
        bar.setValue(bar.value() + room.thread.viewport().height() - 80)


async def streaming(room: Room) -> None:
    room.service.new_chat()
    thought = texts.MIXED_THOUGHT.split("\n\n")[0]
    await room.ask("Find the bug.", ScriptedAnswer(reasoning=thought + " more"), held=True)
    await room.shoot("stream-thinking")
    await room.end()
    await room.ask("Compare cards", ScriptedAnswer(reasoning="Cards.", text=texts.HALF_TABLE + " PER |"), held=True)
    await room.shoot("stream-table")
    await room.end()
    await room.ask("Write it", ScriptedAnswer(reasoning="Code.", text=texts.HALF_FENCE + " x"), held=True)
    await room.shoot("stream-code")
    await room.end()
    await room.shoot("stream-stopped")


async def pictures(room: Room) -> None:
    folder = room.folder
    plane = picture(folder / "plane.jpg", "plane", (1024, 640))
    chart = picture(folder / "chart.png", "chart", (1200, 500))
    tall = picture(folder / "tall.png", "tall", (500, 1400))
    (folder / "broken.png").write_bytes(b"not a picture at all")
    broken, gone = ImagePart(str(folder / "broken.png"), "1" * 64), ImagePart(str(folder / "gone.png"), "2" * 64)
    notes = DocumentPart("meeting-notes.md", "# Notes\n" * 40, "markdown", tokens=812)
    pdf = DocumentPart("A manual with a very long name for a machine.pdf", "Text. " * 4000, pages=212, tokens=48_200)
    with_documents = asks("What do these say?", chart)
    with_documents = msgspec.structs.replace(with_documents, parts=(notes, pdf, *with_documents.parts))
    room.open(
        "pictures",
        tree(
            (asks("Compare these four.", plane, chart, tall, plane), says("All are drawn by a script."), {}),
            (asks("And these?", broken, gone), says("I saw them when you sent them."), {}),
            (asks("", gone), says("One picture."), {}),
            (with_documents, says("A manual and notes."), {}),
        ),
    )
    await settle()
    await room.shoot("pictures", lambda: room.thread.show_row(0))
    await room.shoot("pictures-broken", lambda: room.thread.show_row(2))
    await room.shoot("pictures-documents", room.thread.follow)
    room.page.take(Intake(files=(Path(plane.path), Path(chart.path), folder / "gone.png")))
    await settle()
    await room.shoot("composer-pictures")
    room.page.composer.clear()
    room.page.composer.say("")
    for path in (plane.path, broken.path):
        room.page.open_picture(path)
        await settle()
        viewer = room.page.findChildren(PictureViewer)[-1]
        for theme, width, height in room.looks[:2]:
            room.keeper.choose(theme)
            room.window.resize(width, height)
            await settle()
            viewer.grab().save(str(folder / f"viewer-{Path(path).stem}-{theme}-{width}{room.scale}.png"))
        viewer.close()


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
    _click(room, f"thread.edit.{turn.id}")
    await room.shoot("editor-answer")
    room.open("versions", ChatTree(nodes, {"": question.id}))
    await settle()
    _click(room, f"thread.question.edit.{room.parts.chat.conversation.turns[0].id}")
    await room.shoot("editor-question")


def _click(room: Room, name: str) -> None:
    button = room.window.findChild(QAbstractButton, name)
    if button is None:
        raise LookupError(name)
    QTest.mouseClick(button, Qt.MouseButton.LeftButton)


async def search(room: Room) -> None:
    field = room.window.findChild(QLineEdit, "chats.search")
    hits = room.window.findChild(QListView, "chats.hits")
    if field is None or hits is None:
        raise LookupError("the search of the chats")
    await room.parts.chats.service.open("1" * 32)
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


async def failures(room: Room) -> None:
    room.service.new_chat()
    full = RequestFailed(
        id=0, title="Too long", sentence="The chat fills 131,310 tokens, and the context holds 131,072. Begin a new "
        "chat, or load the model with a longer context (Ctrl+L).",
    )  # fmt: skip
    await room.ask("How long is this?", ScriptedAnswer(text="", fail=full))
    death = EngineDeath(-9, "The engine was ended from outside (out of memory, or killed).", ("last words",))
    await room.ask("And now?", ScriptedAnswer(reasoning="Well.", text="As I was about to say", fail=death))
    await room.shoot("error-crash")
    await room.load()
    room.service.new_chat()
    await room.ask("Two sentences?", ScriptedAnswer(text="One. Two", stop_reason="context_full"))
    room.client.report = msgspec.structs.replace(room.client.report, can_see=False)
    await room.load()
    room.page.take(Intake(files=(Path(picture(room.folder / "p.png", "plane", (400, 300)).path),)))
    await settle()
    await room.shoot("error-no-vision")
    room.client.report = msgspec.structs.replace(room.client.report, can_see=True)
    room.page.composer.say("")
    lines = ("ggml_backend_cuda_buffer_type_alloc_buffer: allocating 1024.00 MiB on device 0: cudaMalloc failed",)
    room.client.load_result = LoadFailure(
        "out_of_vram", "The model does not fit into the graphics memory",
        "It needs 1.0 GB more than is free on NVIDIA GeForce RTX 3090.", lines,
    )  # fmt: skip
    room.parts.engine.load(OPTIONS)
    await settle()
    await room.shoot("error-load-safer")
    room.client.load_result = LoadFailure("missing_file", "The model file is gone", "It is not in D:\\Models any more.")
    room.parts.engine.load(OPTIONS)
    await settle()
    room.service.new_chat()
    await room.shoot("error-load-empty")
    room.client.load_result = None
    await room.load()


SCENES: Final[Mapping[str, Callable[[Room], Awaitable[None]]]] = {
    "empty": empty,
    "mixed": mixed,
    "streaming": streaming,
    "pictures": pictures,
    "versions": versions,
    "search": search,
    "failures": failures,
}
