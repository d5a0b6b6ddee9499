"""The picture viewer: zoom, switching pictures, copying and saving."""

from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QGuiApplication, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QFileDialog

from qwendesk.chat.view.thread.pictures.picture_viewer import PictureViewer
from qwendesk.chat.view.thread.pictures.thumbnails import load_full
from qwendesk.core.errors import BadRequest
from tests.decoding.hostile_files import png_claiming
from tests.window_desk import Desk

ShapePicture = Callable[..., Path]


async def viewer_of(desk: Desk, path: Path) -> PictureViewer:
    desk.window.chat_page.open_picture(str(path))
    viewer = desk.window.findChild(PictureViewer)
    assert viewer is not None
    await desk.until(viewer.has_picture)
    return viewer


async def test_picture_fits_at_first_and_wheel_and_keys_zoom(desk: Desk, shape_picture: ShapePicture) -> None:
    viewer = await viewer_of(desk, shape_picture("red", "circle", side=3000))
    canvas = viewer.canvas
    fitting = canvas.scale
    assert fitting < 1
    QTest.keyClick(canvas, Qt.Key.Key_1)
    assert canvas.scale * canvas.devicePixelRatioF() == 1
    assert desk.text_of("picture.zoom") == "100%"
    QTest.keyClick(canvas, Qt.Key.Key_Minus)
    assert canvas.scale < 1
    QTest.keyClick(canvas, Qt.Key.Key_0)
    assert canvas.scale == fitting
    middle = QPointF(canvas.rect().center())
    wheel = QWheelEvent(
        middle, canvas.mapToGlobal(middle), QPoint(), QPoint(0, 240), Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(canvas, wheel)
    assert canvas.scale > fitting
    desk.click("picture.fit")
    assert canvas.scale == fitting
    viewer.close()


async def test_keys_switch_between_the_pictures_of_the_chat(desk: Desk, shape_picture: ShapePicture) -> None:
    one, two = shape_picture("red", "circle"), shape_picture("blue", "star")
    desk.drop(one, two)
    await desk.until(lambda: len(desk.window.chat_page.composer.attachments.items) == 2)
    await desk.ask("What are these?")
    viewer = await viewer_of(desk, one)
    QTest.keyClick(viewer.canvas, Qt.Key.Key_Right)
    assert viewer.path == two
    await desk.until(viewer.has_picture)
    QTest.keyClick(viewer.canvas, Qt.Key.Key_Right)
    assert viewer.path == two
    desk.click("picture.before")
    assert viewer.path == one
    await desk.until(viewer.has_picture)
    viewer.close()


async def test_a_picture_is_copied_and_saved(desk: Desk, shape_picture: ShapePicture, tmp_path: Path) -> None:
    picture = shape_picture("red", "circle")
    viewer = await viewer_of(desk, picture)
    desk.click("picture.copy")
    mime = QGuiApplication.clipboard().mimeData()
    assert mime.hasImage()
    assert [Path(url.toLocalFile()) for url in mime.urls()] == [picture]
    desk.click("picture.save")
    dialog = desk.window.findChild(QFileDialog, "picture.save_dialog")
    assert dialog is not None
    target = tmp_path / "saved.png"
    dialog.fileSelected.emit(str(target))
    dialog.close()
    await desk.until(lambda: target.exists() and target.stat().st_size == picture.stat().st_size)
    assert target.read_bytes() == picture.read_bytes()
    viewer.close()


async def test_dragging_moves_a_large_picture_and_a_click_next_to_it_closes_the_viewer(
    desk: Desk, shape_picture: ShapePicture
) -> None:
    viewer = await viewer_of(desk, shape_picture("red", "circle", side=128))
    canvas = viewer.canvas
    QTest.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=canvas.rect().center())
    assert viewer.isVisible()
    QTest.mouseClick(canvas, Qt.MouseButton.LeftButton, pos=QPoint(3, 3))
    assert not viewer.isVisible()


def test_viewer_refuses_a_picture_that_has_become_too_large(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="12000x12000 pixels"):
        load_full(png_claiming(tmp_path / "deep.png", 12_000, 12_000), 4096)
