"""The tools of a request: their names and parameters, read from definitions in the form of OpenAI's API."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from qwendesk.core.errors import BadRequest
from qwendesk.core.json_decoding import decode_json
from qwendesk.core.translation import mark

JSON_TYPES = frozenset(("string", "number", "integer", "boolean", "object", "array", "null"))
_PYTHON_TYPES: Mapping[type, str] = {
    str: "string", bool: "boolean", int: "integer", float: "number", dict: "object", list: "array", type(None): "null",
}  # fmt: skip
_MOST_REFERENCES = 16
"""A schema that refers to others in a longer chain counts as one that allows everything."""


class Parameter(msgspec.Struct, frozen=True):
    name: str
    schema: Any
    """JSON schema of the value, as it came."""
    types: frozenset[str]
    """Which of JSON_TYPES a value may have."""
    required: bool

    @property
    def is_text(self) -> bool:
        """Whether a value is always a string, so that it is written as it is."""
        return self.types == {"string"}


class Tool(msgspec.Struct, frozen=True):
    name: str
    schema: Mapping[str, Any]
    """JSON schema of the object of arguments."""
    parameters: tuple[Parameter, ...]

    def parameter(self, name: str) -> Parameter | None:
        return next((each for each in self.parameters if each.name == name), None)


def read_tools(tools_json: Sequence[str]) -> dict[str, Tool]:
    """Return the tools by name. Raise BadRequest for a definition that has no name or is not a JSON object."""
    return {tool.name: tool for tool in map(_tool, tools_json)}


def _tool(text: str) -> Tool:
    try:
        definition = decode_json(text)
    except msgspec.DecodeError:
        definition = None
    function = definition.get("function", definition) if isinstance(definition, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    if not isinstance(function, dict) or not isinstance(name, str) or not name:
        raise BadRequest(mark("Invalid tool"), mark("A tool's definition is not a JSON object with a name."))
    schema = function.get("parameters")
    schema = schema if isinstance(schema, dict) else {}
    properties, required = schema.get("properties"), schema.get("required")
    properties = properties if isinstance(properties, dict) else {}
    required = required if isinstance(required, list) else []
    parameters = (
        Parameter(each, value, value_types(value, schema), each in required) for each, value in properties.items()
    )
    return Tool(name, schema, tuple(parameters))


def value_types(schema: Any, root: Mapping[str, Any]) -> frozenset[str]:
    """Return which of JSON_TYPES a value of `schema` may have. `root` is where its references point into."""
    return frozenset(_types(schema, root, _MOST_REFERENCES)) or JSON_TYPES


def _types(schema: Any, root: Mapping[str, Any], references_left: int) -> Iterator[str]:
    if not isinstance(schema, dict) or not references_left:
        yield from JSON_TYPES
        return
    if "$ref" in schema:
        yield from _types(referred_to(schema["$ref"], root), root, references_left - 1)
        return
    for choice in ("anyOf", "oneOf"):
        if isinstance(schema.get(choice), list):
            for each in schema[choice]:
                yield from _types(each, root, references_left - 1)
            return
    given = schema.get("type")
    if isinstance(given, str | list):
        names = [given] if isinstance(given, str) else given
        yield from JSON_TYPES.intersection(name for name in names if isinstance(name, str))
        return
    values = schema["enum"] if isinstance(schema.get("enum"), list) else [schema["const"]] if "const" in schema else []
    yield from (_PYTHON_TYPES[type(value)] for value in values)
    if not values:
        yield from JSON_TYPES


def referred_to(reference: Any, root: Mapping[str, Any]) -> Any:
    """Return the part of `root` that a reference such as "#/$defs/Size" names; None if there is none."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    found: Any = root
    for key in reference[1:].split("/")[1:]:
        if not isinstance(found, dict):
            return None
        found = found.get(key.replace("~1", "/").replace("~0", "~"))
    return found


def has_type(value: Any, types: frozenset[str]) -> bool:
    """Return whether a JSON value has one of `types`. A whole number is a number too."""
    name = _PYTHON_TYPES[type(value)]
    return name in types or (name == "integer" and "number" in types)


def typed_value(text: str, parameter: Parameter | None) -> Any:
    """Return the value of an argument: `text` itself, or what it says as JSON where the schema wants that.

    A text that is no JSON of an allowed type stays a text; checking it against the schema is left to others.
    """
    if parameter is not None and parameter.is_text:
        return text
    try:
        value = decode_json(text)
    except msgspec.DecodeError:
        return {"True": True, "False": False, "None": None}.get(text.strip(), text) if parameter else text
    if parameter is None:
        return value if isinstance(value, dict | list | bool | int | float) else text
    return value if has_type(value, parameter.types) or "string" not in parameter.types else text


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
