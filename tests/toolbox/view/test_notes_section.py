"""The card of notes on the settings page: shown, changed, added and deleted there."""

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QLineEdit

from qwendesk.toolbox.notes import LONGEST_NOTE, MOST_NOTES, NoteService, notes_file
from tests.window_desk import Desk


def texts(desk: Desk) -> list[str]:
    fields = [each for each in desk.window.findChildren(QLineEdit) if each.objectName().endswith(".text")]
    return [each.text() for each in fields if each.objectName().startswith("settings.notes.") and each.isVisible()]


async def shows(desk: Desk, *expected: str) -> None:
    """Wait until these notes are on screen, and see that they are saved."""
    await desk.until(lambda: texts(desk) == list(expected))
    await desk.parts.services.notes.close()
    assert [note.text for note in NoteService().notes] == list(expected)


def enter(desk: Desk, name: str, text: str) -> None:
    field = desk.find(name, QLineEdit)
    field.setFocus()
    field.selectAll()
    QTest.keyClicks(field, text)
    QTest.keyClick(field, Qt.Key.Key_Return)


async def test_note_of_the_user_is_added_changed_and_deleted(page: Desk) -> None:
    await shows(page)
    assert not page.find("settings.notes.add", QAbstractButton).isEnabled()
    enter(page, "settings.notes.field", "I live in  Hamburg")
    await shows(page, "I live in Hamburg")
    assert page.find("settings.notes.field", QLineEdit).text() == ""

    enter(page, "settings.notes.1.text", "I live in Bremen")
    await shows(page, "I live in Bremen")
    page.click("settings.notes.1.delete")
    await shows(page)


async def test_note_without_text_stays_as_it_was(page: Desk) -> None:
    enter(page, "settings.notes.field", "I live in Hamburg")
    field = page.find("settings.notes.1.text", QLineEdit)
    field.clear()
    QTest.keyClick(field, Qt.Key.Key_Return)
    assert f"1 to {LONGEST_NOTE} characters" in page.text_of("settings.notes.problem")
    await shows(page, "I live in Hamburg")


async def test_all_notes_are_deleted_after_a_question(page: Desk) -> None:
    for text in ("one", "two"):
        enter(page, "settings.notes.field", text)
    page.click("settings.notes.deleteall")
    page.click("settings.notes.question.no")
    await shows(page, "one", "two")
    page.click("settings.notes.deleteall")
    page.click("settings.notes.question.yes")
    await shows(page)
    assert not page.is_shown("settings.notes.deleteall")


async def test_too_many_notes_are_refused_in_words(page: Desk) -> None:
    for number in range(MOST_NOTES):
        page.parts.services.notes.add(f"Note {number}")
    enter(page, "settings.notes.field", "one more")
    assert f"There are {MOST_NOTES} notes" in page.text_of("settings.notes.problem")
    assert page.find("settings.notes.field", QLineEdit).text() == "one more", "what was typed is kept"


async def test_file_that_cannot_be_read_is_said(home: Path, make_desk: Callable[[], Desk]) -> None:
    notes_file().parent.mkdir(parents=True, exist_ok=True)
    notes_file().write_text("[{")
    desk = make_desk()
    desk.window.show_page("settings")
    assert "was damaged" in desk.text_of("settings.notes.problem")
