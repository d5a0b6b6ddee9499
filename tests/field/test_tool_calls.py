"""Calls of tools that agents make: empty texts, names of all kinds, schemas as real MCP servers have them.

At c9f491f the cases in XML failed. Those in JSON held, but for roots and values with `allOf`, `if` or patterns.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from qwendesk.chat.view.thread.tools.call_row import CallRow
from qwendesk.cli import ask as cli_ask
from qwendesk.cli import main as cli
from qwendesk.core import paths
from qwendesk.core.messages import ToolCall
from qwendesk.core.tool_context import CallContext
from qwendesk.engine.protocol import Generate
from qwendesk.engine.worker.call_grammar import CallDialect
from qwendesk.engine.worker.call_parser import written_name
from qwendesk.mcp.server_config import McpServerList, server_list_file
from qwendesk.mcp.tools import server_switch
from qwendesk.mcp.view.server_line import offer_text
from qwendesk.toolbox.tool import Arguments, Tool
from tests.engine.worker.conftest import Demo, open_demo
from tests.engine.worker.process import demo_options, worker_process
from tests.engine.worker.templates import QWEN_LIKE
from tests.fakes.engine import DEMO_REPORT, FakeEngineClient, ready
from tests.field.calling import CallingClient, arguments_in, call_of, parameter, request, xml
from tests.field.grid import SERVER, Kind, Way, case
from tests.mcp.conftest import no_keyring
from tests.mcp.servers import added, config, hostile, until
from tests.server.http_desk import http_desk
from tests.window_desk import Desk

__all__ = ["no_keyring"]

NO_CALLS = {Way.IMPORT: "an import runs no calls"}
EMPTY_TEXT = Kind("An empty text argument swallows the rest of the call", NO_CALLS)
ROOT_UNION = Kind("A schema whose root is a union, a reference or free keys can only be called with {}", NO_CALLS)
ODD_NAMES = Kind("Names of parameters with quotes, brackets or spaces end in an error or in a loop", NO_CALLS)
NOT_CALLABLE = Kind(
    "A tool whose arguments can't be written is offered, and nobody says why it is never called",
    {
        **NO_CALLS,
        Way.WINDOW: "its tools are the app's own, and those of MCP servers, whose entry in the settings names them",
        Way.CLI: "its tools are the app's own, and those of servers that were added in the window, which says so",
    },
)
MUST_CALL = Kind(
    "A call is demanded of a model that can't call tools, and a text comes",
    {
        **NO_CALLS,
        Way.WINDOW: "the window never demands a call",
        Way.CLI: "qwendesk ask never demands a call",
        Way.MCP: "an MCP server can't demand a call",
    },
)

TEXT = {"type": "string"}
TWO_TEXTS = {"type": "object", "properties": {"old": TEXT, "new": TEXT}, "required": ["old", "new"]}
BY_ID = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
BY_NAME = {"type": "object", "properties": {"name": TEXT, "exact": {"type": "boolean"}}, "required": ["name"]}
APIS = {
    Way.CHAT: "/v1/chat/completions",
    Way.RESPONSES: "/v1/responses",
    Way.MESSAGES: "/v1/messages",
}


def api(test: Any) -> Any:
    """Run a test with each API."""
    return pytest.mark.parametrize("path", APIS.values(), ids=[way.name for way in APIS])(test)


@pytest.fixture(scope="module")
def demo() -> Iterator[Demo]:
    with open_demo() as demo:
        yield demo


async def called(path: str, folder: Path, client: FakeEngineClient, *schemas: Any) -> list[Any]:
    """The arguments that a program gets with the model's calls, one for each request with a tool of such a schema."""
    async with http_desk(folder, client=client) as desk:
        return [arguments_in(path, await desk.json("POST", path, request(path, each))) for each in schemas]


def tool(schema: dict[str, Any]) -> Tool:
    """A tool of the app that does nothing."""

    async def run(arguments: Arguments, _context: CallContext) -> str:
        return "done"

    return Tool("use", "Use", "Does nothing.", "A tool.", schema, "nothing", run, is_trusted=True)


@pytest.fixture
def client(qt_loop: object, demo: Demo) -> CallingClient:
    """The window's engine."""
    return CallingClient(demo)


