"""Calls are read as they were meant, whole or damaged."""

import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qwendesk.core.errors import BadRequest
from qwendesk.core.json_schema import SchemaReader
from qwendesk.core.messages import ToolCall
from qwendesk.engine.worker.call_grammar import CallDialect
from qwendesk.engine.worker.call_parser import CallStream, parse_call
from qwendesk.engine.worker.tools import read_tools
from tests.engine.worker.made_calls import TOOLS, calls, written

DIALECTS: tuple[CallDialect, ...] = ("xml", "json")
EDIT = {"path": "a.txt", "old": "one\ntwo", "new": "three"}


def parsed(text: str) -> tuple[str, Any] | None:
    call = parse_call(text, TOOLS)
    return call and (call.name, json.loads(call.arguments_json))


@given(calls(), st.sampled_from(DIALECTS))
def test_whole_calls_are_read(call: tuple[str, dict[str, Any]], dialect: CallDialect) -> None:
    assert parsed(written(*call, dialect)) == call


@given(calls(), st.sampled_from(DIALECTS), st.integers(0, 10**6))
def test_streamed_pieces_are_the_arguments(call: tuple[str, dict[str, Any]], dialect: CallDialect, seed: int) -> None:
    stream, rng, text = CallStream(TOOLS), random.Random(seed), written(*call, dialect)
    names, pieces, at = [], [], 0
    while at < len(text):
        length = rng.randint(1, 7)
        piece = stream.feed(text[at : at + length])
        names.append(piece.name)
        pieces.append(piece.arguments)
        at += length
    assert stream.is_whole
    assert ("".join(names), json.loads("".join(pieces))) == call


DAMAGES: dict[str, tuple[str, str]] = {
    "no </parameter>": ("\n</parameter>\n<parameter=old>", "\n<parameter=old>"),
    "no last </parameter>": ("\n</parameter>\n</function>", "\n</function>"),
    "no </function>": ("</function>\n", ""),
    "second </tool_call>": ("</function>", "</function>\n</tool_call>"),
    "no line break": ("<function=edit_file>\n", "<function=edit_file>"),
    "quotes": ("<function=edit_file>", '<function="edit_file">'),
    "spaces": ("<parameter=old>", "<parameter = old>"),
    "indented": ("\n<function", "\n  <function"),
    "text before": ("\n<function", "I will edit it.\n<function"),
}
"""What is replaced by what."""


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_xml_is_read_as_it_was_meant(damage: str) -> None:
    whole = written("edit_file", EDIT, "xml")
    damaged = whole.replace(*DAMAGES[damage])
    assert damaged != whole
    assert parsed(damaged) == ("edit_file", EDIT)


_ARGUMENTS = r'{"path": "a.txt", "old": "one\ntwo", "new": "three"}'
_CALL = f'{{"name": "edit_file", "arguments": {_ARGUMENTS}}}'
JSON_DAMAGES = {
    "no last brace": _CALL[:-1],
    "cut in a string": _CALL[:-3],
    "comma": _CALL.replace('"three"', '"three",'),
    "line break": _CALL.replace("\\n", "\n"),
    "parameters": _CALL.replace("arguments", "parameters"),
    "python": _CALL.replace('"', "'"),
    "as a string": json.dumps({"name": "edit_file", "arguments": _ARGUMENTS}),
    "as in an API": f'{{"type": "function", "function": {_CALL}}}',
    "fence": f"```json\n{_CALL}\n```",
    "between XML tags": f"<function=edit_file>\n{_ARGUMENTS}\n</function>",
    "beside the name": _ARGUMENTS.replace("{", '{"name": "edit_file", '),
}


@pytest.mark.parametrize("damage", JSON_DAMAGES)
def test_damaged_json_is_read_as_it_was_meant(damage: str) -> None:
    assert parsed(JSON_DAMAGES[damage]) == ("edit_file", EDIT)


def test_strings_may_hold_tags_and_what_looks_like_json() -> None:
    arguments = {"path": "</parameter>", "old": "<parameter=new>\n{}", "new": '{"name": "x"}\n</function> end'}
    assert parsed(written("edit_file", arguments, "xml")) == ("edit_file", arguments)


def test_values_have_the_types_of_the_schema() -> None:
    arguments = {"words": ["1"], "exact": True, "where": {"city": "Rome"}, "limit": None, "note": "12"}
    assert parsed(written("search", arguments, "xml")) == ("search", arguments)
    text = written("search", {"words": "not JSON", "exact": "True"}, "xml")
    assert parsed(text) == ("search", {"words": "not JSON", "exact": True})


def test_unknown_tools_are_calls_too() -> None:
    text = "<function=fly>\n<parameter=to>\nMars\n</parameter>\n<parameter=speed>\n3\n</parameter>\n</function>"
    assert parse_call(text, TOOLS) == ToolCall("fly", '{"to": "Mars", "speed": 3}')


@pytest.mark.parametrize("text", ["", "just text", "{}", "{'a': 1", '{"arguments": {}}', "[1, 2]", "{" * 3000])
def test_what_is_no_call_is_none(text: str) -> None:
    assert parse_call(text, TOOLS) is None


@given(st.text())
def test_no_text_makes_the_parser_or_the_stream_fail(text: str) -> None:
    for prefix in ("", "<function=edit_file>\n<parameter=line>\n", '{"name": "search", "arguments": '):
        parse_call(prefix + text, TOOLS)
        CallStream(TOOLS).feed(prefix + text)


@pytest.mark.parametrize(
    ("schema", "types"),
    [
        ({"type": "string"}, {"string"}),
        ({"type": ["string", "null"]}, {"string", "null"}),
        ({"enum": ["a", 1]}, {"string", "integer"}),
        ({"const": True}, {"boolean"}),
        ({"oneOf": [{"type": "number"}, {"$ref": "#/$defs/A"}]}, {"number", "array"}),
        ({"$ref": "#/$defs/Loop"}, {"string", "number", "integer", "boolean", "object", "array", "null"}),
        ({}, {"string", "number", "integer", "boolean", "object", "array", "null"}),
        ("nonsense", {"string", "number", "integer", "boolean", "object", "array", "null"}),
    ],
)
def test_types_of_a_schema(schema: Any, types: set[str]) -> None:
    root = {"$defs": {"A": {"type": "array"}, "Loop": {"$ref": "#/$defs/Loop"}}}
    assert SchemaReader(root).types(schema) == types


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"function": {}}', '{"name": 3}', "{" * 5000])
def test_definitions_without_a_name_are_refused(text: str) -> None:
    with pytest.raises(BadRequest):
        read_tools([text])
