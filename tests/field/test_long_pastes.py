"""A long text that is pasted becomes an attachment, which can be read, sent, kept as a draft and taken back."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData
from PySide6.QtWidgets import QApplication

from qwendesk.core.chats import DraftFile
from tests.chat.view.composer.test_documents import row
from tests.chat.view.sidebar.chats_desk import ChatsDesk
from tests.fakes.answer_stream import ScriptedAnswer
from tests.field.grid import SERVER, Kind, Way, case
from tests.window_desk import Desk

LONG_PASTE = Kind(
    "A long text that is pasted fills the message and the chat",
    dict.fromkeys((Way.CLI, *SERVER, Way.MCP, Way.IMPORT), "has no clipboard"),
)
LOG = "".join(f"{number}: a line of a log\n" for number in range(1000))


def text_mime(text: str) -> QMimeData:
    mime = QMimeData()
    mime.setText(text)
    return mime


async def pasted(desk: Desk, text: str, n_cards: int = 1) -> None:
    desk.paste(text_mime(text))
    await desk.until(lambda: len(row(desk).items) == n_cards)


@case(LONG_PASTE, Way.WINDOW, report="multica#5965, LibreChat#14884", before="failed")
async def test_a_long_text_is_attached_and_sent_whole(desk: Desk) -> None:
    desk.type("What failed?")
    await pasted(desk, LOG)

    assert desk.composer_text.toPlainText() == "What failed?"
    desk.client.answers.append(ScriptedAnswer(reasoning="", text="Line 7."))
    await desk.ask("")

    assert desk.client.asked[-1].messages[-1].text == f"Pasted text.txt:\n```\n{LOG}```\n\nWhat failed?"
    assert desk.text_of("thread.document.1").startswith("Pasted text.txt · 1,000 lines")


@case(LONG_PASTE, Way.WINDOW, report="LibreChat#14884: a second paste was dropped", before="failed")
async def test_pastes_are_numbered(desk: Desk) -> None:
    await pasted(desk, LOG)
    await pasted(desk, LOG, 2)

    assert [document.name for document in row(desk).documents] == ["Pasted text.txt", "Pasted text 2.txt"]


@case(LONG_PASTE, Way.WINDOW, report="unsloth#8963: people want their text back", before="failed")
async def test_it_can_be_put_into_the_message(desk: Desk) -> None:
    desk.type("Read this: ")
    await pasted(desk, LOG)

    desk.click("composer.attachment.1.unfold")

    assert desk.composer_text.toPlainText() == f"Read this: {LOG}"
    assert row(desk).items == ()


@case(LONG_PASTE, Way.WINDOW, report="eliza#8946: an address is no document", before="held")
@pytest.mark.parametrize("text", ["https://example.org/?q=" + "x" * 9000, "short\ntext\n" * 20, " \n" * 9000])
async def test_what_stays_in_the_message(desk: Desk, text: str) -> None:
    desk.paste(text_mime(text))

    assert desk.composer_text.toPlainText() == text
    assert row(desk).items == ()


@case(LONG_PASTE, Way.WINDOW, report="found by trying: the draft of a paste that is no file", before="failed")
async def test_a_paste_survives_a_crash(
    qt_loop: asyncio.Runner, desk: Desk, make_desk: Callable[[], Desk], tmp_path: Path
) -> None:
    first = await ChatsDesk(desk, tmp_path / "data").open_file()
    await pasted(desk, "a\r\n" + LOG)
    await desk.parts.chats.services.chat_list.wait_for_writes()

    other = (await ChatsDesk(make_desk(), first.folder).open_file()).desk
    await other.until(lambda: len(row(other).items) == 1)

    text = "a\n" + LOG
    assert row(other).documents[0].text == text
    assert row(other).drafts == [DraftFile("Pasted text.txt", text=text)]


@case(LONG_PASTE, Way.WINDOW, report="found by trying: an incognito chat writes nothing", before="failed")
async def test_a_paste_in_an_incognito_chat_is_in_no_file(desk: Desk, tmp_path: Path) -> None:
    chats = await ChatsDesk(desk, tmp_path / "data").open_file()
    desk.parts.chats.services.chat_list.new(incognito=True)
    await pasted(desk, "SECRET " * 2000)
    await desk.ask("What is it?")
    await desk.parts.chats.services.chat_list.wait_for_writes()

    written = [path for path in chats.folder.rglob("*") if path.is_file() and b"SECRET SECRET" in path.read_bytes()]
    assert written == []


@case(LONG_PASTE, Way.WINDOW, report="turnstone#930: rich text of a browser", before="failed")
async def test_a_long_page_is_attached_as_its_text(desk: Desk) -> None:
    mime = text_mime(LOG)
    mime.setHtml(f"<h1>Log</h1><pre>{LOG}</pre><img src='https://example.org/a.png'>")
    QApplication.clipboard().setMimeData(mime)
    desk.paste(mime)

    await desk.until(lambda: len(row(desk).items) == 1)
    assert row(desk).documents[0].text == LOG
