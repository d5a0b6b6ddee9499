"""Whether a text can be the JSON schema of a chat's answers, said before anything is sent."""

from typing import Any

import msgspec

from qwendesk.core.errors import BadRequest

_TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")
_DEEPEST = 64


def check_schema(text: str) -> None:
    """Raises BadRequest with what is wrong and where. The engine may still refuse a keyword it does not know."""
    if not text.strip():
        return
    try:
        schema = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise _bad(f"It is not JSON: {error}.") from error
    if not isinstance(schema, dict):
        raise _bad('A schema is an object in braces, such as {"type": "object"}.')
    _check(schema, schema, "the schema", 0)


def _check(schema: Any, root: dict[str, Any], place: str, depth: int) -> None:
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        raise _bad(f"{place} must be an object in braces.")
    if depth > _DEEPEST:
        raise _bad(f"It is nested more than {_DEEPEST} deep.")
    kinds = schema.get("type", [])
    for kind in kinds if isinstance(kinds, list) else [kinds]:
        if kind not in _TYPES:
            raise _bad(f'"{kind}" in {place} is no type; use one of {", ".join(_TYPES)}.')
    if "$ref" in schema:
        _check_reference(schema["$ref"], root, place)
    if "enum" in schema and not (isinstance(schema["enum"], list) and schema["enum"]):
        raise _bad(f'"enum" in {place} must be a list with at least one value.')
    for key in ("properties", "$defs", "definitions"):
        parts = schema.get(key, {})
        if not isinstance(parts, dict):
            raise _bad(f'"{key}" in {place} must be an object in braces.')
        for name, part in parts.items():
            _check(part, root, f'"{name}"', depth + 1)
    for key in ("anyOf", "oneOf", "allOf"):
        parts = schema.get(key, [])
        if not isinstance(parts, list):
            raise _bad(f'"{key}" in {place} must be a list.')
        for part in parts:
            _check(part, root, f'"{key}" in {place}', depth + 1)
    if isinstance(schema.get("items"), dict):
        _check(schema["items"], root, f"the items of {place}", depth + 1)


def _check_reference(reference: Any, root: dict[str, Any], place: str) -> None:
    if not isinstance(reference, str) or not reference.startswith("#"):
        raise _bad(f"{place} refers to another document; nothing is fetched, so write that part into the schema.")
    found: Any = root
    for step in reference.lstrip("#/").split("/") if reference not in ("#", "#/") else ():
        found = found.get(step) if isinstance(found, dict) else None
        if found is None:
            raise _bad(f'{place} refers to "{reference}", which is not in the schema.')


def _bad(why: str) -> BadRequest:
    return BadRequest("The JSON schema cannot be used", f"The JSON schema cannot be used. {why}")
