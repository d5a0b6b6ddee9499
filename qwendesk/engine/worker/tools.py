"""The tools of a request: their names and parameters, read from definitions in the form of OpenAI's API."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from qwendesk.core.errors import BadRequest
from qwendesk.core.grammar_bounds import check_tools_bounds
from qwendesk.core.json_decoding import decode_json
from qwendesk.core.json_schema import Form, SchemaReader, has_type
from qwendesk.core.translation import mark

_NO_PARAMETERS: Mapping[str, Any] = {"type": "object", "properties": {}}
_PYTHON_NAMES: Mapping[str, Any] = {"true": True, "false": False, "null": None}
# Characters of a Python literal that is read: Python's parser needs 100 times as many bytes.
_MOST_LITERAL = 100_000


class Parameter(msgspec.Struct, frozen=True):
    name: str
    schema: Any
    """JSON schema of the value, as it came."""
    types: frozenset[str]
    """Those of JSON_TYPES that a value may have."""
    required: bool

    @property
    def is_text(self) -> bool:
        """Whether a value is always a string, so that it is written as it is."""
        return self.types == {"string"}


class CallableTool(msgspec.Struct, frozen=True):
    name: str
    schema: Mapping[str, Any]
    """JSON schema of the object of arguments."""
    arguments: Form
    """Content of that schema."""
    parameters: tuple[Parameter, ...]
    others: Parameter | None = None
    """Schema of parameters with other names; None if there are none."""

    def parameter(self, name: str) -> Parameter | None:
        return next((each for each in self.parameters if each.name == name), self.others)


def read_tools(tools_json: Sequence[str]) -> dict[str, CallableTool]:
    """Return the tools by name.

    Raise BadRequest for a definition that has no name, is not a JSON object, or has arguments that no call can have.
    """
    schemas = dict(map(_name_and_schema, tools_json))
    check_tools_bounds(schemas)
    return {name: _tool(name, schema) for name, schema in schemas.items()}


def _name_and_schema(text: str) -> tuple[str, Mapping[str, Any]]:
    try:
        definition = decode_json(text)
    except msgspec.DecodeError:
        definition = None
    function = definition.get("function", definition) if isinstance(definition, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    if not isinstance(function, dict) or not isinstance(name, str) or not name:
        raise BadRequest(mark("Invalid tool"), mark("A tool's definition is not a JSON object with a name."))
    schema = function.get("parameters")
    return name, schema if isinstance(schema, dict) and schema else _NO_PARAMETERS


def _tool(name: str, schema: Mapping[str, Any]) -> CallableTool:
    reader = SchemaReader(schema)
    arguments = reader.arguments()
    if arguments is None:
        if reader.lost_references:
            sentence = mark('The parameters of the tool "{0}" refer to "{1}", which is not in their schema.')
            raise BadRequest(mark("Invalid tool"), sentence, name, reader.lost_references[0])
        raise BadRequest(mark("Invalid tool"), mark('The parameters of the tool "{0}" are not a JSON object.'), name)

    def parameter(each: str, value: Any) -> Parameter:
        return Parameter(each, value, reader.types(value), each in arguments.required)

    parameters = tuple(parameter(each, value) for each, value in arguments.all_properties.items())
    return CallableTool(name, schema, arguments, parameters, parameter("", arguments.free) if arguments.free else None)


def typed_value(text: str, parameter: Parameter | None) -> Any:
    """Return the value of an argument: `text` itself, or what it says as JSON where the schema wants that.

    A text that is no JSON of an allowed type stays a text; checking it against the schema is left to others.
    """
    if parameter is not None and parameter.is_text:
        return text
    try:
        value = decode_json(text)
    except msgspec.DecodeError:
        if parameter is None or ("string" in parameter.types and text.strip() not in ("True", "False", "None")):
            return text
        value = python_value(text)
        return value if has_type(value, parameter.types) else text
    if parameter is None:
        return value if isinstance(value, dict | list | bool | int | float) else text
    if "string" not in parameter.types:
        return value
    return value if has_type(value, parameter.types) and not isinstance(value, str) else text


def python_value(text: str) -> Any:
    """Return what `text` says as a literal of Python, which models write in place of JSON; else `text` itself."""
    if len(text) > _MOST_LITERAL:
        return text
    try:
        return _literal(ast.parse(text.strip(), mode="eval").body)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return text


def _literal(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=str() | bool() | int() | float() | None as value):
            return value
        case ast.Name(id=name) if name in _PYTHON_NAMES:
            return _PYTHON_NAMES[name]
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_literal(item) for item in items]
        case ast.Dict(keys=keys, values=values):
            return {_key(key): _literal(value) for key, value in zip(keys, values, strict=True)}
    raise ValueError


def _key(node: ast.expr | None) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    raise ValueError


def as_json(value: Any) -> str:
    """Return JSON with all characters as they are, except half characters (lone surrogates), which are escaped."""
    text = json.dumps(value, ensure_ascii=False)
    return text if text.isascii() or _can_be_encoded(text) else json.dumps(value)


def _can_be_encoded(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
