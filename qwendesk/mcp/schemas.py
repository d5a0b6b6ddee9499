"""Makes the schema of a server's tool safe to use: to turn into a grammar, and to check arguments with.

A schema is text of others. It could refer to addresses in the network, refer to itself without end, or hold a pattern
on which Python's regular expressions work for years.
"""

from collections.abc import Mapping
from typing import Any

from qwendesk.core.json_schema import SchemaReferences

# Schemas in a schema, with references written out.
MOST_NODES = 2000
_DEEPEST = 24
# Larger bounds of lengths are dropped: a grammar writes each repetition out. The server checks them.
_MOST_REPEATED = 1000
_ONE = ("not", "if", "then", "else", "items", "contains", "additionalProperties", "propertyNames", "unevaluatedItems")
_MANY = ("allOf", "anyOf", "oneOf", "prefixItems")
_NAMED = ("properties", "dependentSchemas")
# Kept as they are. `format` is not checked by our validator, and describes the value to the model.
_PLAIN = (
    "type", "enum", "const", "description", "title", "default", "examples", "required", "minimum", "maximum",
    "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "dependentRequired", "format", "deprecated",
)  # fmt: skip
_BOUNDS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")


class TooLarge(Exception):
    """A schema with too many parts."""


def usable_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema of an object that has no references, no patterns and no keywords that we don't know.

    What it leaves out allows more, never less: the server checks its arguments itself. Raises TooLarge.
    """
    usable = _Writer(schema).write(schema, (), 0)
    return {**(usable if isinstance(usable, dict) else {}), "type": "object"}


class _Writer:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._references, self._left = SchemaReferences(root), MOST_NODES

    def write(self, schema: Any, references: tuple[str, ...], depth: int) -> Any:
        """Return `schema` with its references written out; one into itself allows anything."""
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, Mapping) or depth > _DEEPEST:
            return {}
        self._left -= 1
        if self._left < 0:
            raise TooLarge
        reference = schema.get("$ref")
        if isinstance(reference, str):
            return self._written_out(reference, schema, references, depth)
        written = {key: schema[key] for key in _PLAIN if key in schema}
        written |= {key: schema[key] for key in _BOUNDS if _is_small(schema.get(key))}
        if schema.get("nullable") is True and isinstance(schema.get("type"), str):
            written["type"] = [schema["type"], "null"]
        if isinstance(schema.get("patternProperties"), Mapping):
            schema = {**schema, "additionalProperties": _any_of_patterns(schema)}
        if isinstance(schema.get("items"), list):
            schema = {**schema, "prefixItems": schema["items"], "items": schema.get("additionalItems", True)}
        for key in _ONE:
            if key in schema:
                written[key] = self.write(schema[key], references, depth + 1)
        for key in _MANY:
            if isinstance(schema.get(key), list):
                written[key] = [self.write(each, references, depth + 1) for each in schema[key]]
        for key in _NAMED:
            if isinstance(schema.get(key), Mapping):
                named = schema[key].items()
                written[key] = {name: self.write(each, references, depth + 1) for name, each in named}
        return {key: value for key, value in written.items() if _is_well_formed(key, value)}

    def _written_out(self, reference: str, schema: Mapping[str, Any], references: tuple[str, ...], depth: int) -> Any:
        """Return what a reference leads to, together with what stands beside it."""
        beside = self.write({key: value for key, value in schema.items() if key != "$ref"}, references, depth)
        if reference in references:
            return beside
        target = self.write(self._references.find(reference), (*references, reference), depth + 1)
        if not beside or not isinstance(target, dict):
            return target
        if not target.keys() & (beside.keys() - {"title", "description", "default"}):
            return {**target, **beside}
        return {"allOf": [target, beside]}


def _any_of_patterns(schema: Mapping[str, Any]) -> Any:
    """Return a schema of the properties that have no name of their own, without the patterns of their names."""
    more = schema.get("additionalProperties", False)
    schemas = [*schema["patternProperties"].values(), *([more] if more is not False else [])]
    return {"anyOf": schemas} if schemas else more


def _is_small(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST_REPEATED


_TYPES = {"string", "number", "integer", "boolean", "object", "array", "null"}


def _is_well_formed(key: str, value: Any) -> bool:
    """Return whether our validator can work with this keyword; servers write schemas by hand."""
    match key:
        case "type":
            names = value if isinstance(value, list) else [value]
            return bool(names) and all(isinstance(name, str) and name in _TYPES for name in names)
        case "enum":
            return isinstance(value, list) and bool(value)
        case "required":
            return isinstance(value, list) and all(isinstance(name, str) for name in value)
        case "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "multipleOf":
            return isinstance(value, int | float) and not isinstance(value, bool) and value > 0
        case "allOf" | "anyOf" | "oneOf":
            return bool(value)
        case "dependentRequired":
            return isinstance(value, Mapping) and all(isinstance(each, list) for each in value.values())
        case "title" | "description" | "format":
            return isinstance(value, str)
        case _:
            return True
