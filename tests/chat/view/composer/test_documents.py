"""Text, code, PDF and other files dropped on the window."""

from collections.abc import Callable
from pathlib import Path

import msgspec
from PySide6.QtCore import QMimeData, Qt
from PySide6.QtWidgets import QLabel, QLineEdit, QPlainTextEdit, QPushButton, QRadioButton, QVBoxLayout, QWidget

from qwendesk.chat.view.composer.attachments import Attachments
from qwendesk.chat.view.composer.pdf_sheet import PdfSheet
from qwendesk.chat.view.thread.document_chip import DocumentChip, DocumentViewer
from qwendesk.core.chats import DraftFile
from qwendesk.core.messages import DocumentPart
from qwendesk.core.units import MIB
from qwendesk.engine.protocol import LoadReport, Measure
from qwendesk.widgets.theme_keeper import ThemeKeeper
from tests.chat.documents.test_document_reader import pdf
from tests.fakes.engine import DEMO_REPORT, FakeEngineClient, ScriptedAnswer
from tests.window_desk import Desk


def row(desk: Desk) -> Attachments:
    return desk.window.chat_page.composer.attachments


def written(tmp_path: Path, name: str, content: bytes) -> Path:
    path = tmp_path / name
    path.write_bytes(content)
    return path


async def sheet_of(desk: Desk) -> PdfSheet:
    await desk.until(lambda: desk.window.findChild(PdfSheet) is not None)
    sheet = desk.window.findChild(PdfSheet)
    assert sheet is not None
    return sheet


async def test_a_dropped_file_of_code_is_counted_sent_and_can_be_read_in_the_chat(desk: Desk, tmp_path: Path) -> None:
    desk.drop(written(tmp_path, "main.py", b"print(1)\nprint(2)\n"))
    await desk.until(lambda: desk.has("composer.attachment.1.cost"))
    await desk.until(lambda: "tokens" in desk.text_of("composer.attachment.1.cost"))
    # The fake engine counts words: the name, the two fences and two lines.
    assert desk.text_of("composer.attachment.1.cost") == "2 lines → 5 tokens, <0.1% of context"
    await desk.ask("What does it do?")
    assert desk.client.asked[-1].messages[-1].text.startswith("main.py:\n```python\nprint(1)\n")
    assert row(desk).items == ()
    assert desk.text_of("thread.document.1") == "main.py · 2 lines · 5 tokens"
    desk.click("thread.document.1")
    viewer = desk.window.findChild(DocumentViewer)
    assert viewer is not None
    text = viewer.findChild(QPlainTextEdit, "document.text")
    assert text is not None
    assert text.isReadOnly()
    assert text.toPlainText() == "print(1)\nprint(2)\n"
    viewer.close()


