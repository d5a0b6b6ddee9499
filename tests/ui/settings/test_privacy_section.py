"""The privacy card, "delete everything" from the window, and logs without message text."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QCheckBox, QLabel

from qwendesk.app.crash_part import CrashPart
from qwendesk.app.main import report_errors
from qwendesk.app.parts import build
from qwendesk.core import paths
from qwendesk.engine.protocol import RequestFailed
from qwendesk.engine.state import Phase
from qwendesk.services.crash_reports import CrashReports
from qwendesk.services.privacy import app_folders
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from tests.fakes.engine import FakeEngineClient, ScriptedAnswer
from tests.ui.desk import Desk

SECRET = "marmalade1729"


@pytest.fixture
def own_folders_of_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in ("HOME", "APPDATA", "LOCALAPPDATA", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / "app" / variable))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "app" / "state"))
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


def open_desk(client: FakeEngineClient, keeper: ThemeKeeper) -> Desk:
    """One that the test closes itself."""
    desk = Desk(build(client, keeper, decide=lambda options, _devices: options), client)
    desk.window.show()
    desk.window.activateWindow()
    return desk


def files(*folders: Path) -> list[Path]:
    return [path for folder in folders for path in folder.rglob("*") if path.is_file()]


async def test_the_card_says_what_is_where(own_folders_of_test: Path, make_desk: Callable[[], Desk]) -> None:
    desk = make_desk()
    desk.parts.chats.start()
    await desk.parts.chats.opened()
    desk.window.show_page("settings")
    await desk.until(lambda: desk.has("settings.privacy.chats.1"))
    assert desk.text_of("settings.privacy.chats.1") == str(paths.data_folder())
    assert "no telemetry" in desk.text_of("settings.privacy.promise")


async def test_nothing_is_deleted_without_a_second_yes(
    own_folders_of_test: Path, make_desk: Callable[[], Desk]
) -> None:
    desk = make_desk()
    desk.window.show_page("settings")
    desk.click("settings.privacy.delete")
    desk.click("privacy.no")
    assert not desk.parts.around.privacy.is_deletion_wanted
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
    desk = open_desk(client, keeper)
    desk.parts.chats.start()
    await desk.parts.chats.opened()
    await desk.load_demo()
    desk.parts.settings.change({"zoom_percent": 110})
    desk.drop(shape_picture("red", "circle"))
    await desk.until(lambda: desk.is_shown("composer.attachment.1"))
    await desk.ask("Well?")
    desk.window.show_page("settings")
    await desk.until(lambda: desk.has("settings.privacy.models.1"))
    closed: list[bool] = []
    desk.window.closed.connect(lambda: closed.append(True))
    desk.click("settings.privacy.delete")
    assert "Chats and drafts" in desk.find("privacy.list", QLabel).text()
    assert not desk.find("privacy.models", QCheckBox).isChecked()
    desk.find("privacy.models", QCheckBox).setChecked(True)
    desk.click("privacy.yes")
    assert closed == [True]
    await desk.parts.close()
    assert files(*app_folders())
    assert desk.parts.around.privacy.carry_out("mirror.example") == ()
    assert not any(folder.exists() for folder in app_folders())


async def test_the_log_never_holds_what_was_said(
    log: Path, client: FakeEngineClient, keeper: ThemeKeeper, tmp_path: Path
) -> None:
    desk = open_desk(client, keeper)
    reports = CrashReports()
    reports.begin()
    CrashPart(keeper, desk.window, desk.parts.engine, reports)
    restore = report_errors(desk.window, lambda: None)
    try:
        desk.parts.chats.start()
        await desk.parts.chats.opened()
        await desk.load_demo()
        desk.client.answers += [
            ScriptedAnswer(reasoning=SECRET, text=f"{SECRET} is a word."),
            ScriptedAnswer(text=SECRET, fail=RequestFailed(id=1, title="No", sentence="It does not work.")),
            ScriptedAnswer(text=f"{SECRET} two three four", dies_after=2),
        ]
        for _ in range(3):
            await desk.ask(f"What is {SECRET}?")
        await desk.until(lambda: desk.parts.engine.state.phase is Phase.READY)
        bridge, turn = desk.parts.chat, desk.parts.chat.conversation.turns[0].id
        bridge.edit_answer(turn, f"{SECRET} by hand", SECRET)
        bridge.regenerate(987_654)
        (tmp_path / "broken.json").write_text(f'{{"{SECRET}": [')
        chats = desk.parts.chats
        desk.parts.tasks.start(chats.exchange._import(tmp_path / "broken.json"))
        (tmp_path / "file").write_text("")
        ids = (chats.service.current_id,)
        desk.parts.tasks.start(chats.exchange._export(tmp_path / "file" / "x.md", "markdown", ids))
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
