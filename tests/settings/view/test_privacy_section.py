"""The privacy card, "delete everything" from the window, and logs without message text."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QCheckBox, QLabel

from qwendesk.app.error_reporting import report_errors
from qwendesk.app.parts import build
from qwendesk.core import paths
from qwendesk.engine.protocol import RequestFailed
from qwendesk.engine.state import Phase
from qwendesk.help.crash_reports import CrashReports
from qwendesk.help.view.crash_notices import CrashNotices
from qwendesk.widgets.theme_keeper import ThemeKeeper
from tests.fakes.engine import FakeEngineClient, ScriptedAnswer, decide_by_default
from tests.links import can_link
from tests.user_folders import user_variables
from tests.window_desk import Desk

SECRET = "marmalade1729"


@pytest.fixture
def own_folders_of_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable, folder in user_variables(tmp_path / "app").items():
        monkeypatch.setenv(variable, folder)
    return tmp_path


@pytest.fixture
def log(own_folders_of_test: Path) -> Iterator[Path]:
    """As the app writes it."""
    folder = paths.log_folder()
    folder.mkdir(parents=True)
    handler = logging.FileHandler(folder / "window.log", encoding="utf-8")
    handler.setLevel(logging.WARNING)
    logging.getLogger().addHandler(handler)
    yield folder
    logging.getLogger().removeHandler(handler)
    handler.close()


def open_desk(client: FakeEngineClient) -> Desk:
    """One that the test closes itself."""
    desk = Desk(build(client, decide=decide_by_default), client)
    desk.window.show()
    desk.window.activateWindow()
    return desk


def files(*folders: Path) -> list[Path]:
    return [path for folder in folders for path in folder.rglob("*") if path.is_file()]


async def test_card_lists_stored_data_with_its_folders(
    own_folders_of_test: Path, make_desk: Callable[[], Desk]
) -> None:
    desk = make_desk()
    desk.parts.chats.start()
    await desk.parts.chats.opened()
    desk.window.show_page("settings")
    await desk.until(lambda: desk.has("settings.privacy.chats.1"))
    assert desk.text_of("settings.privacy.chats.1") == str(paths.data_folder())
    assert "no telemetry" in desk.text_of("settings.privacy.promise")


async def test_deletion_needs_confirmation(own_folders_of_test: Path, make_desk: Callable[[], Desk]) -> None:
    desk = make_desk()
    desk.window.show_page("settings")
    desk.click("settings.privacy.delete")
    desk.click("privacy.no")
    assert desk.parts.services.privacy.state.value.deletion is None
    assert desk.window.isVisible()


async def test_delete_everything_leaves_nothing(
    own_folders_of_test: Path,
    client: FakeEngineClient,
    keeper: ThemeKeeper,
    shape_picture: Callable[..., Path],
) -> None:
    model = paths.data_folder() / "models" / "a.gguf"
    model.parent.mkdir(parents=True)
    model.write_bytes(b"GGUF")
    moved = own_folders_of_test / "another drive"
    moved.mkdir()
    (moved / "a.png").write_bytes(b"a picture of somebody else")
    has_link = can_link(own_folders_of_test)
    if has_link:
        (paths.data_folder() / "engines").symlink_to(moved, target_is_directory=True)
    desk = open_desk(client)
    desk.parts.chats.start()
    await desk.parts.chats.opened()
    await desk.load_demo()
    desk.parts.services.settings.change({"zoom_percent": 110})
    desk.parts.services.notes.add("I live in Hamburg.")
    await desk.parts.services.notes.close()
    desk.drop(shape_picture("red", "circle"))
    await desk.until(lambda: desk.is_shown("composer.attachment.1"))
    await desk.ask("Well?")
    desk.window.show_page("settings")
    await desk.until(lambda: desk.has("settings.privacy.models.1"))
    closed: list[bool] = []
    desk.window.closed.connect(lambda: closed.append(True))
    desk.click("settings.privacy.delete")
    listed = desk.find("privacy.list", QLabel).text()
    assert "Chats and drafts" in listed
    assert "Notes about you" in listed
    assert not desk.find("privacy.models", QCheckBox).isChecked()
    if has_link:
        asked = desk.find("privacy.link.1", QCheckBox)
        assert asked.text() == f"Also delete everything in {moved}"
        assert not asked.isChecked()
    desk.find("privacy.models", QCheckBox).setChecked(True)
    desk.click("privacy.yes")
    assert closed == [True]
    await desk.parts.close()
    assert files(*paths.own_folders())
    assert desk.parts.services.privacy.carry_out("mirror.example") == ()
    assert not any(folder.exists() for folder in paths.own_folders())
    assert (moved / "a.png").exists(), "nothing is deleted through a link"


async def test_log_never_contains_message_text(
    log: Path, client: FakeEngineClient, keeper: ThemeKeeper, tmp_path: Path
) -> None:
    desk = open_desk(client)
    reports = CrashReports()
    reports.begin()
    CrashNotices(desk.window, desk.parts.engine.observed, reports)
    restore = report_errors(desk.window, lambda: None)
    try:
        desk.parts.chats.start()
        await desk.parts.chats.opened()
        await desk.load_demo()
        desk.client.answers += [
            ScriptedAnswer(reasoning=SECRET, text=f"{SECRET} is a word."),
            ScriptedAnswer(text=SECRET, fail=RequestFailed(id=1, title="No", sentence="It does not work.")),
            ScriptedAnswer(text=f"{SECRET} two three four", crashes_after=2),
        ]
        for _ in range(3):
            await desk.ask(f"What is {SECRET}?")
        await desk.until(lambda: desk.parts.engine.state.phase is Phase.READY)
        chat, turn = desk.parts.chat, desk.parts.chat.conversation.turns[0].id
        chat.edit_answer(turn, text=f"{SECRET} by hand", reasoning=SECRET)
        desk.parts.tasks.start(chat.regenerate(987_654))
        (tmp_path / "broken.json").write_text(f'{{"{SECRET}": [')
        chats = desk.parts.chats
        desk.parts.tasks.start(chats.transfer._import(tmp_path / "broken.json"))
        (tmp_path / "file").write_text("")
        ids = (chats.services.chat_list.current_id,)
        desk.parts.tasks.start(chats.transfer._export(tmp_path / "file" / "x.md", "markdown", ids))
        desk.type(SECRET)
        desk.press(Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
        await desk.until(lambda: desk.is_shown("banner"))
        logging.getLogger("qwendesk").warning("a line of the log")
    finally:
        restore()
        await desk.parts.close()
        reports.end()
    texts = [path.read_text(errors="replace") for path in files(log)]
    assert any("a line of the log" in text for text in texts)
    assert any(path.name.startswith("crash-") for path in files(log))
    assert not any(SECRET in text for text in texts)
