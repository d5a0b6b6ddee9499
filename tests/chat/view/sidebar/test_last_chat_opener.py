"""Which chat opens at startup: the last one, none in safe mode, and none that crashed the app before."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest
from PySide6.QtWidgets import QLabel, QWidget

from qwendesk.app.application import Application
from qwendesk.app.main import _arguments, _run
from qwendesk.app.parts import Parts
from qwendesk.chat.reopen_guard import ReopenGuard
from qwendesk.chat.view.last_chat_opener import LastChatOpener
from qwendesk.core import paths
from qwendesk.engines.engine_choice import EngineChoiceService
from qwendesk.help.crash_reports import CrashReports
from qwendesk.services import App
from qwendesk.widgets.theme_keeper import ThemeKeeper
from tests.chat.test_reopen_guard import die_while_opening
from tests.chat.view.sidebar.chats_desk import ChatsDesk
from tests.fakes.engine_folders import VERSION, Tries, make_engine
from tests.window_desk import Desk


@pytest.fixture
def last_chat(qt_loop: asyncio.Runner, make_desk: Callable[[], Desk], tmp_path: Path) -> str:
    """The id of the chat that an earlier run in the folder `tmp_path` had open last."""

    async def ask() -> str:
        desk = make_desk()
        await desk.load_demo()
        chats = await ChatsDesk(desk, tmp_path).open_file()
        await chats.ask("First question")
        chat_id = desk.parts.chats.services.chat_list.current_id
        await desk.parts.close()
        return chat_id

    return qt_loop.run(ask())


def begin(desk: Desk, folder: Path, guard: ReopenGuard, **changes: float) -> None:
    parts = desk.parts
    opener = LastChatOpener(parts.chats.services.chat_list, guard, parent=parts.chats, **changes)  # type: ignore[arg-type]
    opener.notice_asked.connect(parts.window.add_notice)
    parts.chats.start(folder, opener.may_reopen)


async def test_the_last_chat_opens_and_its_mark_is_removed_after_a_while(
    last_chat: str, make_desk: Callable[[], Desk], keeper: ThemeKeeper, tmp_path: Path
) -> None:
    guard, desk = ReopenGuard(tmp_path / "marks"), make_desk()
    begin(desk, tmp_path, guard, beat_s=0.0)
    await desk.until(lambda: len(desk.parts.chat.conversation.turns) == 1)
    await desk.until(lambda: not list((tmp_path / "marks").iterdir()))
    assert not desk.has("reopen")


async def test_the_mark_of_a_chat_stays_while_the_window_does_not_respond(
    last_chat: str, make_desk: Callable[[], Desk], keeper: ThemeKeeper, tmp_path: Path
) -> None:
    asked = 0

    def stalling_clock() -> float:
        nonlocal asked
        asked += 1
        return asked * 10.0

    guard, desk = ReopenGuard(tmp_path / "marks"), make_desk()
    begin(desk, tmp_path, guard, beat_s=0.0, now=stalling_clock)  # type: ignore[arg-type]
    await desk.until(lambda: asked > 40)
    assert len(desk.parts.chat.conversation.turns) == 1
    assert [path.name for path in (tmp_path / "marks").iterdir()] == ["opening.json"]


async def test_a_chat_that_crashed_the_app_stays_closed_until_the_user_opens_it(
    last_chat: str, make_desk: Callable[[], Desk], keeper: ThemeKeeper, tmp_path: Path
) -> None:
    marks = tmp_path / "marks"
    die_while_opening(marks, last_chat)
    desk = make_desk()
    begin(desk, tmp_path, ReopenGuard(marks), beat_s=0.0)
    await desk.until(lambda: desk.is_shown("reopen"))
    await desk.parts.chats.opened()
    assert desk.parts.chat.conversation.turns == ()
    assert list(desk.parts.chats.services.chat_list.chats.summaries) == [last_chat]
    assert "still in the list" in desk.find("reopen.sentence", QLabel).text()
    desk.click("reopen.open")
    await desk.until(lambda: len(desk.parts.chat.conversation.turns) == 1)
    await desk.until(lambda: not list(marks.iterdir()))
    assert not desk.is_shown("reopen")


@pytest.mark.parametrize(("arguments", "has_failed", "turns"), [([], False, 1), (["--safe"], False, 0), ([], True, 0)])
def test_only_a_normal_start_after_a_clean_exit_opens_the_last_chat(
    app: Application,
    qt_loop: asyncio.Runner,
    last_chat: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    has_failed: bool,
    turns: int,
) -> None:
    mark = paths.log_folder() / "crashes" / "opening.json"
    if has_failed:
        die_while_opening(mark.parent, last_chat)
    make_engine(tmp_path / "engines", "vulkan", "vulkan")
    engines = EngineChoiceService(
        (tmp_path / "engines",), VERSION, has_installed=False, try_one=Tries(), features=lambda: ("sse4_2",)
    )
    monkeypatch.setattr("qwendesk.app.main.installed_engines", lambda *, is_safe: engines)
    monkeypatch.setattr("qwendesk.app.main.CrashReports", lambda: CrashReports(tmp_path / "crashes", tmp_path / "log"))
    monkeypatch.setattr("qwendesk.help.crash_reports.faulthandler", Mock())
    monkeypatch.setattr("qwendesk.app.main.keep_collector_quick", lambda: None)
    monkeypatch.setattr("qwendesk.core.paths.data_folder", lambda: tmp_path)

    built: list[Parts] = []

    def build_and_keep(services: App) -> Parts:
        built.append(Parts(services))
        return built[-1]

    monkeypatch.setattr("qwendesk.app.parts.Parts", build_and_keep)

    async def turns_after_start() -> int:
        running = asyncio.create_task(_run(app, _arguments(arguments), None))
        while not built or not built[0].chats.services.chat_list.state.value.is_loaded:  # noqa: ASYNC110 - nothing tells that it is open
            await asyncio.sleep(0)
        await built[0].chats.opened()
        shown = len(built[0].chat.conversation.turns)
        assert (built[0].window.findChild(QWidget, "reopen") is not None) == has_failed
        assert list(built[0].chats.services.chat_list.chats.summaries) == [last_chat]
        built[0].window.end()
        await running
        return shown

    assert qt_loop.run(turns_after_start()) == turns
    assert mark.exists() == has_failed
    mark.unlink(missing_ok=True)
