"""The cards of attachments: order, sizes, dragging, and restoring them from a draft."""

import base64
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt
from PySide6.QtGui import QAction, QDragEnterEvent, QDropEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QScrollArea, QWidget

from qwendesk.chat.view.composer.attachments import Attachments
from qwendesk.chat.view.composer.pasted_content import OWN_DRAG
from qwendesk.core.chats import DraftFile
from qwendesk.engine.protocol import Measure
from qwendesk.widgets import drag_and_drop
from qwendesk.widgets.drag_and_drop import is_drag
from tests.window_desk import Desk

ShapePicture = Callable[..., Path]
LEFT = Qt.MouseButton.LeftButton
NONE = Qt.KeyboardModifier.NoModifier


def row(desk: Desk) -> Attachments:
    return desk.window.chat_page.composer.attachments


def names(desk: Desk) -> list[str]:
    return [path.stem for path in row(desk).paths]


async def three_pictures_and_a_text(desk: Desk, shape_picture: ShapePicture, tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("words")
    desk.drop(text, *(shape_picture("red", "star", name=f"{each}.png") for each in "abc"))
    await desk.until(lambda: len(row(desk).items) == 4)
    assert names(desk) == ["a", "b", "c", "text"]


async def test_alt_and_arrows_move_an_attachment_and_delete_removes_it(
    desk: Desk, shape_picture: ShapePicture, tmp_path: Path
) -> None:
    await three_pictures_and_a_text(desk, shape_picture, tmp_path)
    row(desk).items[0].handle.setFocus()
    for key, order in (
        (Qt.Key.Key_Right, ["b", "a", "c", "text"]),
        (Qt.Key.Key_Right, ["b", "c", "a", "text"]),
        (Qt.Key.Key_Right, ["b", "c", "a", "text"]),  # pictures stay before documents
        (Qt.Key.Key_Left, ["b", "a", "c", "text"]),
    ):
        desk.press(key, Qt.KeyboardModifier.AltModifier)
        assert names(desk) == order
    desk.press(Qt.Key.Key_Delete)
    assert names(desk) == ["b", "c", "text"]
    desk.press(Qt.Key.Key_Delete)
    assert names(desk) == ["b", "text"], "the focus did not go on to the neighbour"


async def test_a_card_is_dragged_to_another_place(desk: Desk, shape_picture: ShapePicture, tmp_path: Path) -> None:
    await three_pictures_and_a_text(desk, shape_picture, tmp_path)
    cards = row(desk)
    mime = drag_and_drop.files_mime(cards.items[0].path)
    mime.setData(OWN_DRAG, str(cards.items[0].number).encode())
    place = cards.items[2].geometry().center()
    enter = QDragEnterEvent(place, Qt.DropAction.CopyAction, mime, LEFT, NONE)
    QApplication.sendEvent(cards, enter)
    assert enter.isAccepted()
    QApplication.sendEvent(cards, QDropEvent(QPointF(place), Qt.DropAction.CopyAction, mime, LEFT, NONE))
    assert names(desk) == ["b", "c", "a", "text"]
    desk.drag(mime)
    assert not desk.is_shown("drop.target"), "the window offers to attach what is attached"


async def test_a_press_becomes_a_drag_that_carries_the_file(
    desk: Desk, shape_picture: ShapePicture, monkeypatch: pytest.MonkeyPatch
) -> None:
    dragged: list[list[Path]] = []

    def record(_source: QWidget, mime: QMimeData) -> None:
        dragged.append([Path(url.toLocalFile()) for url in mime.urls()])

    monkeypatch.setattr(drag_and_drop, "run_drag", record)
    picture = shape_picture("red", "circle")
    desk.drop(picture)
    await desk.until(lambda: desk.is_shown("composer.attachment.1.picture"))
    drag_from(desk.find("composer.attachment.1.picture", QWidget), QApplication.startDragDistance() - 1)
    assert dragged == []
    drag_from(desk.find("composer.attachment.1.picture", QWidget), QApplication.startDragDistance())
    assert dragged == [[picture]]
    assert is_drag(QPoint(0, 0), QPoint(QApplication.startDragDistance(), 0))


def drag_from(widget: QWidget, distance: int) -> None:
    """A press, and a move that goes so far; released far outside, so that no click comes of it."""
    begin = QPoint(4, 4)
    QTest.mousePress(widget, LEFT, NONE, begin)
    QTest.mouseMove(widget, begin + QPoint(distance, 0))
    QTest.mouseRelease(widget, LEFT, NONE, QPoint(-500, -500))


async def test_a_picture_is_sent_in_the_size_that_was_chosen(desk: Desk, shape_picture: ShapePicture) -> None:
    picture = shape_picture("red", "circle", side=1200)
    desk.drop(picture)
    await desk.until(lambda: desk.is_shown("composer.attachment.1.size"))
    assert desk.text_of("composer.attachment.1.size").startswith("Original")
    small = action(desk, "composer.attachment.1.size.small")
    assert not action(desk, "composer.attachment.1.size.large").isEnabled(), "a picture cannot be made larger"
    small.trigger()
    assert desk.text_of("composer.attachment.1.size").startswith("Small")
    await desk.until(lambda: any("512" in part.path for part in measured(desk)))
    counted = next(part for part in measured(desk) if "512" in part.path)
    with Image.open(counted.path) as copy:
        assert copy.size == (512, 512)
    await desk.ask("What is this?")
    sent = desk.client.asked[-1]
    (image,) = sent.messages[-1].images
    assert (image.path, image.sha256) == (counted.path, counted.sha256)
    (kept,) = desk.parts.chat.conversation.turns[0].question.images
    assert (Path(kept.path), kept.longest_side) == (picture, 512)


def measured(desk: Desk) -> list:
    return [part for each in desk.client.requests if isinstance(each, Measure) for part in each.pictures]


def action(desk: Desk, name: str) -> QAction:
    found = desk.window.findChild(QAction, name)
    assert found is not None
    return found


async def test_a_picture_embedded_in_a_web_page_is_pasted(desk: Desk, shape_picture: ShapePicture) -> None:
    content = shape_picture("blue", "star").read_bytes()
    mime = QMimeData()
    mime.setHtml(f'<meta><img alt="x" src="data:image/png;base64,{base64.b64encode(content).decode()}">')
    desk.paste(mime)
    await desk.until(lambda: len(row(desk).items) == 1)
    assert row(desk).paths[0].read_bytes() == content
    broken = QMimeData()
    broken.setHtml('<img src="data:image/png;base64,AAAA">')
    desk.paste(broken)
    await desk.until(lambda: desk.is_shown("composer.notice"))
    assert "can't read" in desk.text_of("composer.notice")


async def test_attachments_whose_files_still_exist_are_restored(
    desk: Desk, shape_picture: ShapePicture, tmp_path: Path
) -> None:
    picture = shape_picture("red", "circle", side=1200)
    text = tmp_path / "text.txt"
    text.write_text("words")
    desk.drop(picture, text)
    await desk.until(lambda: len(row(desk).items) == 2)
    action(desk, "composer.attachment.1.size.small").trigger()
    drafts = row(desk).drafts
    assert drafts == [DraftFile(str(picture), longest_side=512), str(text)]
    desk.window.chat_page.composer.clear()
    text.unlink()
    desk.window.chat_page.attachments.restore(drafts)
    await desk.until(lambda: desk.is_shown("composer.notice"))
    assert "text.txt" in desk.text_of("composer.notice")
    assert row(desk).drafts == [DraftFile(str(picture), longest_side=512)]


async def test_attachments_stay_while_another_page_is_shown(desk: Desk, shape_picture: ShapePicture) -> None:
    desk.drop(shape_picture("red", "circle"))
    await desk.until(lambda: len(row(desk).items) == 1)
    desk.window.show_page("models")
    desk.window.show_page("chat")
    assert desk.is_shown("composer.attachment.1")


@pytest.mark.parametrize(
    ("name", "budget", "shown"), [("512", 512, "Thinking: 512"), ("unlimited", -1, "Thinking: On")]
)
async def test_the_thinking_budget_is_chosen_in_its_menu(desk: Desk, name: str, budget: int, shown: str) -> None:
    action(desk, "composer.thinking.budget.256").trigger()
    action(desk, f"composer.thinking.budget.{name}").trigger()
    assert desk.text_of("composer.thinking") == shown
    action(desk, "composer.preset.precise").trigger()
    await desk.ask("Why?")
    sent = desk.client.asked[-1]
    assert sent.options.thinking_budget == budget


async def test_a_file_read_for_one_chat_is_not_attached_in_the_next(desk: Desk, shape_picture: ShapePicture) -> None:
    desk.drop(shape_picture("red", "circle"))
    desk.parts.chat.new_chat()
    after = shape_picture("blue", "star")
    desk.drop(after)
    await desk.until(lambda: len(row(desk).items) >= 1)
    assert row(desk).paths == [after]


async def test_many_attachments_scroll_and_form_one_column_in_a_narrow_window(
    desk: Desk, shape_picture: ShapePicture
) -> None:
    desk.drop(*(shape_picture("red", "star", name=f"{number}.png") for number in range(12)))
    await desk.until(lambda: len(row(desk).items) == 12)
    shelf = desk.find("composer.attachments", QScrollArea)
    assert shelf.height() < row(desk).sizeHint().height()
    assert row(desk).items[1].x() > row(desk).items[0].x()
    desk.window.resize(600, 700)
    await desk.until(lambda: row(desk).items[1].y() > row(desk).items[0].y())
    row(desk).clear()
    assert not shelf.isVisible()
