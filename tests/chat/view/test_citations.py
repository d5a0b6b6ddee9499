"""Numbers of an answer that cite a place in a file lead to it."""

import asyncio
from pathlib import Path

from PySide6.QtCore import QUrl
from PySide6.QtWidgets import QLabel

from qwendesk.chat.view.answer.section_pane import SectionPane
from qwendesk.chat.view.answer.source_dialog import NumberedText, SourceDialog
from qwendesk.chat.view.answer.source_links import SOURCE
from qwendesk.core.citations import Citation, Source
from qwendesk.core.messages import ToolCall
from qwendesk.widgets.buttons import TextButton
from qwendesk.widgets.tasks import window_tasks
from tests.chat.documents.test_document_reader import pdf
from tests.chat.view.test_tools import load
from tests.fakes.answer_stream import ScriptedAnswer
from tests.window_desk import Desk

ANSWER = "Boats drift **10 m** [1]. Nothing says why [7], and `[1]` is code.\n\n| a | b |\n|---|---|\n| x | y [1] |\n"


async def answered(desk: Desk, folder: Path, answer: str = ANSWER) -> None:
    (folder / "notes.txt").write_text("Wind\nBoats drift 10 m.\nWaves\n")
    await load(desk)
    desk.window.chat_page.tool_picker.add_folder(str(folder))
    search = ToolCall("search_files", '{"query": "drift"}')
    desk.client.answers = [ScriptedAnswer(calls=(search,)), ScriptedAnswer(text=answer)]
    await desk.ask("How far do boats drift?")
    await desk.until(lambda: desk.message(1).answer_view.markdown == answer and bool(panes(desk, 1)))


def panes(desk: Desk, turn: int) -> list[SectionPane]:
    return [each.pane for each in desk.message(turn).answer_view.sections if each.pane is not None]


def linked(desk: Desk, turn: int) -> list[tuple[str, str, str]]:
    """The texts in an answer that are links, with their addresses and tooltips."""
    found = []
    for pane in panes(desk, turn):
        block = pane.document().begin()
        while block.isValid():
            parts = block.begin()
            while not parts.atEnd():
                form = parts.fragment().charFormat()
                if form.isAnchor():
                    found.append((parts.fragment().text(), form.anchorHref(), form.toolTip()))
                parts += 1
            block = block.next()
    return found


def click(desk: Desk, turn: int, number: int) -> None:
    panes(desk, turn)[0].anchorClicked.emit(QUrl(f"{SOURCE}{number}"))


def marked(desk: Desk) -> str:
    """The text of the marked lines."""
    selections = desk.find("source.text", NumberedText).extraSelections()
    return "\n".join(each.cursor.block().text() for each in selections)


async def test_only_numbers_of_places_are_links(desk: Desk, tmp_path: Path) -> None:
    await answered(desk, tmp_path)
    tip = "notes.txt, lines 1-3: click to see it"
    await desk.until(lambda: not desk.window.chat_page.thread_view.is_busy)
    assert linked(desk, 1) == [("[1]", f"{SOURCE}1", tip)] * 2


async def test_click_shows_the_file_with_the_place_marked(desk: Desk, tmp_path: Path) -> None:
    await answered(desk, tmp_path)
    click(desk, 1, 1)
    await desk.until(lambda: desk.is_shown("source"))
    assert desk.text_of("source.file") == "notes.txt"
    assert desk.text_of("source.place") == "lines 1-3"
    assert marked(desk) == "Wind\nBoats drift 10 m.\nWaves"
    assert desk.is_shown("source.folder")
    assert not desk.has("source.open"), "the program for a text file may be one that runs it"
    assert not desk.has("source.note")
    desk.click("source.close")
    await desk.until(lambda: not desk.has("source"))


async def test_lines_that_moved_are_found_again(desk: Desk, tmp_path: Path) -> None:
    await answered(desk, tmp_path)
    (tmp_path / "notes.txt").write_text("New\nlines\nWind\nBoats drift 10 m.\nWaves\nend\n")
    click(desk, 1, 1)
    await desk.until(lambda: desk.is_shown("source"))
    assert marked(desk) == "Wind\nBoats drift 10 m.\nWaves"
    assert "another place now" in desk.text_of("source.note")


