"""Tools of a real server in the window: chosen in the message field, asked about, called, shown, ended."""

import contextlib
import json
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest

from qwendesk.chat.view.thread.pictures.picture_viewer import PictureViewer
from qwendesk.chat.view.thread.pictures.thumbnails import Thumbnail
from qwendesk.chat.view.thread.tools.call_row import CallRow
from qwendesk.core.messages import ToolCall
from qwendesk.core.options import LoadOptions
from qwendesk.mcp.server_config import NewServer
from qwendesk.widgets.text_pane import TextPane
from tests.fakes.answer_stream import ScriptedAnswer
from tests.fakes.engine import DEMO_REPORT
from tests.mcp.servers import added, friendly, hostile
from tests.window_desk import Desk

TEMPLATE = msgspec.structs.replace(DEMO_REPORT.template, tools=True, call_dialect="xml")
ROW = "thread.call.1.0"


async def offer(desk: Desk, server: NewServer) -> None:
    """Load a model that can call tools, add a server, and switch it on for the chat."""
    desk.client.report = msgspec.structs.replace(DEMO_REPORT, template=TEMPLATE, can_see=True)
    await desk.parts.engine.load(LoadOptions(model="/models/with-tools.gguf"))
    await added(desk.parts.services.mcp, server)
    desk.choose_tool(f"mcp/{server.config.id}")


async def ask_to_call(desk: Desk, tool: str, **arguments: Any) -> None:
    """Have the model call a tool, and wait until the user is asked."""
    call = ToolCall(tool, json.dumps(arguments))
    desk.client.answers = [ScriptedAnswer(calls=(call,)), ScriptedAnswer(text="Done.")]
    desk.send("Go on")
    await desk.until(lambda: desk.is_shown(f"{ROW}.once"))


async def allow(desk: Desk) -> None:
    """Allow the call, and wait for the end of the answer."""
    desk.click(f"{ROW}.once")
    await desk.until(lambda: desk.message(1).answer_view.markdown == "Done.")


def is_red(picture: Thumbnail) -> bool:
    """Whether the middle of a picture is drawn in red."""
    colour = picture.grab().toImage().pixelColor(picture.rect().center())
    return colour.red() > 150 > colour.green() + colour.blue()


def picture_files(desk: Desk) -> int:
    """How many pictures of the call's result are in files."""
    record = desk.find(ROW, CallRow).record
    return sum(Path(image.path).exists() for image in record.images) if record is not None else 0


def details(desk: Desk) -> str:
    """What the row of the call shows below its line."""
    return desk.find("thread.call.text.1.0", TextPane).toPlainText()


async def test_call_shows_what_runs_asks_each_time_and_brings_its_result(desk: Desk) -> None:
    server = friendly()
    await offer(desk, server)

    await ask_to_call(desk, "friendly__add", a=2, b=40)

    [request] = desk.client.asked
    assert {json.loads(each)["function"]["name"] for each in request.tools_json} >= {"friendly__add", "friendly__fail"}
    assert f"Runs: {server.config.command_line}" in details(desk)
    assert '"a": 2' in details(desk)
    assert desk.is_shown(f"{ROW}.refuse")
    assert not desk.has(f"{ROW}.chat"), "a server's tools ask each time"
    await allow(desk)
    assert desk.text_of("thread.call.outcome.1.0") == "42"


@pytest.mark.parametrize("is_incognito", [False, True])
async def test_pictures_of_a_result_reach_the_model_and_the_row(desk: Desk, *, is_incognito: bool) -> None:
    if is_incognito:
        desk.parts.chats.services.chat_list.new(incognito=True)
    await offer(desk, friendly())
    await ask_to_call(desk, "friendly__picture")
    await allow(desk)

    *_, request = desk.client.asked
    assert [len(message.images) for message in request.messages if message.images] == [1]
    picture = desk.find("thread.call.picture.1.0.1", Thumbnail)
    await desk.until(lambda: picture.isVisible() and is_red(picture))
    assert picture_files(desk) == (0 if is_incognito else 1)
    desk.click("thread.call.picture.1.0.1")
    await desk.until(lambda: desk.window.findChild(PictureViewer) is not None)


async def test_server_that_dies_during_a_call_leaves_the_window_and_the_answer(desk: Desk, tmp_path: Path) -> None:
    await offer(desk, friendly())
    note = tmp_path / "note"
    await ask_to_call(desk, "friendly__wait", path=str(note))
    desk.click(f"{ROW}.once")
    await desk.until(note.exists)
    desk.window.show_page("settings")
    assert desk.text_of("settings.mcp.1.status").startswith("Running")
    desk.window.show_page("chat")

    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if "tests.mcp.friendly_server" in process.cmdline():
                process.kill()

    await desk.until(lambda: desk.message(1).answer_view.markdown == "Done.")
    assert "Friendly ended unexpectedly." in details(desk)
    assert desk.text_of("settings.mcp.1.status") == "Doesn't run"


async def test_silent_server_is_stopped_with_the_answer(desk: Desk) -> None:
    await offer(desk, hostile("silent"))
    await ask_to_call(desk, "hostile__go")
    desk.click(f"{ROW}.once")
    await desk.until(lambda: desk.parts.services.toolbox.waiting.value is None)
    assert desk.parts.chat.busy

    desk.click("composer.send")

    await desk.until(lambda: not desk.parts.chat.busy)
    assert "stopped" in details(desk)


async def test_tool_that_was_described_anew_says_so_when_it_asks_again(desk: Desk, tmp_path: Path) -> None:
    switch = tmp_path / "changed"
    server = hostile("changes", str(switch))
    await offer(desk, server)
    await ask_to_call(desk, "hostile__send")
    assert "has changed since" not in details(desk)
    await allow(desk)

    switch.touch()
    await desk.parts.services.mcp.test(server.config.id)
    desk.parts.chat.new_chat()
    desk.window.chat_page.tool_picker._change(tools=(f"mcp/{server.config.id}",))
    call = ToolCall("hostile__send", "{}")
    desk.client.answers = [ScriptedAnswer(calls=(call,)), ScriptedAnswer(text="Done.")]
    desk.send("Once more")
    await desk.until(lambda: desk.is_shown("thread.call.2.0.refuse"))

    assert desk.find("thread.call.text.2.0", TextPane).toPlainText().startswith("This tool has changed since")
    desk.click("thread.call.2.0.refuse")
    await desk.until(lambda: not desk.parts.chat.busy)