async def test_folders_and_unknown_kinds_are_refused_and_the_rest_is_attached(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    program = written(tmp_path, "setup.exe", b"MZ\x00\x01\x02")
    desk.drop(tmp_path / "project", program, tmp_path / "gone.txt", written(tmp_path, "notes.md", b"words"))
    await desk.until(lambda: "gone.txt" in desk.text_of("composer.notice"))
    notice = desk.text_of("composer.notice")
    assert "can't read folders" in notice
    assert "“setup.exe” can't be attached" in notice
    assert "gone.txt" in notice
    assert [document.name for document in row(desk).documents] == ["notes.md"]


async def test_a_pdf_is_attached_as_text_of_the_chosen_pages(desk: Desk, tmp_path: Path) -> None:
    desk.drop(written(tmp_path, "paper.pdf", pdf("The first page of it", "The second page of it", "And the third one")))
    sheet = await sheet_of(desk)
    assert desk.find("pdf.text", QRadioButton).isChecked()
    pages = desk.find("pdf.pages", QLineEdit)
    attach = desk.find("pdf.attach", QPushButton)
    pages.setText("2-9")
    assert "has 3" in desk.text_of("pdf.problem")
    assert not attach.isEnabled()
    pages.setText("3, 1")
    assert attach.isEnabled()
    sheet.accept()
    await desk.until(lambda: bool(row(desk).items))
    (document,) = row(desk).documents
    assert (document.text, document.pages) == ("And the third one\n\nThe first page of it", 2)


async def test_the_pages_of_a_scanned_pdf_are_suggested_as_pictures(desk: Desk, tmp_path: Path) -> None:
    desk.drop(written(tmp_path, "scan.pdf", pdf("", "", "")))
    sheet = await sheet_of(desk)
    assert "looks like a scan" in desk.text_of("pdf.about")
    assert desk.find("pdf.pictures", QRadioButton).isChecked()
    desk.find("pdf.pages", QLineEdit).setText("1-2")
    sheet.accept()
    await desk.until(lambda: len(row(desk).items) == 2)
    assert [path.name for path in row(desk).paths] == ["scan-1.png", "scan-2.png"]
    assert len(row(desk).pictures) == 2


async def test_a_model_without_vision_gets_no_pages_as_pictures(
    make_desk: Callable[[], Desk], client: FakeEngineClient, tmp_path: Path
) -> None:
    client.report = msgspec.structs.replace(DEMO_REPORT, can_see=False)
    desk = make_desk()
    await desk.load_demo()
    desk.drop(written(tmp_path, "scan.pdf", pdf("")))
    sheet = await sheet_of(desk)
    assert not desk.find("pdf.pictures", QRadioButton).isEnabled()
    assert "can't see" in desk.text_of("pdf.about")
    sheet.reject()
    await desk.until(lambda: desk.window.findChild(PdfSheet) is None)
    assert row(desk).items == ()


async def test_document_larger_than_the_context_shows_a_warning_before_sending(desk: Desk, tmp_path: Path) -> None:
    large = written(tmp_path, "large.txt", b"word " * 40_000)
    desk.drop(large)
    await desk.until(lambda: "the context holds only 32,768" in desk.text_of("composer.notice"))
    assert "longer context" in desk.text_of("composer.notice")
    desk.send("Sum it up")
    await desk.until(lambda: "40,0" in desk.text_of("composer.notice"))
    assert not desk.client.asked
    assert desk.composer_text.toPlainText() == "Sum it up"
    desk.click("composer.attachment.1.remove")
    await desk.ask("")
    assert desk.client.asked[-1].messages[-1].text == "Sum it up"


async def test_documents_far_larger_than_the_context_never_reach_the_engine(desk: Desk, tmp_path: Path) -> None:
    """Five of 14 MB were more than the protocol takes, and the composer stayed locked."""
    files = [written(tmp_path, f"large{number}.txt", b"word " * (14 * MIB // 5)) for number in range(5)]
    desk.drop(*files)
    await desk.until(lambda: desk.has("composer.attachment.5.cost") and desk.is_shown("composer.notice"))
    await desk.until(lambda: desk.text_of("composer.attachment.5.cost") == "Too large")
    desk.composer_text.setPlainText("Sum them up")
    desk.click("composer.send")
    await desk.until(lambda: "about 18,3" in desk.text_of("composer.notice"))
    await desk.until(lambda: not desk.composer_text.isReadOnly())
    counted = [each for each in desk.client.requests if isinstance(each, Measure)]
    assert not any("word word" in message.text for each in counted for message in each.messages)
    assert not desk.client.asked
    assert desk.composer_text.toPlainText() == "Sum them up"


async def test_picture_given_as_a_web_address_is_not_downloaded(desk: Desk) -> None:
    mime = QMimeData()
    mime.setText("https://example.org/cat.png")
    mime.setHtml('<img src="https://example.org/cat.png">')
    desk.paste(mime)
    await desk.until(lambda: desk.is_shown("composer.notice"))
    assert "Copy the picture itself" in desk.text_of("composer.notice")


async def test_the_refusal_of_the_engine_is_shown_on_the_card(desk: Desk, tmp_path: Path) -> None:
    cards = row(desk)
    card = cards.add_document(DraftFile(str(tmp_path / "a.txt")), DocumentPart("a.txt", "x"))
    assert card is not None
    card.refuse("Not counted", "The engine is busy.")
    assert desk.find("composer.attachment.1.cost", QLabel).toolTip() == "The engine is busy."
    desk.send("Go")
    assert desk.text_of("composer.notice") == "The engine is busy."


def test_the_size_of_a_document_can_be_read_in_little_space(keeper: ThemeKeeper) -> None:
    holder = QWidget()
    chip = DocumentChip(DocumentPart("how-the-boats-float.py", "print(1)\n" * 900, tokens=812), 1)
    QVBoxLayout(holder).addWidget(chip, 0, Qt.AlignmentFlag.AlignLeft)
    holder.resize(900, 60)
    holder.show()
    assert chip.shown.strip() == "how-the-boats-float.py · 900 lines · 812 tokens"
    holder.resize(chip.width() - 40, 60)
    assert chip.shown.endswith("py · 900 lines · 812 tokens")
    assert "…" in chip.shown
    assert chip.fontMetrics().horizontalAdvance(chip.shown) < chip.width() < holder.width()
    holder.resize(900, 60)
    assert chip.shown.strip().startswith("how-the-boats-float.py")
    holder.deleteLater()


async def test_a_short_question_shows_the_whole_name_of_its_document(desk: Desk, tmp_path: Path) -> None:
    written(tmp_path, "notes.txt", b"A line.\n" * 159)
    desk.drop(tmp_path / "notes.txt")
    await desk.until(lambda: desk.has("composer.attachment.1.cost"))
    await desk.until(lambda: "tokens" in desk.text_of("composer.attachment.1.cost"))
    desk.client.answers.append(ScriptedAnswer(reasoning="", text="Because."))
    await desk.ask("Why?")
    chip = desk.find("thread.document.1", DocumentChip)
    await desk.until(lambda: chip.width() >= chip.sizeHint().width())
    assert chip.shown.strip().startswith("notes.txt · 159 lines")


async def test_with_the_demo_a_document_is_attached_and_what_reads_it_is_said(desk: Desk, tmp_path: Path) -> None:
    assert isinstance(await desk.parts.engine.load_demo(), LoadReport)
    note = tmp_path / "note.txt"
    note.write_text("words")
    desk.drop(note)
    composer = desk.window.chat_page.composer
    await desk.until(lambda: "demo can't read documents" in composer.notice)
    assert [each.name for each in composer.attachments.documents] == ["note.txt"]
    assert desk.is_shown("composer.models")
