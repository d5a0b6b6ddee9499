"""Schemas, grammars, JSON and requests that are too large for the engine or the server: refused with a sentence."""

import asyncio
import json
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import pytest_asyncio
from PySide6.QtWidgets import QLabel, QPlainTextEdit

from qwendesk.chat.chat_settings import usable_settings
from qwendesk.chat.tree_edits import new_id
from qwendesk.cli import ask as cli_ask
from qwendesk.cli import main as cli
from qwendesk.core import paths
from qwendesk.core.chats import ChatSettings, ChatSummary
from qwendesk.core.conversation import ChatTree
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.messages import text_message
from qwendesk.engine.client import WorkerClient
from qwendesk.engine.protocol import Finished, Generate, Welcome
from qwendesk.mcp.service import McpService
from qwendesk.server import http_app
from tests.chat.exchange.kit import Kit
from tests.core.test_grammar_bounds import HOSTILE_GRAMMARS
from tests.engine.worker.process import demo_options, greedy
from tests.fakes.engine import FakeEngineClient, ready
from tests.field.grid import SERVER, Kind, Way, case
from tests.mcp.conftest import no_keyring, service  # noqa: F401
from tests.mcp.servers import added, hostile, tool_of
from tests.server.http_desk import HttpDesk, http_desk
from tests.store.chat_nodes import node
from tests.window_desk import Desk

SIZES = Kind("A schema or grammar ends the engine, or keeps it busy for minutes")
FOREIGN_JSON = Kind(
    "JSON of others is nested without end, or has numbers that no program can have",
    {Way.MCP: "the SDK's own parser reads it, in a process of its own"},
)
ONE_REQUEST = Kind(
    "While one large request is read, no other is answered",
    dict.fromkeys((Way.WINDOW, Way.CLI, Way.MCP, Way.IMPORT), "only the server has several clients"),
)
NO_NUMBER = Kind(
    "An option is no number, and every question ends with the advice to restart",
    {
        **dict.fromkeys(SERVER, "JSON has no such numbers"),
        Way.WINDOW: "fields of the window take only what counts",
        Way.MCP: "MCP has no such fields",
    },
)
FOUND = "found by attack"
CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
MEMORY_BYTES = 8 * 2**30
"""Of address space. The engine of the demo model takes half of it."""

TEXTS = {"type": "array", "items": {"type": "string"}, "maxItems": 1_000_000}
LONG_TEXT = {"type": "string", "minLength": 10**9}
MANY_VALUES = {"enum": [f"value {number}" for number in range(60_000)]}
DEEP: dict[str, Any] = {"type": "string"}
for _ in range(150):
    DEEP = {"type": "array", "items": DEEP}


def body_of(path: str, schema: Any = None, tools: Any = ()) -> dict[str, Any]:
    """A request for an answer by a schema, or with tools of these schemas that must be called."""
    body: dict[str, Any] = {"input" if path == RESPONSES else "messages": [{"role": "user", "content": "Hello"}]}
    body["max_output_tokens" if path == RESPONSES else "max_tokens"] = 4
    named = {"name": "answer", "schema": schema}
    if schema is not None and path == RESPONSES:
        body["text"] = {"format": {"type": "json_schema", **named}}
    elif schema is not None:
        body["response_format"] = {"type": "json_schema", "json_schema": named}
    parameters = "input_schema" if path == MESSAGES else "parameters"
    functions = [{"name": f"t{number}", parameters: each} for number, each in enumerate(tools)]
    if functions and path == CHAT:
        body["tools"] = [{"type": "function", "function": each} for each in functions]
    elif functions:
        body["tools"] = [{"type": "function", **each} if path == RESPONSES else each for each in functions]
    if functions:
        body["tool_choice"] = {"type": "any"} if path == MESSAGES else "required"
    return body


@pytest_asyncio.fixture
async def engine() -> AsyncIterator[WorkerClient]:
    client = WorkerClient()
    yield client
    await client.close()


@pytest_asyncio.fixture
async def real(tmp_path: Path, engine: WorkerClient) -> AsyncIterator[HttpDesk]:
    async with http_desk(tmp_path, client=engine, model=paths.demo_model()) as desk:
        yield desk


