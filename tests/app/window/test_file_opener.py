"""Files from outside: what is dropped, handed over, or opened by the system."""

import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import QUrl
from PySide6.QtGui import QFileOpenEvent
from PySide6.QtWidgets import QApplication

import qwendesk.app.main
from qwendesk.app.application import Application
from qwendesk.app.window.single_instance import Handover, SingleInstance
from qwendesk.core.failures import LoadFailure
from qwendesk.engine.protocol import Load
from tests.window_desk import Desk


def start_second(picture: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "qwendesk", picture.name], cwd=picture.parent)


def loaded(desk: Desk) -> list[str]:
    return [request.options.model for request in desk.client.requests if isinstance(request, Load)]


async def test_a_handed_over_picture_arrives_in_the_composer(desk: Desk, shape_picture: Callable[..., Path]) -> None:
    desk.window.show_page("models")
    desk.parts.desktop.handed_over(Handover.of([shape_picture("red", "circle")]))
    await desk.until(lambda: desk.is_shown("composer.attachment.1"))
    assert desk.window.chat_page.isVisible()


async def test_files_wait_until_the_last_chat_is_open(desk: Desk, shape_picture: Callable[..., Path]) -> None:
    desk.parts.chats.start()
    desk.parts.desktop.open_files([shape_picture("red", "circle")])
    await desk.until(lambda: desk.is_shown("composer.attachment.1"))
    await desk.parts.chats.opened()
    assert desk.is_shown("composer.attachment.1")


async def test_a_model_is_offered_and_loaded_only_when_asked(desk: Desk, tmp_path: Path) -> None:
    model = tmp_path / "New-Q8_0.gguf"
    before = loaded(desk)
    desk.parts.desktop.file_opener.open([model])
    assert desk.text_of("opening.title") == "Load New-Q8_0.gguf?"
    assert loaded(desk) == before
    desk.click("opening.load")
    await desk.until(lambda: loaded(desk) == [*before, str(model)])
    assert not desk.is_shown("opening")


async def test_a_model_that_fails_to_load_at_once_is_shown_on_the_chat_page(
    make_desk: Callable[[], Desk], tmp_path: Path
) -> None:
    desk = make_desk()
    desk.client.load_result = LoadFailure("truncated", "The file is cut off", "Download it again.")
    desk.window.show_page("engine")
    desk.parts.desktop.file_opener.open([tmp_path / "Half.gguf"])
    assert not desk.has("opening.sentence")
    await desk.until(lambda: desk.is_shown("banner"))
    assert desk.text_of("banner.title") == "The file is cut off"


async def test_a_dropped_model_is_offered(desk: Desk, tmp_path: Path) -> None:
    desk.drop(tmp_path / "Other.GGUF")
    assert desk.text_of("opening.title") == "Load Other.GGUF?"
    desk.drop(tmp_path / "b-00002-of-00002.gguf", tmp_path / "b-00001-of-00002.gguf")
    assert desk.text_of("opening.title") == "Load b-00001-of-00002.gguf?"
    desk.click("opening.dismiss")
    assert not desk.is_shown("opening")
    assert not desk.is_shown("composer.attachment.1")


async def test_mmproj_file_is_offered_as_a_vision_file(desk: Desk, tmp_path: Path) -> None:
    desk.parts.desktop.file_opener.open([tmp_path / "mmproj-F16.gguf"])
    desk.click("opening.load")
    await desk.until(lambda: len(loaded(desk)) == 2)
    assert [request.options.mmproj for request in desk.client.requests if isinstance(request, Load)][-1] == str(
        tmp_path / "mmproj-F16.gguf"
    )


async def test_a_file_opened_by_the_system_arrives(
    desk: Desk, app: Application, shape_picture: Callable[..., Path]
) -> None:
    app.give_to(desk.parts.desktop.file_opener)
    try:
        QApplication.sendEvent(app, QFileOpenEvent(QUrl.fromLocalFile(str(shape_picture("red", "circle")))))
        await desk.until(lambda: desk.is_shown("composer.attachment.1"))
    finally:
        app.give_to(None)


async def test_a_file_that_the_system_opens_before_the_window_is_there_waits_for_it(
    desk: Desk, app: Application, shape_picture: Callable[..., Path]
) -> None:
    QApplication.sendEvent(app, QFileOpenEvent(QUrl.fromLocalFile(str(shape_picture("red", "circle")))))
    assert not desk.is_shown("composer.attachment.1")
    app.give_to(desk.parts.desktop.file_opener)
    try:
        await desk.until(lambda: desk.is_shown("composer.attachment.1"))
    finally:
        app.give_to(None)
    app.give_to(desk.parts.desktop.file_opener)
    app.give_to(None)
    assert not desk.is_shown("composer.attachment.2"), "it was opened once"


async def test_a_second_start_shows_a_minimised_window(desk: Desk) -> None:
    desk.window.showMinimized()
    desk.parts.desktop.handed_over(Handover())
    assert not desk.window.isMinimized()
    assert desk.window.isVisible()


async def test_second_process_hands_over_its_files_and_exits(
    desk: Desk, tmp_path: Path, shape_picture: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("XDG_DATA_HOME", "WIN_PD_OVERRIDE_LOCAL_APPDATA"):
        monkeypatch.setenv(variable, str(tmp_path / uuid.uuid4().hex))
    first = SingleInstance()
    assert first.begin()
    first.asked.connect(desk.parts.desktop.handed_over)
    first.accept()
    picture = shape_picture("red", "circle")
    second = start_second(picture)
    try:
        await desk.until(lambda: desk.is_shown("composer.attachment.1"))
        assert second.wait() == 0
    finally:
        second.kill()
        second.wait()
        first.end()
        first.deleteLater()


def test_demo_tour_contacts_no_other_window(app: QApplication, monkeypatch: pytest.MonkeyPatch) -> None:
    def never() -> SingleInstance:
        raise AssertionError("a tour must not look for other windows")

    async def run(_app: object, _options: object, instance: object) -> int:
        assert instance is None
        return 7

    monkeypatch.setattr(qwendesk.app.main, "SingleInstance", never)
    monkeypatch.setattr(qwendesk.app.main, "_run", run)
    assert qwendesk.app.main.main(["--demo-tour"]) == 7