async def called_in(desk: Desk, written: str, *, added_tools: Sequence[Tool] = (), switch: str = "use") -> Any:
    """The arguments of the call that the window shows, after the model has written it."""
    desk.parts.services.toolbox.set_added((*desk.parts.services.toolbox.added.value, *added_tools))
    desk.parts.chat.change_settings(msgspec.structs.replace(desk.parts.chat.settings, tools=(switch,)))
    assert isinstance(desk.client, CallingClient)
    desk.client.written = [written]
    desk.send("Go on")
    await desk.until(lambda: desk.has("thread.call.1.0") and desk.find("thread.call.1.0", CallRow).record is not None)
    record = desk.find("thread.call.1.0", CallRow).record
    assert record is not None
    await desk.parts.chat.stop()
    await desk.until(lambda: not desk.parts.chat.busy)
    return json.loads(record.call.arguments_json)


async def called_of_server(desk: Desk, written: str, schema: Any) -> Any:
    """The arguments of a call of a tool of an MCP server that has this schema."""
    server = hostile("given", json.dumps({"use": schema}), name="Given")
    await added(desk.parts.services.mcp, server)
    return await called_in(desk, written, switch=server_switch(server.config.id))


def give_server(schema: Any) -> None:
    """Add an MCP server for the command line, with one tool of this schema."""
    server = hostile("given", json.dumps({"use": schema}), name="Given")
    server_list_file().write(McpServerList(servers=(server.config,)))


