"""The chat in its states: empty, with every kind of text, while it streams, with pictures."""

from functools import partial
from pathlib import Path

import msgspec

from qwendesk.chat.view.composer.pasted_content import PastedContent
from qwendesk.chat.view.thread.pictures.picture_viewer import PictureViewer
from qwendesk.core.messages import DocumentPart, ImagePart
from tests.fakes.answer_stream import ScriptedAnswer
from tools.screenshots.gallery import texts
from tools.screenshots.gallery.made_up_chats import asks, picture, says, tree
from tools.screenshots.gallery.room import Room
from tools.screenshots.stage import settle


async def empty(room: Room) -> None:
    """Nothing is loaded; then the demo, then a model."""
    room.service.new_chat()
    await room.shoot("empty-no-model")
    await room.load()
    await room.shoot("empty-model")
    room.parts.window.load_demo()
    await settle()
    await room.shoot("empty-demo")
    await room.load()


async def mixed(room: Room) -> None:
    plane = picture(room.files / "plane.jpg", "plane", (1024, 640))
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
    room.thread.create_nearby_rows()
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
    folder = room.files
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
    room.page.attachments.attach(PastedContent(files=(Path(plane.path), Path(chart.path), folder / "gone.png")))
    await settle()
    await room.shoot("composer-pictures")
    room.page.composer.clear()
    room.page.composer.show_notice("")
    for path in (plane.path, broken.path):
        room.page.open_picture(path)
        await settle()
        viewer = room.page.findChildren(PictureViewer)[-1]
        for look in room.looks:
            look.apply(room.window)
            await settle()
            viewer.grab().save(str(room.folder / f"viewer-{Path(path).stem}-{look}.png"))
        viewer.close()
