"""What office programs and browsers put on the clipboard or drag: text stays text, and a picture a picture."""

import base64
import io

import pytest
from PySide6.QtCore import QMimeData, QPointF, Qt
from PySide6.QtGui import QDropEvent, QImage
from PySide6.QtWidgets import QApplication

from tests.field.grid import SERVER, Kind, Way, case
from tests.pictures import ShapePicture
from tests.window_desk import Desk, image_mime

TEXT_AS_PICTURE = Kind(
    "Text of an office program is taken as a picture",
    dict.fromkeys((Way.CLI, *SERVER, Way.MCP, Way.IMPORT), "has no clipboard"),
)
WORD = (
    "<html xmlns:v='urn:schemas-microsoft-com:vml'><head><style><!-- p.MsoNormal {margin:0cm} --></style></head><body>"
    "<!--StartFragment--><p class=MsoNormal>The <b>quarterly</b> figures</p><!--EndFragment--></body></html>"
)
EXCEL = "<table><tr><td>Name</td><td>Sum</td></tr><tr><td>Ä &lt;b&gt;</td><td>$5</td></tr></table>"
WEB = "<meta charset='utf-8'><img src='https://example.com/cat.png' alt='A cat on a sofa'>"
WORD_PICTURE = (
    "<html><head><style>v:* {}</style></head><body><img width=40 src='file:///C:/msohtmlclip1/01/i.png'></body></html>"
)

TEXTS = {
    "Word": ("The quarterly figures\r\n", WORD),
    "Excel": ("Name\tSum\r\nÄ <b>\t$5\r\n", EXCEL),
    "PowerPoint": ("First point\vSecond point", "<p>First point<br>Second point</p>"),
    "LibreOffice": ("Zwei Wörter 😀", "<!DOCTYPE html><body><p>Zwei Wörter 😀</p></body>"),
    "without HTML": ("two words", ""),
    "text with a link": ("see https://example.com", "<a href='https://example.com'>see https://example.com</a>"),
    "text with an image": ("Title", "<h1>Title</h1><img src='https://example.com/cat.png'>"),
}
PICTURES = {
    "a screenshot": (None, ""),
    "Chrome": (None, WEB),
    "Firefox": ("https://example.com/cat.png", WEB),
    "with its name": ("A cat on a sofa", WEB),
    "a picture in Word": (" \r\n", WORD_PICTURE),
    "an address of a file": ("file:///pictures/cat.png", ""),
    "a place holder": ("\ufffc", "<img src='cid:1'>"),
}


def copied(text: str | None, html: str) -> QMimeData:
    mime = image_mime()
    if html:
        mime.setHtml(html)
    if text is not None:
        mime.setText(text)
    return mime


@pytest.mark.parametrize("program", TEXTS)
@case(TEXT_AS_PICTURE, Way.WINDOW, report="codex#15436", before="failed")
async def test_text_of_office_programs_is_pasted_as_text(desk: Desk, program: str) -> None:
    text, html = TEXTS[program]

    desk.paste(copied(text, html))

    words = text.replace("\v", " ").split()
    assert desk.composer_text.toPlainText().split() == words
    assert not desk.window.chat_page.composer.attachments.items


@pytest.mark.parametrize("program", PICTURES)
@case(TEXT_AS_PICTURE, Way.WINDOW, report="codex#15436, the other way round", before="held")
async def test_a_picture_with_its_address_is_pasted_as_a_picture(desk: Desk, program: str) -> None:
    desk.paste(copied(*PICTURES[program]))

    await desk.until(lambda: len(desk.window.chat_page.composer.attachments.items) == 1)
    assert not desk.composer_text.toPlainText()
    assert not desk.is_shown("composer.pasted.show")


@case(TEXT_AS_PICTURE, Way.WINDOW, report="codex#15436", before="failed")
async def test_the_text_can_become_the_picture(desk: Desk) -> None:
    desk.composer_text.insertPlainText("😀 before ")
    desk.paste(copied(*TEXTS["Excel"]))
    assert desk.text_of("composer.pasted.show") == "Paste as picture"

    desk.click("composer.pasted.show")

    await desk.until(lambda: len(desk.window.chat_page.composer.attachments.items) == 1)
    assert desk.composer_text.toPlainText().strip() == "😀 before"
    assert not desk.is_shown("composer.pasted.show")


@case(TEXT_AS_PICTURE, Way.WINDOW, report="codex#15436", before="failed")
async def test_text_that_is_dropped_is_text_too(desk: Desk) -> None:
    mime = copied(*TEXTS["Word"])
    desk.drag(mime)
    event = QDropEvent(
        QPointF(600, 300), Qt.DropAction.CopyAction, mime, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    )
    QApplication.sendEvent(desk.window, event)

    await desk.until(lambda: "quarterly figures" in desk.composer_text.toPlainText())
    assert not desk.window.chat_page.composer.attachments.items
    assert desk.text_of("composer.pasted.show") == "Paste as picture"


async def test_a_model_without_eyes_is_offered_no_picture(desk: Desk) -> None:
    composer = desk.window.chat_page.composer
    composer.show_vision(can_see=False)

    desk.paste(copied(*TEXTS["Word"]))

    assert not desk.is_shown("composer.pasted.show")
    assert "picture" not in desk.composer_text.placeholderText()


def test_the_picture_of_the_tests_is_one() -> None:
    assert isinstance(image_mime().imageData(), QImage)


EMBEDDED = "<img src='data:image/png;base64,{}'>"
NAMED = {
    "two of a web page": (WEB + WEB, 2),
    "two of Word": ("<p><img src='file:///C:/msohtmlclip1/01/i.png'></p><p><img src='cid:2'></p>", 2),
    "one that is broken": (EMBEDDED.format("!!!"), 1),
    "one of another format": ("<img src='data:image/svg+xml;base64,AAAA'>", 1),
}


@pytest.mark.parametrize("kind", NAMED)
@case(TEXT_AS_PICTURE, Way.WINDOW, report="issue 29, item 18: several pictures in one fragment", before="failed")
async def test_pictures_that_come_without_their_content_are_said(desk: Desk, kind: str) -> None:
    html, count = NAMED[kind]

    desk.paste(copied_page(html))

    await desk.until(lambda: f"{count} picture" in desk.window.chat_page.composer.notice)
    assert not desk.window.chat_page.composer.attachments.items


@case(TEXT_AS_PICTURE, Way.WINDOW, report="issue 29, item 18: several pictures in one fragment", before="failed")
async def test_of_several_pictures_those_with_their_content_are_attached(desk: Desk) -> None:
    contents = []
    for colour in ("red", "blue"):
        file = io.BytesIO()
        ShapePicture(colour, "circle").draw().save(file, "PNG")
        contents.append(base64.b64encode(file.getvalue()).decode())

    desk.paste(copied_page(WEB + "".join(map(EMBEDDED.replace("img", "IMG").format, contents))))

    await desk.until(lambda: "1 picture " in desk.window.chat_page.composer.notice)
    assert len(desk.window.chat_page.composer.attachments.items) == 2


def copied_page(html: str) -> QMimeData:
    mime = QMimeData()
    mime.setHtml(html)
    return mime