def asked(client: FakeEngineClient, tools: str, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> Any:
    """The arguments of the call in the answer of `qwendesk ask --tools`."""
    monkeypatch.setattr(cli_ask, "preferred_client", lambda: ready(client))
    assert cli.main(["ask", "--tools", tools, "--yes", "--json", "Go on"]) == 0
    (turn,) = json.loads(capsys.readouterr().out)["turns"]
    return turn["tool_calls"][0]["arguments"]


EMPTY = {
    "as the template writes it": parameter("old", "") + parameter("new", "x"),
    "on two lines": f"<parameter=old>\n</parameter>\n{parameter('new', 'x')}",
    "on one line": f"<parameter=old></parameter>\n{parameter('new', 'x')}",
    "at the end": f"{parameter('new', 'x')}<parameter=old>\n</parameter>\n",
    "with an empty line after it": f"<parameter=old>\n</parameter>\n\n{parameter('new', 'x')}",
}


@case(EMPTY_TEXT, *SERVER, report="llama.cpp#26763", before="failed")
@case(EMPTY_TEXT, *SERVER, report="sglang#36835", before="failed")
@api
async def test_an_empty_text_is_one(path: str, demo: Demo, tmp_path: Path) -> None:
    both = xml("use", "<parameter=old>\n</parameter>\n", "<parameter=new>\n</parameter>\n")
    client = CallingClient(demo, *(xml("use", each) for each in EMPTY.values()), both)
    *one, all_texts = await called(path, tmp_path, client, *[TWO_TEXTS] * (len(EMPTY) + 1))
    assert dict(zip(EMPTY, one, strict=True)) == {each: {"old": "", "new": "x"} for each in EMPTY}
    assert all_texts == {"old": "", "new": ""}


TEXTS = ["\n", "\n\nx\n\n", " ", "\r\n", "</parameter>", "a\n</parameter>\nb", "</function>\n", "<tool_call>", "x\r"]


@case(EMPTY_TEXT, *SERVER, report="llama.cpp#26763", before="failed")
@pytest.mark.parametrize("dialect", ["xml", "json"])
@api
async def test_a_text_is_read_as_it_was_written(path: str, dialect: CallDialect, demo: Demo, tmp_path: Path) -> None:
    values = [{"old": text, "new": "x"} for text in TEXTS]
    client = CallingClient(demo, *(call_of("use", each, dialect) for each in values), dialect=dialect)
    assert await called(path, tmp_path, client, *[TWO_TEXTS] * len(values)) == values


@case(EMPTY_TEXT, Way.WINDOW, report="llama.cpp#26763", before="failed")
async def test_an_empty_text_is_one_in_the_window(desk: Desk) -> None:
    written = xml("use", "<parameter=old>\n</parameter>\n", parameter("new", "x"))
    assert await called_in(desk, written, added_tools=[tool(TWO_TEXTS)]) == {"old": "", "new": "x"}


@case(EMPTY_TEXT, Way.MCP, report="llama.cpp#26763", before="failed")
async def test_an_empty_text_of_a_servers_tool_is_one(desk: Desk) -> None:
    written = xml("given__use", "<parameter=old>\n</parameter>\n", parameter("new", "x"))
    assert await called_of_server(desk, written, TWO_TEXTS) == {"old": "", "new": "x"}


@case(EMPTY_TEXT, Way.CLI, report="llama.cpp#26763", before="failed")
def test_an_empty_text_is_one_on_the_command_line(demo: Demo, monkeypatch: Any, capsys: Any) -> None:
    client = CallingClient(demo, xml("calculate", "<parameter=expression>\n</parameter>\n"))
    assert asked(client, "calculator", monkeypatch, capsys) == {"expression": ""}


FREE = {"additionalProperties": {"type": "integer"}}
UNIONS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "anyOf": ({"type": "object", "anyOf": [BY_ID, BY_NAME]}, {"name": "a", "exact": True}),
    "oneOf": ({"oneOf": [BY_ID, BY_NAME]}, {"id": 3}),
    "allOf": ({"allOf": [BY_ID, {"$ref": "#/definitions/n"}], "definitions": {"n": BY_NAME}}, {"id": 3, "name": "a"}),
    "$ref": ({"$ref": "#/$defs/by%20name", "$defs": {"by name": BY_NAME}}, {"name": "a"}),
    "if": ({"properties": {"kind": {"enum": ["x", "y"]}}, "if": True, "then": BY_NAME}, {"kind": "x", "name": "a"}),
    "free": ({"type": "object", "additionalProperties": {"type": "integer"}}, {"any name": 3}),
    "patterns": ({"type": "object", "patternProperties": {"^x-": TEXT}, "additionalProperties": False}, {"x-a": "b"}),
    "free beside": ({**BY_ID, "additionalProperties": True}, {"id": 3, "more": {"a": [1]}}),
}
INSIDE: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "allOf": ({"allOf": [{"$ref": "#/$defs/n"}], "description": "One."}, {"name": "a"}),
    "beside": ({"$ref": "#/$defs/n", "description": "One."}, {"name": "a"}),
    "of a property": ({"$ref": "#/properties/first"}, {"id": 1}),
    "of a list": ({"$ref": "#/properties/pair/prefixItems/0"}, {"id": 1}),
    "escaped": ({"$ref": "#/$defs/a~1b~0c"}, {"id": 1}),
    "anchor": ({"$ref": "#there"}, {"id": 1}),
    "recursive": ({"$ref": "#/$defs/tree"}, {"id": 1, "leaves": [{"id": 2, "leaves": []}]}),
    "root": ({"$ref": "#"}, {"first": {"id": 4}}),
}
TREE = {**BY_ID, "properties": {"id": {"type": "integer"}, "leaves": {"items": {"$ref": "#/$defs/tree"}}}}


def around(schema: Any) -> dict[str, Any]:
    """The schema of a tool with a parameter of this schema."""
    here = {"$anchor": "there", **BY_ID}
    properties = {"value": schema, "first": BY_ID, "pair": {"type": "array", "prefixItems": [BY_ID]}}
    definitions = {"n": BY_NAME, "a/b~c": BY_ID, "here": here, "tree": TREE}
    return {"type": "object", "properties": properties, "$defs": definitions}


@case(ROOT_UNION, *SERVER, report="notion-mcp#340", before="failed")
@pytest.mark.parametrize("dialect", ["xml", "json"])
@api
async def test_a_schema_that_is_a_union_can_be_called(
    path: str, dialect: CallDialect, demo: Demo, tmp_path: Path
) -> None:
    client = CallingClient(demo, *(call_of("use", each, dialect) for _, each in UNIONS.values()), dialect=dialect)
    got = await called(path, tmp_path, client, *(schema for schema, _ in UNIONS.values()))
    assert dict(zip(UNIONS, got, strict=True)) == {kind: arguments for kind, (_, arguments) in UNIONS.items()}


