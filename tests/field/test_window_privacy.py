"""Sentences about privacy say where the model is: on this PC, in the same network or beyond."""

import msgspec
import pytest
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QLabel

from qwendesk.core.options import LoadOptions
from qwendesk.core.served_model import Reach, incognito_text, privacy_text, reach_of
from qwendesk.engine.protocol import ServedBy
from qwendesk.engine.state import EngineState, Phase
from tests.fakes.engine import DEMO_REPORT
from tests.field.grid import SERVER, Kind, Way, case
from tests.window_desk import Desk

NO_SENTENCE = "says nothing about where the model is"
FALSE_PRIVACY = Kind(
    "A sentence says that everything stays on this PC while the model is elsewhere",
    dict.fromkeys((Way.CLI, *SERVER, Way.MCP, Way.IMPORT), NO_SENTENCE),
)
FOUND = "found by reading the window's sentences, 28 November"

PLACES: tuple[tuple[str, Reach], ...] = (
    ("http://127.0.0.1:8080", "pc"),
    ("http://127.8.8.8:8080", "pc"),
    ("http://127.1:8080", "pc"),
    ("http://localhost:1234", "pc"),
    ("http://[::1]:8080", "pc"),
    ("http://[::ffff:127.0.0.1]:8080", "pc"),
    ("http://0.0.0.0:8080", "pc"),
    ("http://192.168.1.5:8080", "network"),
    ("http://10.0.0.2:11434", "network"),
    ("http://[fe80::1%25eth0]:8080", "network"),
    ("http://[fd00::5]:8080", "network"),
    ("http://gaming-pc:8080", "network"),
    ("http://nas.local:8080", "network"),
    ("https://api.example.com", "internet"),
    ("https://localhost.example.com", "internet"),
    ("https://8.8.8.8", "internet"),
    ("https://134744072", "internet"),
    ("https://[2001:4860:4860::8888]", "internet"),
    ("https://[::ffff:8.8.8.8]", "internet"),
)
SAID = {"pc": "on this PC", "network": "in your network", "internet": "on the internet"}


@pytest.mark.parametrize(("address", "reach"), PLACES)
def test_an_address_leads_as_far_as_its_host(address: str, reach: Reach) -> None:
    assert reach_of(address) == reach
    sentence = privacy_text(f"{address}#qwen")
    assert SAID[reach] in sentence
    assert "stays" not in sentence
    assert [other for name, other in SAID.items() if name != reach and other in sentence] == []


def served(address: str) -> EngineState:
    options = LoadOptions(model=f"{address}#qwen")
    by = ServedBy(name="My server", address=address, program="llama-server")
    report = msgspec.structs.replace(
        DEMO_REPORT,
        options=msgspec.structs.replace(DEMO_REPORT.options, model=options.model),
        served_by=by,
        name="qwen",
    )
    return EngineState(phase=Phase.READY, requested=options, report=report)


@pytest.mark.parametrize(("address", "reach"), [PLACES[0], PLACES[7], PLACES[13]])
@case(FALSE_PRIVACY, Way.WINDOW, report=FOUND, before="failed")
async def test_the_empty_chat_says_where_the_model_is(desk: Desk, address: str, reach: Reach) -> None:
    desk.parts.chats.show_engine(served(address))

    assert SAID[reach] in desk.text_of("welcome.text")
    assert "stays on this PC" not in desk.text_of("welcome.text")


@case(FALSE_PRIVACY, Way.WINDOW, report=FOUND, before="failed")
async def test_a_model_on_a_server_that_loads_or_was_used_last_is_no_model_on_this_pc(desk: Desk) -> None:
    state, welcome = served("https://api.example.com"), desk.window.chat_page.welcome
    welcome.show_state(msgspec.structs.replace(state, phase=Phase.LOADING, report=None))
    assert "sent to api.example.com on the internet" in desk.text_of("welcome.text")

    welcome.show_state(EngineState())
    desk.window.chat_page.show_last_model("https://api.example.com#qwen")

    assert "sent to api.example.com on the internet" in desk.text_of("welcome.text")
    desk.window.chat_page.show_last_model("")
    assert "on this PC" not in desk.text_of("welcome.text")


@case(FALSE_PRIVACY, Way.WINDOW, report=FOUND, before="failed")
async def test_an_incognito_chat_says_who_else_gets_it(desk: Desk) -> None:
    desk.find("action.new_incognito", QAction).trigger()
    assert desk.text_of("chats.incognito") == incognito_text("") == "This chat is incognito. Nothing is saved."

    desk.parts.chats.show_engine(served("http://127.0.0.1:8080"))
    desk.window.top_bar.show_state(served("http://127.0.0.1:8080"))

    for said in (desk.text_of("chats.incognito"), desk.find("chat.incognito", QLabel).toolTip()):
        assert "127.0.0.1:8080 gets what you write" in said
        assert "Nothing is saved" not in said


@case(FALSE_PRIVACY, Way.WINDOW, report=FOUND, before="failed")
async def test_tools_that_may_send_something_are_no_silence(desk: Desk) -> None:
    assert "Everything stays on this PC." in desk.text_of("welcome.text")

    settings = msgspec.structs.replace(desk.parts.chat.settings, tools=("web_search",))
    desk.parts.chat.change_settings(settings)

    assert "Only what you allow a tool to send leaves it." in desk.text_of("welcome.text")
    assert "Everything stays" not in desk.text_of("welcome.text")
