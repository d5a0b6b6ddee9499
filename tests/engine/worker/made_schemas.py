"""Schemas in the shapes that tools of real MCP servers have."""

import random
from typing import Any

_NAMES = (
    "path", "query", "max-lines", "größe", "include.deleted", "it's", 'say "x"', "a b", "a<b", "x>y", "$filter", "",
)  # fmt: skip
_DEFINITIONS: dict[str, Any] = {
    "Colour": {"type": "string", "enum": ["red", "light green", ""]},
    "Point": {"type": "object", "properties": {"x": {"type": "number"}, "note": {"type": "string"}}, "required": ["x"]},
    "a/b~c": {"type": ["integer", "null"]},
    "Tree": {"type": "object", "properties": {"n": {"type": "integer"}, "inner": {"$ref": "#/$defs/Tree"}}},
    "List": {"anyOf": [{"type": "null"}, {"type": "array", "items": {"$ref": "#/$defs/List"}, "maxItems": 2}]},
}
_REFERENCES = ("#/$defs/Colour", "#/$defs/Point", "#/$defs/a~1b~0c", "#/%24defs/Tree", "#/$defs/List")
_PLAIN: tuple[Any, ...] = (
    *({"type": each} for each in ("string", "string", "integer", "boolean", "number", "null")),
    {"type": "string", "maxLength": 5}, {"type": "string", "format": "date"},
    {"type": "string", "pattern": r"^\d{2}\.x$"}, {"type": ["string", "null"]}, {"type": "integer", "nullable": True},
    {"enum": ["a", 1, None, True, "1"]}, {"const": "only"}, {"type": "string", "enum": ["a\nb", '"', "\\", " "]},
    {"type": "integer", "enum": [1, 2]}, {}, True,
)  # fmt: skip


def made_schema(rng: random.Random) -> dict[str, Any]:
    """Return the schema of the arguments of a tool."""
    kind = rng.choice(("plain", "plain", "anyOf", "oneOf", "allOf", "$ref", "free", "patterns", "many", "if"))
    whole: dict[str, Any] = {"type": "object", "$defs": _DEFINITIONS}
    if kind in ("anyOf", "oneOf", "allOf"):
        return {**whole, **_object(rng, 1), kind: [_object(rng, 2) for _ in range(rng.randint(1, 3))]}
    if kind == "$ref":
        return {"$ref": "#/$defs/Arguments", "$defs": {**_DEFINITIONS, "Arguments": _object(rng, 2)}}
    if kind == "free":
        return {
            **whole,
            **_object(rng, 1),
            "additionalProperties": rng.choice((True, {"type": "integer"}, _schema(rng, 1))),
        }
    if kind == "patterns":
        return {**whole, "patternProperties": {"^x-": _schema(rng, 1)}, "additionalProperties": False}
    if kind == "many":
        names = [f"parameter_{number}" for number in range(40)]
        return {
            **whole,
            "properties": {name: _schema(rng, 0) for name in names},
            "required": names[: rng.randint(0, 20)],
        }
    if kind == "if":
        return {**whole, **_object(rng, 1), "if": _object(rng, 1), "then": _object(rng, 1), "else": _object(rng, 1)}
    return {**whole, **_object(rng, 3)}


def _object(rng: random.Random, depth: int) -> dict[str, Any]:
    names = rng.sample(_NAMES, rng.randint(0, 4))
    required = [name for name in names if rng.random() < 0.6]
    closed = {"additionalProperties": False} if rng.random() < 0.3 else {}
    properties = {name: _schema(rng, depth - 1) for name in names}
    return {"type": "object", "properties": properties, "required": required, **closed}


def _schema(rng: random.Random, depth: int) -> Any:
    if depth <= 0 or rng.random() < 0.4:
        return rng.choice(_PLAIN)
    match rng.choice(("object", "array", "anyOf", "allOf", "$ref", "tuple")):
        case "object":
            return _object(rng, depth)
        case "array":
            return {"type": "array", "items": _schema(rng, depth - 1), "maxItems": 3}
        case "tuple":
            return {"type": "array", "prefixItems": [_schema(rng, 0), _schema(rng, 0)], "minItems": rng.randint(0, 2)}
        case "anyOf":
            return {"anyOf": [_schema(rng, depth - 1), {"type": "null"}]}
        case "allOf":
            return {"allOf": [{"$ref": rng.choice(_REFERENCES)}], "description": "One."}
    return {"$ref": rng.choice(_REFERENCES), "description": "One."}