async def test_what_the_search_found_is_shown_when_the_file_is_gone(desk: Desk, tmp_path: Path) -> None:
    await answered(desk, tmp_path)
    (tmp_path / "notes.txt").unlink()
    click(desk, 1, 1)
    await desk.until(lambda: desk.is_shown("source"))
    assert marked(desk) == "Wind\nBoats drift 10 m.\nWaves"
    assert "no longer in a folder of this chat" in desk.text_of("source.note")
    assert not desk.has("source.folder")


async def test_a_later_search_does_not_change_what_an_answer_says(desk: Desk, tmp_path: Path) -> None:
    await answered(desk, tmp_path, "As [1] and [2] say.")
    search = ToolCall("search_files", '{"query": "waves"}')
    desk.client.answers = [ScriptedAnswer(calls=(search,)), ScriptedAnswer(text="See [2] and [1].")]
    await desk.ask("And waves?")
    await desk.until(lambda: bool(panes(desk, 2)) and len(linked(desk, 2)) == 2)
    assert [text for text, _, _ in linked(desk, 2)] == ["[2]", "[1]"]
    tree, settings, chat_id = desk.parts.chat.tree, desk.parts.chat.settings, desk.parts.chat.chat_id
    desk.parts.chat.new_chat()
    desk.parts.chat.open(chat_id, tree, settings)
    await desk.until(lambda: desk.has("thread.message.1") and bool(panes(desk, 1)))
    assert [text for text, _, _ in linked(desk, 1)] == ["[1]"]


async def test_branch_keeps_its_citations(desk: Desk, tmp_path: Path) -> None:
    await answered(desk, tmp_path)
    before = desk.parts.chat.chat_id
    desk.window.chat_page.thread_view.intents.branch.emit(1)
    await desk.until(lambda: desk.parts.chat.chat_id != before)
    turn = desk.parts.chat.conversation.turns[0].id
    await desk.until(lambda: desk.has(f"thread.message.{turn}") and len(linked(desk, turn)) == 2)
    click(desk, turn, 1)
    await desk.until(lambda: desk.is_shown("source"))
    assert marked(desk) == "Wind\nBoats drift 10 m.\nWaves"


async def test_page_of_a_pdf_is_shown_as_it_looks(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "paper.pdf").write_bytes(pdf("Introduction", "The kayak chapter"))
    await load(desk)
    desk.window.chat_page.tool_picker.add_folder(str(tmp_path))
    search = ToolCall("search_files", '{"query": "kayak"}')
    desk.client.answers = [ScriptedAnswer(calls=(search,)), ScriptedAnswer(text="On page two [1].")]
    await desk.ask("Where is the kayak?")
    await desk.until(lambda: bool(panes(desk, 1)))
    click(desk, 1, 1)
    await desk.until(lambda: desk.is_shown("source.page"))
    assert desk.text_of("source.place") == "page 2, line 1"
    assert desk.is_shown("source.open"), "a document is not run by the program that opens it"
    desk.click("source.page")
    await desk.until(lambda: desk.is_shown("source.picture"))
    picture = desk.find("source.picture.page", QLabel).pixmap().toImage()
    shown = {picture.pixelColor(x, y).name() for x in range(picture.width()) for y in range(0, picture.height(), 3)}
    assert {"#ffffff", "#000000"} <= shown, "black words on a white page"
    desk.click("source.page")
    await desk.until(lambda: desk.is_shown("source.text"))
    assert marked(desk) == "The kayak chapter"


async def test_dialog_that_is_closed_while_its_page_is_drawn_is_just_gone(desk: Desk) -> None:
    never = asyncio.Event()

    async def draw(_source: Source) -> bytes:
        await never.wait()
        return b""

    failures: list[str] = []
    window_tasks().failed.connect(lambda _title, sentence: failures.append(sentence))
    citation = Citation(number=1, path="paper.pdf", first=1, last=1, unit="page", at=1)
    source = Source(citation, ("Boats",), 1, 1, file="paper.pdf", is_document=True)
    SourceDialog(source, draw, desk.window).open()
    desk.click("source.page")
    await desk.until(lambda: not desk.find("source.page", TextButton).isEnabled())
    desk.click("source.close")
    await desk.until(lambda: not desk.has("source"))
    await asyncio.sleep(0)
    assert not failures