@case(ROOT_UNION, *SERVER, report="claude-code#95504", before="failed")
@pytest.mark.parametrize("dialect", ["xml", "json"])
@api
async def test_references_are_followed(path: str, dialect: CallDialect, demo: Demo, tmp_path: Path) -> None:
    values = {kind: {"value": value} for kind, (_, value) in INSIDE.items()}
    client = CallingClient(demo, *(call_of("use", each, dialect) for each in values.values()), dialect=dialect)
    got = await called(path, tmp_path, client, *(around(schema) for schema, _ in INSIDE.values()))
    assert dict(zip(values, got, strict=True)) == values


@case(ROOT_UNION, Way.WINDOW, report="notion-mcp#340", before="failed")
async def test_a_schema_that_is_a_union_can_be_called_in_the_window(desk: Desk) -> None:
    schema, arguments = UNIONS["free beside"]
    assert await called_in(desk, call_of("use", arguments, "xml"), added_tools=[tool(schema)]) == arguments


@case(ROOT_UNION, Way.MCP, report="notion-mcp#340", before="failed")
@pytest.mark.parametrize("kind", ["anyOf", "patterns"])
async def test_a_servers_schema_that_is_a_union_can_be_called(desk: Desk, kind: str) -> None:
    schema, arguments = UNIONS[kind]
    schema = {**schema, "type": "object"}
    assert await called_of_server(desk, call_of("given__use", arguments, "xml"), schema) == arguments


@case(ROOT_UNION, Way.CLI, report="notion-mcp#340", before="failed")
def test_a_schema_that_is_a_union_can_be_called_on_the_command_line(demo: Demo, monkeypatch: Any, capsys: Any) -> None:
    schema, arguments = UNIONS["anyOf"]
    give_server(schema)
    client = CallingClient(demo, call_of("given__use", arguments, "xml"))
    assert asked(client, "mcp:given", monkeypatch, capsys) == arguments


NAMES = [
    "my name",
    'say "x"',
    '"x"',
    "it's",
    "a<b",
    "a>b",
    "<x>",
    "a\nb",
    "",
    " a ",
    "größe",
    "a/b",
    "</parameter>",
    "\\",
]


@case(ODD_NAMES, *SERVER, report="twilio-mcp#55", before="failed")
@pytest.mark.parametrize("dialect", ["xml", "json"])
@api
async def test_any_name_is_written_and_read(path: str, dialect: CallDialect, demo: Demo, tmp_path: Path) -> None:
    values = {name: f"value {number}" for number, name in enumerate(NAMES[:6])}
    schema = {"type": "object", "properties": dict.fromkeys(values, TEXT), "required": list(values)}
    others = {name: number for number, name in enumerate(NAMES[6:])}
    free = {"type": "object", "properties": {each: {"type": "integer"} for each in NAMES[6:10]}, **FREE}
    client = CallingClient(demo, *(call_of("use", each, dialect) for each in (values, others)), dialect=dialect)
    assert await called(path, tmp_path, client, schema, free) == [values, others]


@case(ODD_NAMES, *SERVER, report="n8n#21501", before="failed")
@pytest.mark.parametrize("name", ["my tool", 'a "b"', "it's", "a>b", "<x>"])
def test_any_name_of_a_tool_is_written_and_read(name: str, demo: Demo) -> None:
    definition = json.dumps({"name": name, "parameters": TWO_TEXTS})
    for dialect in ("xml", "json"):
        call = call_of(written_name(name) if dialect == "xml" else name, {"old": "a", "new": "b"}, dialect)
        client = CallingClient(demo, call, dialect=dialect)
        client.generate(Generate(messages=(), tools_json=(definition,)))
        assert client.last_calls == (ToolCall(name, '{"old": "a", "new": "b"}'),)


@case(ODD_NAMES, Way.WINDOW, report="twilio-mcp#55", before="failed")
async def test_any_name_is_written_and_read_in_the_window(desk: Desk) -> None:
    values = dict.fromkeys(NAMES, "x")
    schema = {"type": "object", "properties": dict.fromkeys(NAMES, TEXT), "required": NAMES}
    assert await called_in(desk, call_of("use", values, "xml"), added_tools=[tool(schema)]) == values


