"""Web search, Read page, Run Python and Notes in the window: off at first, asked about in full, results in the row."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import keyring
import pytest
from keyring.backends import fail
from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QLabel, QLineEdit, QPushButton, QWidget

from qwendesk.core.messages import ToolCall
from qwendesk.toolbox import run_python
from qwendesk.toolbox.web import page_text
from qwendesk.toolbox.web.page_text import Internet
from qwendesk.widgets.controls import Switch
from qwendesk.widgets.text_pane import TextPane
from qwendesk.widgets.theme_keeper import current_theme
from tests.chat.view.test_tools import button, choose, load
from tests.fakes.engine import ScriptedAnswer
from tests.toolbox.web.made_up_web import answer, running_web
from tests.user_folders import user_variables
from tests.window_desk import Desk

NAMES = ("web_search", "read_page", "run_python", "remember")
SCRIPT = "for n in range(3):\n    print(n)\n"


@pytest.fixture
def desk(make_desk: Callable[[], Desk], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A window with folders of its own, so that no note or setting of another test is there."""
    for variable, folder in user_variables(tmp_path / "user").items():
        monkeypatch.setenv(variable, folder)
    monkeypatch.setattr(keyring.core, "_keyring_backend", fail.Keyring())
    return make_desk()


def shown(desk: Desk, call: int = 0) -> str:
    return desk.find(f"thread.call.text.1.{call}", TextPane).toPlainText()


async def is_answered(desk: Desk, text: str) -> None:
    await desk.until(lambda: desk.has("thread.message.1") and desk.message(1).answer_view.markdown == text)


async def test_all_of_them_are_off_in_a_new_chat(desk: Desk) -> None:
    await load(desk)
    desk.client.answers = [ScriptedAnswer(text="Hello.")]
    await desk.ask("Hello")
    [request] = desk.client.asked
    assert request.tools_json == ()
    desk.open_tools().close()
    assert not any(desk.find(f"composer.tools.{name}", Switch).isChecked() for name in NAMES)


