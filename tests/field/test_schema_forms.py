"""Schemas as clients, servers and generators of code write them: patterns, listed values, long numbers, references."""

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from PySide6.QtWidgets import QPlainTextEdit

from qwendesk.chat.chat_settings import usable_settings
from qwendesk.chat.tree_edits import new_id
from qwendesk.cli import ask as cli_ask
from qwendesk.cli import main as cli
from qwendesk.core.chats import ChatSettings, ChatSummary
from qwendesk.core.conversation import ChatTree
from qwendesk.engine.protocol import Generate
from qwendesk.engine.worker.call_grammar import CallDialect
from qwendesk.engine.worker.model import LoadedModel, first_bytes_of
from qwendesk.engine.worker.sampling import TokenGrammar
from qwendesk.engine.worker.schema_grammar import json_grammar
from tests.chat.exchange.kit import Kit
from tests.engine.worker.conftest import Demo, open_demo
from tests.fakes.engine import FakeEngineClient, ready
from tests.field.calling import CallingClient, call_of
from tests.field.grid import SERVER, Kind, Way, case
from tests.field.test_tool_calls import api, asked, called, called_of_server, client, give_server
from tests.mcp.conftest import no_keyring
from tests.server.http_desk import http_desk
from tests.store.chat_nodes import node
from tests.window_desk import Desk

__all__ = ["client", "no_keyring"]

PATTERNS = Kind(
    "A pattern of a schema refuses the whole request, or lets JSON through that is none",
    {Way.MCP: "patterns are left out of servers' schemas, see mcp/host/offers.py"},
)
LISTED = Kind("A value that isn't listed is written where the list is behind references")
_TYPED = "whoever typed it is told that the list is empty"
NONE_LISTED = Kind(
    "An empty list of values, as a server has that found nothing to list, refuses every request",
    dict.fromkeys((Way.WINDOW, Way.CLI, Way.IMPORT), _TYPED),
)
LONG_NUMBERS = Kind("A number with more than 16 digits, such as an id, is cut off and goes out as good")

COLOURS = {"enum": ["red", "dark red"], "type": "string"}
BEHIND = {
    "direct": {"$ref": "#/$defs/Colour"},
    "in allOf": {"allOf": [{"$ref": "#/$defs/Colour"}], "description": "Which one."},
    "or null": {"anyOf": [{"$ref": "#/$defs/Colour"}, {"type": "null"}], "default": None},
    "behind another": {"$ref": "#/$defs/Chosen"},
    "of a list": {"type": "array", "items": {"$ref": "#/$defs/Chosen"}, "minItems": 1},
    "of an object": {"$ref": "#/$defs/Brush"},
}
DEFINITIONS = {
    "Colour": COLOURS,
    "Chosen": {"$ref": "#/$defs/Colour"},
    "Brush": {"type": "object", "properties": {"colour": {"$ref": "#/$defs/Chosen"}}, "required": ["colour"]},
}


def of(schema: Any) -> dict[str, Any]:
    """The schema of an object with one value."""
    return {"type": "object", "properties": {"v": schema}, "required": ["v"], "$defs": DEFINITIONS}


def coloured(kind: str, colour: str) -> dict[str, Any]:
    return {"v": {"of a list": [colour], "of an object": {"colour": colour}}.get(kind, colour)}


ADDRESSES: list[tuple[str, dict[str, Any]]] = [
    ("colour.json", {"$id": "https://x.example/s/root.json", "inner": {"$id": "colour.json"}}),
    ("https://x.example/s/colour.json", {"$id": "https://x.example/s/root.json", "inner": {"$id": "colour.json"}}),
    ("https://x.example/s#/$defs/here", {"$id": "https://x.example/s#", "inner": {}}),
    ("root.json#/$defs/here", {"$id": "https://x.example/s/root.json", "inner": {}}),
    ("#colour", {"inner": {"$id": "#colour"}}),
    ("#colour", {"inner": {"id": "#colour"}}),
    ("http://[", {"inner": {"$id": "http://["}}),
]


def document(reference: str, inner: Any, **more: Any) -> dict[str, Any]:
    """The schema of an object with one colour, which stands at an address of its own."""
    value = {"$ref": reference}
    here = {"here": {**COLOURS, **inner}}
    return {"type": "object", "properties": {"v": value}, "required": ["v"], "$defs": here, **more}


