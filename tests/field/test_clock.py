"""The clock of the PC was wrong and is set right, or jumps while something runs."""

import datetime
import itertools
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from qwendesk.chat.state_files import StateFiles
from qwendesk.chat.tree_edits import new_question
from qwendesk.chat.view.sidebar.chat_model import Heading, rows_of
from qwendesk.core.app_options import AppOptions
from qwendesk.core.messages import text_message
from qwendesk.core.observed import Observed
from qwendesk.core.weekly import is_due
from qwendesk.engine.protocol import Delta
from qwendesk.mcp.service import McpService
from qwendesk.server.requests import RequestLog
from qwendesk.toolbox.edit_history import EditHistory, FileEdit
from tests.chat.chats_kit import ChatsKit
from tests.chat.exchange.kit import Kit, gpt_chat, gpt_node
from tests.fakes.answer_stream import ScriptedAnswer
from tests.fakes.engine import FakeEngineClient
from tests.field.grid import SERVER, Kind, Way, case
from tests.field.serving import served
from tests.mcp.conftest import no_keyring, service
from tests.mcp.servers import added, call, friendly

__all__ = ["no_keyring", "service"]

WRONG = Kind(
    "The clock was wrong, and what was written then stays in front, in the way, or on disk",
    {
        **dict.fromkeys(SERVER, "what a request brings ends with it"),
        Way.MCP: "of MCP servers no times are kept",
    },
)
JUMPS = Kind(
    "The clock jumps, and what runs is cut off or measured wrongly",
    {
        Way.WINDOW: "its answers are the engine's, whose speeds have no clock times: tests/engine/worker",
        Way.CLI: "it measures nothing but what the server and the tools do",
        Way.IMPORT: "an import measures no time",
    },
)
FOUND = "found by setting the clock, November 2026"
DAY_S, YEAR_S = 86_400.0, 365 * 86_400.0
SetClock = Callable[[float], None]


@pytest.fixture
def set_clock(monkeypatch: pytest.MonkeyPatch) -> SetClock:
    """Return a function that sets the clock that `time.time` reads ahead by some seconds."""
    real = time.time
    return lambda ahead_s: monkeypatch.setattr(time, "time", lambda: real() + ahead_s)


