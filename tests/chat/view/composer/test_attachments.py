"""Pictures dropped, pasted and chosen in the window."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from PIL import Image
from PySide6.QtCore import QEvent, QMimeData, QObject, Qt, QUrl
from PySide6.QtWidgets import QApplication, QFileDialog, QWidget

from qwendesk.chat.view.composer.composer_text import ComposerText
from qwendesk.chat.view.thread.pictures.picture_viewer import PictureViewer
from qwendesk.core.paths import cache_folder
from qwendesk.engine.protocol import RequestFailed
from qwendesk.widgets.theme_keeper import ThemeKeeper
from tests.decoding.hostile_files import png_claiming, sparse_file
from tests.fakes.engine import DEMO_REPORT, FakeEngineClient
from tests.window_desk import Desk, files_mime, image_mime

ShapePicture = Callable[..., Path]


def attached(desk: Desk) -> list[Path]:
    return desk.window.chat_page.composer.attachments.paths


async def test_a_dropped_picture_shows_its_tokens_and_is_sent(desk: Desk, shape_picture: ShapePicture) -> None:
    picture = shape_picture("red", "circle")
    desk.drop(picture)
    await desk.until(lambda: desk.has("composer.attachment.1.cost"))
    await desk.until(lambda: "tokens" in desk.text_of("composer.attachment.1.cost"))
    assert desk.text_of("composer.attachment.1.cost") == "256×256 → 64 tokens, 0.2% of context"
    await desk.ask("What is this?")
    sent = desk.client.asked[0]
    assert [image.path for image in sent.messages[-1].images] == [str(picture)]
    assert attached(desk) == []


async def test_the_drop_target_is_shown_while_pictures_are_dragged(desk: Desk, shape_picture: ShapePicture) -> None:
    assert not desk.is_shown("drop.target")
    event = desk.drag(files_mime(shape_picture("red", "circle")))
    assert event.isAccepted()
    assert desk.is_shown("drop.target")
    desk.drop(shape_picture("blue", "square"))
    assert not desk.is_shown("drop.target")
    await desk.until(lambda: len(attached(desk)) == 1)


async def test_web_address_of_a_picture_is_not_attached(desk: Desk) -> None:
    mime = QMimeData()
    mime.setUrls([QUrl("https://example.org/picture.png")])
    desk.drag(mime)
    assert not desk.is_shown("drop.target")


async def test_a_pasted_picture_is_stored_by_its_content(desk: Desk) -> None:
    desk.paste(image_mime())
    await desk.until(lambda: len(attached(desk)) == 1)
    path = attached(desk)[0]
    assert path.parent == cache_folder() / "pasted"
    with Image.open(path) as image:
        assert image.format == "PNG"
        assert image.size == (40, 30)
        assert image.convert("RGB").getpixel((5, 5)) == (0, 0, 255)
    desk.paste(image_mime())
    await desk.until(lambda: desk.is_shown("composer.attachment.1"))
    assert attached(desk) == [path]


async def test_pasted_files_are_attached_and_pasted_text_is_inserted(desk: Desk, shape_picture: ShapePicture) -> None:
    text = QMimeData()
    text.setText("only words")
    desk.paste(text)
    assert desk.composer_text.toPlainText() == "only words"
    desk.paste(files_mime(shape_picture("red", "star")))
    await desk.until(lambda: len(attached(desk)) == 1)
    assert desk.composer_text.toPlainText() == "only words"


async def test_a_picture_is_attached_with_the_dialog(desk: Desk, shape_picture: ShapePicture) -> None:
    picture = shape_picture("green", "triangle")
    desk.composer_text.setFocus()
    desk.press(Qt.Key.Key_O, Qt.KeyboardModifier.ControlModifier)
    dialog = desk.window.findChild(QFileDialog)
    assert dialog is not None
    assert "*.webp" in dialog.nameFilters()[0]
    dialog.filesSelected.emit([str(picture)])
    dialog.close()
    await desk.until(lambda: attached(desk) == [picture])


async def test_pictures_that_would_fill_the_memory_are_refused_with_their_sizes(desk: Desk, tmp_path: Path) -> None:
    desk.drop(sparse_file(tmp_path / "sparse.png", 6 << 30), png_claiming(tmp_path / "deep.png", 12_000, 12_000))
    await desk.until(lambda: desk.is_shown("composer.notice"))
    sentences = desk.text_of("composer.notice")
    assert '"sparse.png" is 6.0 GB, but picture files can be at most 256 MB.' in sentences
    assert '"deep.png" has 12000x12000 pixels and needs 1.1 GB of memory, but the limit is 512 MB.' in sentences
    assert attached(desk) == []


async def test_good_pictures_are_attached_when_others_are_refused(
    desk: Desk, tmp_path: Path, shape_picture: ShapePicture
) -> None:
    fake = tmp_path / "broken.png"
    fake.write_bytes(b"\x89PNG\r\n\x1a\nbroken")
    desk.drop(fake, shape_picture("red", "circle"))
    await desk.until(lambda: len(attached(desk)) == 1)
    await desk.until(lambda: desk.is_shown("composer.notice"))
    assert "broken.png" in desk.text_of("composer.notice")


async def test_a_picture_can_be_removed(desk: Desk, shape_picture: ShapePicture) -> None:
    desk.drop(shape_picture("red", "circle"), shape_picture("blue", "star"))
    await desk.until(lambda: len(attached(desk)) == 2)
    desk.click("composer.attachment.1.remove")
    assert [path.name for path in attached(desk)] == ["blue-star-128.png"]


async def test_model_without_vision_offers_to_choose_an_mmproj_file(
    make_desk: Callable[[], Desk], client: FakeEngineClient, shape_picture: ShapePicture
) -> None:
    client.report = msgspec.structs.replace(DEMO_REPORT, can_see=False)
    desk = make_desk()
    await desk.load_demo()
    desk.drop(shape_picture("red", "circle"))
    await desk.until(lambda: desk.is_shown("composer.notice"))
    assert "can't see pictures" in desk.text_of("composer.notice")
    assert desk.is_shown("composer.mmproj")
    assert attached(desk) == []


async def test_a_picture_dropped_while_the_model_loads_is_measured_afterwards(
    make_desk: Callable[[], Desk], shape_picture: ShapePicture
) -> None:
    desk = make_desk()
    desk.client.load_delay_s = 0.3
    desk.parts.window.load_demo()
    desk.drop(shape_picture("red", "circle"))
    await desk.until(lambda: desk.has("composer.attachment.1.cost"))
    assert desk.text_of("composer.attachment.1.cost") == "128×128"
    await desk.until(lambda: "64 tokens" in desk.text_of("composer.attachment.1.cost"))


async def test_picture_refused_by_the_engine_shows_why_before_sending(
    desk: Desk, shape_picture: ShapePicture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object) -> RequestFailed:
        return RequestFailed(id=1, title="Picture too large", sentence="It has 100,000,000 pixels: make it smaller.")

    monkeypatch.setattr(desk.client, "ask", refuse)
    desk.drop(shape_picture("red", "circle"))
    await desk.until(lambda: desk.has("composer.attachment.1.cost"))
    await desk.until(lambda: desk.text_of("composer.attachment.1.cost") == "Picture too large")
    desk.send("What is this?")
    assert "make it smaller" in desk.text_of("composer.notice")
    assert len(attached(desk)) == 1


async def test_a_thumbnail_opens_the_picture(desk: Desk, shape_picture: ShapePicture, app: QApplication) -> None:
    desk.drop(shape_picture("red", "circle"))
    await desk.until(lambda: desk.is_shown("composer.attachment.1.picture"))
    desk.click("composer.attachment.1.picture")
    viewer = desk.window.findChild(PictureViewer)
    assert viewer is not None
    await desk.until(viewer.has_picture)
    middle = viewer.grab().toImage().pixelColor(viewer.rect().center())
    assert (middle.red(), middle.green(), middle.blue()) == (214, 36, 36)
    viewer.close()


async def test_thumbnail_of_a_question_survives_a_removed_file(desk: Desk, shape_picture: ShapePicture) -> None:
    picture = shape_picture("red", "circle")
    desk.drop(picture)
    await desk.until(lambda: len(attached(desk)) == 1)
    await desk.ask("What is this?")
    picture.unlink()
    question = desk.find("thread.question.1", QWidget)
    image = question.grab().toImage()
    colours = {image.pixelColor(x, 60).name() for x in range(0, image.width(), 4)}
    assert "#d62424" in colours


class Paints(QObject):
    """Counts how often a widget is painted."""

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget)
        self.count = 0
        widget.installEventFilter(self)

    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt names it
        self.count += event.type() is QEvent.Type.Paint
        return False


def test_the_hint_says_at_once_what_the_loaded_model_takes(keeper: ThemeKeeper) -> None:
    """Qt doesn't paint a placeholder that changes, so the hint of the model before stayed until the next action."""
    field = ComposerText()
    field.show()
    QApplication.processEvents()
    paints = Paints(field.viewport())
    for can_see in (False, True):
        before = paints.count
        field.show_vision(can_see=can_see)
        QApplication.processEvents()
        assert ("a picture, clip" in field.placeholderText()) is can_see
        assert paints.count > before
    field.deleteLater()