async def test_tool_that_is_impossible_here_says_why(
    make_desk: Callable[[], Desk], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def find() -> str:
        return "Install the package bubblewrap."

    monkeypatch.setattr(run_python, "_find_sandbox", find)
    desk = make_desk()
    await load(desk)
    menu = desk.open_tools()  # which makes it find out
    tool = desk.find("composer.tools.run_python", Switch)
    await desk.until(lambda: tool.accessibleDescription() == "Install the package bubblewrap.")
    assert not tool.isEnabled()
    assert "Install the package bubblewrap." in [each.text() for each in tool.parentWidget().findChildren(QLabel)]
    menu.close()


async def test_search_and_page_are_asked_about_and_read(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    address = "http://boats.example/why?from=" + "a" * 200
    async with running_web() as web:
        found = [{"title": "Boats", "url": address, "content": "They float."}]
        web.answers[f"127.0.0.1:{web.port}/search"] = answer(json.dumps({"results": found}).encode())
        web.answers["boats.example/why"] = answer(b"<title>Boats</title><p>They displace water.")
        monkeypatch.setattr(page_text, "internet", lambda: Internet(web.connections, proxies=dict))
        server = f"http://127.0.0.1:{web.port}"
        desk.parts.services.settings.change({"search_service": "searxng", "searxng_address": server})
        await load(desk)
        choose(desk, "web_search")
        choose(desk, "read_page")
        assert button(desk).text() == "Tools: 2"
        desk.client.answers = [
            ScriptedAnswer(calls=(ToolCall("web_search", '{"query": "why do boats float"}'),)),
            ScriptedAnswer(calls=(ToolCall("read_page", json.dumps({"url": address})),)),
            ScriptedAnswer(text="Water."),
        ]
        desk.send("Why do boats float?")
        await desk.until(lambda: desk.is_shown("thread.call.1.0.once"))
        assert shown(desk) == f"Sends a search to SearXNG (127.0.0.1:{web.port}).\nSearch: why do boats float"
        assert web.requests == []
        desk.click("thread.call.1.0.once")
        await desk.until(lambda: desk.is_shown("thread.call.1.1.once"))
        assert f"1. Boats\n{address}\nThey float." in shown(desk)
        assert shown(desk, 1) == f"Reads a page of boats.example.\nAddress: {address}"
        assert not desk.has("thread.call.1.1.chat"), "it asks each time"
        desk.click("thread.call.1.1.once")
        await is_answered(desk, "Water.")
        assert "They displace water." in shown(desk, 1)
        assert [url.partition("?")[0] for url, _ in web.requests] == [
            f"127.0.0.1:{web.port}/search", "boats.example/why",
        ]  # fmt: skip


async def test_offline_is_said_in_the_row(desk: Desk) -> None:
    desk.parts.services.settings.change({"offline": True})
    await load(desk)
    choose(desk, "web_search")
    desk.client.answers = [
        ScriptedAnswer(calls=(ToolCall("web_search", '{"query": "boats"}'),)), ScriptedAnswer(text="I can't."),
    ]  # fmt: skip
    desk.send("Search")
    await is_answered(desk, "I can't.")
    assert desk.text_of("thread.call.outcome.1.0") == "Failed"
    desk.click("thread.call.open.1.0")
    assert "QwenDesk is set to offline" in shown(desk)


async def test_question_stands_inside_of_its_row_and_leaves_the_focus_there(desk: Desk) -> None:
    await load(desk)
    choose(desk, "remember")
    desk.client.answers = [
        ScriptedAnswer(calls=(ToolCall("remember", '{"note": "The dog is called Rex."}'),)),
        ScriptedAnswer(text="Yes."),
    ]
    desk.send("My dog is called Rex")
    await desk.until(lambda: desk.is_shown("thread.call.1.0.once"))
    row, allow = desk.find("thread.call.1.0", QWidget), desk.find("thread.call.1.0.once", QPushButton)
    await desk.until(lambda: allow.mapTo(row, QPoint()).y() + allow.height() + 10 < row.height())
    assert allow.mapTo(row, QPoint()).x() > 10
    allow.setFocus()
    desk.click("thread.call.1.0.once")
    await is_answered(desk, "Yes.")
    assert desk.window.focusWidget() is desk.find("thread.call.open.1.0", QPushButton)


@pytest.mark.skipif(sys.platform != "linux", reason="there is no sandbox")
async def test_whole_script_is_shown_in_the_type_of_code(
    make_desk: Callable[[], Desk], monkeypatch: pytest.MonkeyPatch
) -> None:
    from qwendesk.toolbox.confinement.sandbox import Sandbox

    async def find() -> Sandbox:
        return Sandbox("/usr/bin/bwrap", "/usr/bin/python3")

    monkeypatch.setattr(run_python, "_find_sandbox", find)
    desk = make_desk()
    await load(desk)
    menu = desk.open_tools()
    await desk.until(desk.find("composer.tools.run_python", Switch).isEnabled)
    menu.close()
    choose(desk, "run_python")
    desk.client.answers = [
        ScriptedAnswer(calls=(ToolCall("run_python", json.dumps({"code": SCRIPT})),)), ScriptedAnswer(text="Then not."),
    ]  # fmt: skip
    desk.send("Count")
    await desk.until(lambda: desk.is_shown("thread.call.1.0.once"))
    assert shown(desk) == SCRIPT
    text = desk.find("thread.call.text.1.0", TextPane)
    assert text.document().defaultFont().family() == current_theme().mono_font(12).family()
    desk.click("thread.call.1.0.refuse")
    await is_answered(desk, "Then not.")
    assert desk.text_of("thread.call.outcome.1.0") == "Refused"
    assert text.document().defaultFont().family() == current_theme().mono_font(12).family()


async def test_allowed_note_is_in_the_settings(desk: Desk) -> None:
    await load(desk)
    choose(desk, "remember")
    assert desk.parts.chat.settings.tools == ("remember", "recall_notes")
    desk.client.answers = [
        ScriptedAnswer(calls=(ToolCall("remember", '{"note": "The dog is called Rex."}'),)),
        ScriptedAnswer(calls=(ToolCall("recall_notes"),)),
        ScriptedAnswer(text="Noted."),
    ]
    desk.send("My dog is called Rex")
    await desk.until(lambda: desk.is_shown("thread.call.1.0.once"))
    assert shown(desk) == "The dog is called Rex."
    desk.click("thread.call.1.0.once")
    await is_answered(desk, "Noted.")
    desk.window.show_page("settings")
    assert desk.find("settings.notes.1.text", QLineEdit).text() == "The dog is called Rex."