@pytest.fixture
def jumping_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the clock jump by a year with each look at it, there and back."""
    jumps, now_s = itertools.cycle((YEAR_S, -YEAR_S, 0.0)), time.time()
    monkeypatch.setattr(time, "time", lambda: now_s + next(jumps))


def files_with(folder: Path, words: bytes) -> list[Path]:
    return [each for each in folder.rglob("*") if each.is_file() and words in each.read_bytes()]


def listed(kit: ChatsKit) -> list[str]:
    rows = rows_of(kit.chat_list.chats.summaries.values(), (), datetime.datetime.now())
    return [f"[{row.text}]" if isinstance(row, Heading) else row.title for row in rows]


async def ask(kit: ChatsKit, chat_id: str, text: str) -> None:
    await kit.say(chat_id, new_question("", text_message("user", text)))
    await kit.chat_list.wait_for_writes()


@case(WRONG, Way.WINDOW, report=FOUND, before="failed")
async def test_chats_of_tomorrow_dont_hide_those_of_today(tmp_path: Path, set_clock: SetClock) -> None:
    kit = await ChatsKit(tmp_path).start()
    try:
        for name, ahead_s in (("Next year", YEAR_S), ("In two days", 2 * DAY_S), ("Now", 0.0)):
            set_clock(ahead_s)
            kit.chat_list.new()
            await ask(kit, kit.chat_list.current_id, name)
        assert listed(kit) == ["[Today]", "Now", "[Date in the future]", "Next year", "In two days"]
    finally:
        await kit.chat_list.close()


@case(WRONG, Way.WINDOW, report=FOUND, before="held")
async def test_a_chat_of_tomorrow_is_one_of_today_when_it_goes_on(tmp_path: Path, set_clock: SetClock) -> None:
    kit = await ChatsKit(tmp_path).start()
    try:
        set_clock(YEAR_S)
        kit.chat_list.new()
        chat_id = kit.chat_list.current_id
        await ask(kit, chat_id, "Next year")
        set_clock(0.0)
        await ask(kit, chat_id, "Now")
        await kit.until(lambda: listed(kit) == ["[Today]", "Next year"])
    finally:
        await kit.chat_list.close()


@case(WRONG, Way.WINDOW, report=FOUND, before="failed")
async def test_a_chat_deleted_tomorrow_is_gone_with_the_next_start(tmp_path: Path, set_clock: SetClock) -> None:
    """The app is killed, or it would delete the chat at its end."""
    kit = await ChatsKit(tmp_path).start()
    chat_id = await kit.chat("The name of the cat is Schnurzelpurz", "1")
    set_clock(YEAR_S)
    kit.chat_list.chats.delete([chat_id])
    await kit.chat_list.wait_for_writes()
    kit.chat_list.chats.undo = kit.chat_list.chats._undo = None  # type: ignore[method-assign,assignment]
    kit.chat_list.chats._deleted = ()
    await kit.chat_list.close()

    set_clock(0.0)
    again = await ChatsKit(tmp_path).start()
    await again.chat_list.close()

    assert files_with(tmp_path, b"Schnurzelpurz") == []


@case(WRONG, Way.IMPORT, report=FOUND, before="failed")
async def test_an_imported_chat_of_the_next_century_isnt_the_first(tmp_path: Path) -> None:
    kit = Kit(tmp_path)
    await kit.start()
    try:
        await kit.import_value([gpt_chat(gpt_node("q", None, text="Hello"), update_time=4e9)])
        kit.chat_list.new()
        await ask(kit, kit.chat_list.current_id, "Now")
        assert listed(kit) == ["[Today]", "Now", "[Date in the future]", "From outside"]
    finally:
        await kit.chat_list.close()


@case(WRONG, Way.WINDOW, Way.CLI, report=FOUND, before="held")
def test_a_check_for_updates_of_tomorrow_stops_no_later_one() -> None:
    now = datetime.datetime.now(datetime.UTC)
    assert is_due(now, now + datetime.timedelta(days=365), now + datetime.timedelta(days=365))


@case(WRONG, Way.WINDOW, report=FOUND, before="failed")
async def test_of_too_many_files_those_of_tomorrow_are_the_oldest(tmp_path: Path) -> None:
    states = StateFiles(FakeEngineClient(), Observed(AppOptions(chat_states_gb=250 / 2**30)), tmp_path / "states")
    history = EditHistory(tmp_path / "edits", most_bytes=1000)
    edit = FileEdit("chat", "/notes.txt", "notes.txt", b"a" * 300, b"b" * 300)
    for name, ahead_s in (("0", 10 * DAY_S), ("1", -DAY_S), ("2", 0.0)):
        state = states.file_of(name)
        state.parent.mkdir(exist_ok=True)
        state.write_bytes(bytes(100))
        history.remember(name * 32, edit, on_disk=True)
        for file in (state, tmp_path / "edits" / f"{name * 32}.json"):
            if file.exists():
                os.utime(file, (time.time() + ahead_s,) * 2)

    await states.tidy()
    history.remember("3" * 32, edit, on_disk=True)

    assert [states.file_of(name).exists() for name in "012"] == [False, True, True]
    assert [(await history.status(name * 32)).state != "forgotten" for name in "03"] == [False, True]


@case(JUMPS, *SERVER, report=FOUND, before="failed")
@pytest.mark.usefixtures("jumping_clock")
async def test_the_speed_of_a_request_is_measured_by_a_clock_that_cant_jump() -> None:
    log = RequestLog()
    request = log.begin("codex", "", "/v1/responses")
    for n_tokens in (1, 2):
        log.note(request, Delta(id=1, kind="answer", text="word ", tokens=n_tokens))
    (running,) = log.observed.value
    assert running.tok_s == 0, "two tokens within half a second are too few to say a speed"


@case(JUMPS, *SERVER, report=FOUND, before="held")
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/v1/messages"])
@pytest.mark.usefixtures("jumping_clock")
async def test_a_stream_and_its_connection_outlive_jumps(path: str) -> None:
    """The second request comes by the connection of the first, which the server keeps for some time."""
    client = FakeEngineClient()
    client.answers = [ScriptedAnswer(text="one two three"), ScriptedAnswer(text="four")]
    async with served(client) as server:
        _status, text = await server.ask(path, stream=True)
        assert "three" in text
        assert "four" in json.dumps((await server.ask(path))[1])


@case(JUMPS, Way.MCP, report=FOUND, before="held")
@pytest.mark.usefixtures("jumping_clock")
async def test_calls_of_an_mcp_server_keep_their_time_limit(service: McpService) -> None:
    await added(service, friendly())
    assert await call(service, "slow", steps=3)
    assert await call(service, "add", a=2, b=3) == "5"