@case(ODD_NAMES, Way.MCP, report="twilio-mcp#55", before="failed")
async def test_any_name_of_a_servers_parameters_is_written_and_read(desk: Desk) -> None:
    values = dict.fromkeys(NAMES, "x")
    schema = {"type": "object", "properties": dict.fromkeys(NAMES, TEXT), "required": NAMES}
    assert await called_of_server(desk, call_of("given__use", values, "xml"), schema) == values


@case(ODD_NAMES, Way.CLI, report="twilio-mcp#55", before="failed")
def test_any_name_is_written_and_read_on_the_command_line(demo: Demo, monkeypatch: Any, capsys: Any) -> None:
    give_server({"type": "object", "properties": dict.fromkeys(NAMES, TEXT)})
    client = CallingClient(demo, call_of("given__use", {'say "x"': "1", "a>b": "2"}, "xml"))
    assert asked(client, "mcp:given", monkeypatch, capsys) == {'say "x"': "1", "a>b": "2"}


@case(NOT_CALLABLE, *SERVER, report="notion-mcp#340", before="failed")
@pytest.mark.parametrize("schema", [{"type": "string"}, {"$ref": "#/$defs/nowhere"}, {"$ref": "https://x.example/a"}])
@api
async def test_a_tool_that_cant_be_called_is_refused_by_name(
    path: str, schema: dict[str, Any], demo: Demo, tmp_path: Path
) -> None:
    async with http_desk(tmp_path, client=CallingClient(demo, "never written")) as desk:
        body = request(path, schema)
        assert await desk.status("POST", path, body) == 400
        desk.client.written = ["never written"]
        error = await desk.json("POST", path, body)
        assert 'the tool "use"' in error["error"]["message"]


@case(NOT_CALLABLE, Way.MCP, report="notion-mcp#340", before="failed")
async def test_a_servers_tool_that_cant_be_called_is_named(desk: Desk) -> None:
    schemas = {"list_all": BY_ID, "use_text": {"type": "object", "$ref": "#/$defs/nowhere"}}
    service, server = desk.parts.services.mcp, hostile("given", json.dumps(schemas))
    await added(service, server)
    await until(service, lambda: bool(config(service, server.config.id).offer.tools))

    offer = config(service, server.config.id).offer
    assert [each.name for each in offer.tools] == ["list_all"]
    assert "use_text" in offer_text(offer)


DEMANDS = {
    "/v1/chat/completions": ["required", {"type": "function", "function": {"name": "use"}}],
    "/v1/responses": ["required", {"type": "function", "name": "use"}],
    "/v1/messages": [{"type": "any"}, {"type": "tool", "name": "use"}],
}


@case(MUST_CALL, *SERVER, report="issue 29", before="held")
@pytest.mark.parametrize("stream", [False, True])
@api
async def test_a_demanded_call_of_a_model_without_calls_is_refused(path: str, stream: bool, tmp_path: Path) -> None:
    async with http_desk(tmp_path, client=FakeEngineClient(DEMO_REPORT)) as desk:
        for choice in DEMANDS[path]:
            body = request(path, TWO_TEXTS, tool_choice=choice, stream=stream)
            assert await desk.status("POST", path, body) == 400


@case(MUST_CALL, *SERVER, report="issue 29", before="failed")
def test_a_model_whose_template_has_calls_but_whose_vocabulary_has_no_tags_cant_call(tmp_path: Path) -> None:
    """All three ask the load's report, which has no dialect then: a marker would be spelled out and read as text."""
    original = paths.demo_model().read_bytes()
    other = tmp_path / "other.gguf"
    other.write_bytes(original.replace(b"<tool_call>", b"<tool_cell>").replace(b"</tool_call>", b"</tool_cell>"))
    template = tmp_path / "template.jinja"
    template.write_text(QWEN_LIKE, encoding="utf-8")
    with worker_process() as worker:
        report = worker.load(demo_options(model=str(other), chat_template_file=str(template), vision="off"))
    assert report.template.tools
    assert report.template.call_dialect == ""