Forms = list[tuple[dict[str, Any], list[Any], list[Any]]]
"""Schemas, with values that they allow and such that they don't."""
FORMS: dict[str, Forms] = {
    "patterns": [
        (of({"type": "string", "pattern": pattern}), [{"v": each} for each in valid], [{"v": each} for each in invalid])
        for pattern, valid, invalid in (
            ("^a|b$", ["a", "b"], ["c"]),
            ("^GET$|^POST$", ["GET", "POST"], ["GET$", "PUT"]),
            (r"^https?:\/\/", ["https://x.example/?q=1"], ["ftp://x"]),
            (r"\S", ["x"], [" "]),
            ("^[a-zA-Z0-9_-]{1,512}$", ["a-b", "x" * 512], ["", "a b"]),
            ("^[ -~]*$", ["plain text"], ["größe"]),
        )
    ],
    "listed": [
        *((document(each, **more), [{"v": "red"}], [{"v": "blue"}]) for each, more in ADDRESSES),
        *(
            (
                of(each),
                [coloured(kind, "red"), coloured(kind, "dark red")],
                [coloured(kind, "blue"), coloured(kind, "")],
            )
            for kind, each in BEHIND.items()
        ),
    ],
    "none listed": [(of({"type": "string", "enum": []}), [{"v": "anything"}], [{"v": 5}])],
    "long numbers": [
        (of({"type": "integer"}), [{"v": 1497549923779084388}, {"v": -(2**63)}, {"v": 2**256 - 1}], [{"v": 0.5}]),
        (of({"type": "number"}), [{"v": 0.30000000000000004}, {"v": 725653563933458432.5}, {"v": 10**30}], []),
    ],
}


BY_HAND = ("patterns", "listed", "long numbers")


@pytest.fixture(scope="module")
def demo() -> Iterator[Demo]:
    with open_demo() as demo:
        yield demo


def check(demo: Demo, schemas: list[str], forms: Forms) -> None:
    """Check that the grammars which the engine makes of the schemas allow what they should."""
    assert len(schemas) == len(forms)
    model = cast("LoadedModel", SimpleNamespace(vocab=demo.vocab, first_bytes=first_bytes_of(demo.vocab)))
    for text, (schema, valid, invalid) in zip(schemas, forms, strict=True):
        for value in (*valid, *invalid):
            grammar = TokenGrammar(model, json_grammar(text))
            tokens = demo.tokenize(json.dumps(value, ensure_ascii=False), parse_special=False)
            is_allowed = all(grammar.allows(token) and grammar.accept(token) is None for token in tokens)
            assert is_allowed == (value in valid), (schema, value)
            grammar.close()


def schemas_of(client: FakeEngineClient) -> list[str]:
    """The schemas of the answers that were asked for."""
    return [each.options.json_schema for each in client.asked]


def body_of(path: str, schema: Any) -> dict[str, Any]:
    question = [{"role": "user", "content": "Go on"}]
    if path.endswith("responses"):
        return {"input": question, "text": {"format": {"type": "json_schema", "name": "x", "schema": schema}}}
    if path.endswith("messages"):
        form = {"type": "json_schema", "schema": schema}
        return {"messages": question, "max_tokens": 99, "output_config": {"format": form}}
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    return {"messages": question, "response_format": form}


@case(PATTERNS, *SERVER, report="llama.cpp#9903", before="failed")
@case(PATTERNS, *SERVER, report="llama.cpp#26930", before="failed")
@case(NONE_LISTED, *SERVER, report="xgrammar#639", before="failed")
@case(LONG_NUMBERS, *SERVER, report="powercontext#1098", before="failed")
@pytest.mark.parametrize("kind", ["patterns", "none listed", "long numbers"])
@api
async def test_an_answer_by_a_schema(path: str, kind: str, demo: Demo, tmp_path: Path) -> None:
    await answers_follow(path, kind, demo, tmp_path)


@case(LISTED, *SERVER, report="llama.cpp#14227", before="failed")
@api
async def test_an_answer_has_a_listed_value(path: str, demo: Demo, tmp_path: Path) -> None:
    await answers_follow(path, "listed", demo, tmp_path)


async def answers_follow(path: str, kind: str, demo: Demo, folder: Path) -> None:
    async with http_desk(folder) as desk:
        for schema, _, _ in FORMS[kind]:
            assert await desk.status("POST", path, body_of(path, schema)) == 200
        check(demo, schemas_of(desk.client), FORMS[kind])


@case(NONE_LISTED, *SERVER, report="xgrammar#639", before="failed")
@case(LONG_NUMBERS, *SERVER, report="powercontext#1098", before="failed")
@case(PATTERNS, *SERVER, report="llama.cpp#27580", before="failed")
@pytest.mark.parametrize("dialect", ["xml", "json"])
@pytest.mark.parametrize("kind", FORMS)
@api
async def test_a_call_by_a_schema(path: str, kind: str, dialect: CallDialect, demo: Demo, tmp_path: Path) -> None:
    calls = [(schema, value) for schema, valid, _ in FORMS[kind] for value in valid]
    writing = CallingClient(demo, *(call_of("use", value, dialect) for _, value in calls), dialect=dialect)
    got = await called(path, tmp_path, writing, *(schema for schema, _ in calls))
    assert got == [value for _, value in calls]