async def engine_process(desk: HttpDesk) -> int:
    """The process of the engine, which gets no memory without end from now on."""
    assert await desk.status("POST", CHAT, body_of(CHAT)) == 200
    welcome = await desk.client.start()
    assert isinstance(welcome, Welcome)
    if sys.platform == "linux":
        psutil.Process(welcome.pid).rlimit(psutil.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    return welcome.pid


@case(SIZES, *SERVER, report="llama.cpp#10047 and others: nested brackets and repetitions", before="failed")
async def test_the_engine_outlives_hostile_schemas_and_grammars(real: HttpDesk) -> None:
    process = await engine_process(real)
    objects = [{"type": "object", "properties": {"x": each}} for each in (TEXTS, LONG_TEXT)]
    asked = [
        *((path, body_of(path, schema), 200) for path in (CHAT, RESPONSES) for schema in (TEXTS, LONG_TEXT)),
        *((path, body_of(path, schema), 400) for path in (CHAT, RESPONSES) for schema in (MANY_VALUES, DEEP)),
        *((path, body_of(path, tools=objects), 200) for path in (CHAT, RESPONSES, MESSAGES)),
        *((path, body_of(path, tools=[{"type": "object", "properties": {"x": schema}}]), 400)
          for path in (CHAT, RESPONSES, MESSAGES) for schema in (MANY_VALUES, DEEP)),
        *((CHAT, body_of(CHAT) | {"grammar": grammar}, 400) for grammar, _ in HOSTILE_GRAMMARS.values()),
    ]  # fmt: skip
    for path, body, expected in asked:
        async with real.request("POST", path, body) as response:
            said = await response.text()
            assert response.status == expected, (path, str(body)[:300], said)
            assert expected == 200 or "Invalid" in said
    assert await engine_process(real) == process


@case(SIZES, Way.MCP, report=FOUND, before="held")
async def test_tools_of_a_server_have_schemas_that_the_engine_can_stand(
    service: McpService,  # noqa: F811
    engine: WorkerClient,
) -> None:
    await added(service, hostile("sizes"))
    tool = tool_of(service, "go")
    definition = {"type": "function", "function": {"name": "go", "parameters": tool.parameters}}
    await engine.load(demo_options())
    messages = (text_message("user", "Hello"),)
    tools = (json.dumps(definition),)
    request = Generate(messages=messages, options=greedy(max_tokens=8), tools_json=tools, must_call="*")
    stream = engine.generate(request)
    assert isinstance([item async for item in stream][-1], Finished)


@case(SIZES, Way.CLI, report=FOUND, before="failed")
@pytest.mark.parametrize(
    "option",
    [f"json_schema={json.dumps(MANY_VALUES)}", f"grammar={HOSTILE_GRAMMARS['brackets'][0]}"],
    ids=("schema", "grammar"),
)
def test_ask_refuses_what_the_engine_cannot_stand(
    option: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake = FakeEngineClient()
    monkeypatch.setattr(cli_ask, "preferred_client", lambda: ready(fake))

    assert cli.main(["ask", "--set", option, "Hello"]) != 0

    said = " ".join(capsys.readouterr().err.split())
    assert any(words in said for words in ("50,000 values", "500 levels deep")), said[-300:]
    assert not fake.requests


@case(SIZES, Way.WINDOW, report=FOUND, before="failed")
@case(FOREIGN_JSON, Way.WINDOW, report=FOUND, before="held")
async def test_the_window_says_what_is_wrong_with_a_schema(desk: Desk) -> None:
    desk.window.findChild(object, "action.inspector").trigger()
    desk.click("inspector.tab.system")
    field = desk.find("inspector.system.schema", QPlainTextEdit)
    for text, words in (
        (json.dumps(MANY_VALUES), "50,000 values"),
        ("[" * 100_000, "nested"),
        ('{"a": 1e999}', "JSON"),
    ):
        field.setPlainText(text)
        assert words in desk.find("inspector.system.complaint", QLabel).text()
        assert not desk.parts.chat.settings.json_schema


@case(SIZES, Way.IMPORT, report=FOUND, before="failed")
async def test_an_imported_chat_brings_no_schema_or_grammar_that_the_engine_cannot_stand(tmp_path: Path) -> None:
    hostile_settings = [
        ChatSettings(json_schema=json.dumps(MANY_VALUES)),
        ChatSettings(overrides={"json_schema": json.dumps(DEEP)}),
        *(
            ChatSettings(overrides={"grammar": grammar})
            for grammar, _ in HOSTILE_GRAMMARS.values()
            if grammar.isascii()
        ),
    ]
    (tmp_path / "one").mkdir()
    (tmp_path / "other").mkdir()
    kit, other = await Kit(tmp_path / "one").start(), await Kit(tmp_path / "other").start()
    chats = [(ChatSummary(id=new_id(), settings=each), ChatTree().with_node(node("q"))) for each in hostile_settings]
    await kit.chat_list.add_chats(chats)
    await kit.exchange.export(tmp_path / "all.json", "json")

    report = await other.exchange.import_from(tmp_path / "all.json")

    imported = [usable_settings(each.settings) for each in other.chat_list.chats.summaries.values()]
    assert len(imported) + report.too_large == len(hostile_settings)
    assert report.too_large < 5, "only settings of a megabyte are not read"
    assert all((each.json_schema, each.overrides) == ("", {}) for each in imported)
    await kit.chat_list.close()
    await other.chat_list.close()


UNREADABLE = (
    b"[" * 100_000,
    b'{"max_tokens": ' + b"9" * 400 + b"}",
    b'{"temperature": 1e999}',
    b"9" * 5000,
    b'{"a": NaN}',
)


@case(FOREIGN_JSON, *SERVER, report=FOUND, before="failed")
async def test_a_body_that_no_program_can_read_is_the_clients_fault(tmp_path: Path) -> None:
    async with http_desk(tmp_path) as desk:
        for path in (CHAT, RESPONSES, MESSAGES):
            for content in UNREADABLE:
                assert await desk.status("POST", path, content) == 400, (path, content[:40])
        assert not desk.client.asked


@case(FOREIGN_JSON, Way.CLI, report=FOUND, before="held")
def test_ask_says_that_a_schema_is_no_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    fake = FakeEngineClient()
    monkeypatch.setattr(cli_ask, "preferred_client", lambda: ready(fake))
    for content in UNREADABLE:
        assert cli.main(["ask", "--set", f"json_schema={content.decode()}", "Hello"]) != 0
        assert "isn't JSON" in capsys.readouterr().err


@case(FOREIGN_JSON, Way.IMPORT, report=FOUND, before="held")
async def test_an_import_that_no_program_can_read_is_refused(tmp_path: Path) -> None:
    kit = await Kit(tmp_path).start()
    for content in UNREADABLE:
        with pytest.raises(QwenDeskError):
            await kit.import_bytes(content)
    await kit.chat_list.close()


@case(ONE_REQUEST, *SERVER, report=FOUND, before="failed")
async def test_others_are_answered_while_a_large_request_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others_answered, decode = threading.Event(), http_app.decode_body

    def waiting(content: bytes) -> Any:
        assert others_answered.wait(60), "the server reads this one first"
        return decode(content)

    monkeypatch.setattr(http_app, "decode_body", waiting)
    async with http_desk(tmp_path) as desk:
        for path in (CHAT, RESPONSES, MESSAGES):
            others_answered.clear()
            many = [{"role": "user", "content": "Hello"}] * 100_000
            body = body_of(path) | {"input" if path == RESPONSES else "messages": many}
            large = asyncio.ensure_future(desk.json("POST", path, body))
            await desk.until(lambda: desk.n_running == 1)
            assert await desk.status("GET", "/health") == 200
            others_answered.set()
            assert "at most 5,000 entries" in (await large)["error"]["message"]
        assert not desk.client.asked


@case(NO_NUMBER, Way.CLI, report="found by trying", before="failed")
def test_what_is_no_number_is_refused_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    for option in ("temperature", "top_p", "min_p", "repeat_penalty", "presence_penalty"):
        for text in ("nan", "inf", "-NaN"):
            assert cli.main(["ask", "--set", f"{option}={text}", "Hi"]) == 2
            assert f"{option} can't be" in capsys.readouterr().err


@case(NO_NUMBER, Way.IMPORT, report="found by trying", before="failed")
def test_what_is_no_number_is_left_out_of_an_imported_chat() -> None:
    values = {"temperature": "nan", "top_p": "NaN", "min_p": "0.1"}
    settings = usable_settings(ChatSettings(overrides=values, preset_values=values))
    assert settings.overrides == settings.preset_values == {"min_p": "0.1"}
