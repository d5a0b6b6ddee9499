"""Makes the schema of a server's tool safe to use: to turn into a grammar, and to check arguments with.

A schema is text of others. It could refer to addresses in the network, refer to itself without end, or hold a pattern
on which Python's regular expressions work for years.
"""

from collections.abc import Mapping
from typing import Any

MOST_NODES = 2000
"""Schemas in a schema, with references written out."""
_DEEPEST = 24
_MOST_REPEATED = 1000
"""Larger bounds of lengths are dropped: a grammar writes each repetition out. The server checks them."""
_ONE = ("not", "if", "then", "else", "items", "contains", "additionalProperties", "propertyNames", "unevaluatedItems")
_MANY = ("allOf", "anyOf", "oneOf", "prefixItems")
_NAMED = ("properties", "dependentSchemas")
_PLAIN = (
    "type", "enum", "const", "description", "title", "default", "examples", "required", "minimum", "maximum",
    "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "dependentRequired", "format", "deprecated",
)  # fmt: skip
"""Kept as they are. `format` is not checked by our validator, and describes the value to the model."""
_BOUNDS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")


class TooLarge(Exception):
    """A schema with too many parts."""


def usable_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema of an object that has no references, no patterns and no keywords that we don't know.

    What it leaves out allows more, never less: the server checks its arguments itself. Raises TooLarge.
    """
    usable = _Writer(schema).write(schema, (), 0)
    usable = usable if isinstance(usable, dict) else {}
    return {**usable, "type": "object", "properties": _properties(usable)}


def _properties(schema: Mapping[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}


class _Writer:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root, self._left = root, MOST_NODES

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
            if reference in references:
                return {}
            return self.write(_referred_to(reference, self._root), (*references, reference), depth + 1)
        written = {key: schema[key] for key in _PLAIN if key in schema}
        written |= {key: schema[key] for key in _BOUNDS if _is_small(schema.get(key))}
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


def _referred_to(reference: str, root: Mapping[str, Any]) -> Any:
    """Return the part of `root` that a reference such as "#/$defs/Size" names; None if it is elsewhere."""
    if not reference.startswith("#"):
        return None
    found: Any = root
    for key in reference[1:].split("/")[1:]:
        if not isinstance(found, Mapping):
            return None
        found = found.get(key.replace("~1", "/").replace("~0", "~"))
    return found


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