@case(LISTED, *SERVER, report="llama.cpp#14227", before="failed")
@pytest.mark.parametrize("dialect", ["xml", "json"])
def test_a_call_with_a_value_that_isnt_listed_cant_be_written(dialect: CallDialect, demo: Demo) -> None:
    for schema, _, invalid in FORMS["listed"]:
        for value in invalid:
            with pytest.raises(AssertionError, match="the grammar stops"):
                CallingClient(demo, call_of("use", value, dialect), dialect=dialect).generate(
                    Generate(messages=(), tools_json=(json.dumps({"name": "use", "parameters": schema}),))
                )


@case(PATTERNS, Way.CLI, report="llama.cpp#9903", before="failed")
@case(LONG_NUMBERS, Way.CLI, report="powercontext#1098", before="failed")
@case(LISTED, Way.CLI, report="llama.cpp#14227", before="failed")
@pytest.mark.parametrize("kind", BY_HAND)
def test_an_answer_by_a_schema_on_the_command_line(kind: str, demo: Demo, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeEngineClient()
    monkeypatch.setattr(cli_ask, "preferred_client", lambda: ready(fake))
    for schema, _, _ in FORMS[kind]:
        assert cli.main(["ask", "--set", f"json_schema={json.dumps(schema)}", "Go on"]) == 0
    check(demo, schemas_of(fake), FORMS[kind])


@case(PATTERNS, Way.WINDOW, report="llama.cpp#9903", before="failed")
@case(LONG_NUMBERS, Way.WINDOW, report="powercontext#1098", before="failed")
@case(LISTED, Way.WINDOW, report="llama.cpp#14227", before="failed")
async def test_an_answer_by_a_schema_in_the_window(desk: Desk, demo: Demo) -> None:
    desk.window.findChild(object, "action.inspector").trigger()
    desk.click("inspector.tab.system")
    forms = [each for kind in BY_HAND for each in FORMS[kind]]
    for number, (schema, _, _) in enumerate(forms):
        desk.find("inspector.system.schema", QPlainTextEdit).setPlainText(json.dumps(schema))
        assert desk.parts.chat.settings.json_schema, schema
        desk.send("Go on")
        await desk.until(lambda: len(schemas_of(desk.client)) > number and not desk.parts.chat.busy)  # noqa: B023
    check(demo, schemas_of(desk.client), forms)


@case(PATTERNS, Way.IMPORT, report="llama.cpp#9903", before="failed")
@case(LONG_NUMBERS, Way.IMPORT, report="powercontext#1098", before="failed")
@case(LISTED, Way.IMPORT, report="llama.cpp#14227", before="failed")
async def test_an_answer_by_a_schema_of_an_imported_chat(demo: Demo, tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "other").mkdir()
    kit, other = await Kit(tmp_path / "one").start(), await Kit(tmp_path / "other").start()
    forms = {json.dumps(each[0]): each for kind in BY_HAND for each in FORMS[kind]}
    settings = [ChatSettings(json_schema=text) for text in forms]
    chats = [(ChatSummary(id=new_id(), settings=each), ChatTree().with_node(node("q"))) for each in settings]
    await kit.chat_list.add_chats(chats)
    await kit.exchange.export(tmp_path / "all.json", "json")
    await other.exchange.import_from(tmp_path / "all.json")

    imported = [usable_settings(each.settings).json_schema for each in other.chat_list.chats.summaries.values()]
    check(demo, imported, [forms[text] for text in imported])
    await kit.chat_list.close()
    await other.chat_list.close()


@case(LONG_NUMBERS, Way.MCP, report="powercontext#1098", before="failed")
@case(NONE_LISTED, Way.MCP, report="xgrammar#639", before="held")
@case(LISTED, Way.MCP, report="llama.cpp#14227", before="held")
@pytest.mark.parametrize("kind", ["none listed", "long numbers", "listed"])
async def test_a_call_of_a_servers_tool_by_a_schema(desk: Desk, kind: str) -> None:
    schema, (value, *_), _ = FORMS[kind][-1]
    assert await called_of_server(desk, call_of("given__use", value, "xml"), schema) == value


@case(LONG_NUMBERS, Way.MCP, report="powercontext#1098", before="failed")
def test_a_call_of_a_servers_tool_on_the_command_line(demo: Demo, monkeypatch: Any, capsys: Any) -> None:
    give_server(of({"type": "integer"}))
    writing = CallingClient(demo, call_of("given__use", {"v": 1497549923779084388}, "xml"))
    assert asked(writing, "mcp:given", monkeypatch, capsys) == {"v": 1497549923779084388}
