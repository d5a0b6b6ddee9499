"""Checks a JSON schema for structured output before it is sent."""

from collections.abc import Callable
from typing import Any, TypeVar

from qwendesk.core.errors import BadRequest
from qwendesk.core.grammar_bounds import check_schema_bounds
from qwendesk.core.schema_references import SchemaReferences
from qwendesk.core.translation import tr

T = TypeVar("T")

_TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")


def check_schema(text: str) -> None:
    """Raise BadRequest for an invalid schema, with a sentence that says what is wrong and where.

    The engine may still refuse an unknown keyword.
    """
    if not text.strip():
        return
    schema = in_users_language(check_schema_bounds, text)
    if not isinstance(schema, dict):
        raise _refusal(tr("A schema is an object in braces, such as {0}.", '{"type": "object"}'))
    _check(schema, SchemaReferences(schema), tr("the schema"))


def in_users_language(check: Callable[[str], T], text: str) -> T:
    """Return what a check of `core` returns. It words errors for the engine's process, which knows no language."""
    try:
        return check(text)
    except BadRequest as error:
        raise BadRequest(tr(error.title), tr(error.source, *error.values)) from error


def _check(schema: Any, references: SchemaReferences, place: str) -> None:
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        raise _refusal(tr("{0} must be an object in braces.", _capitalized(place)))
    kinds = schema.get("type", [])
    for kind in kinds if isinstance(kinds, list) else [kinds]:
        if kind not in _TYPES:
            raise _refusal(tr('"{0}" in {1} isn\'t a type. Use one of {2}.', kind, place, ", ".join(_TYPES)))
    if "$ref" in schema:
        _check_reference(schema["$ref"], references, place)
    if "enum" in schema and not (isinstance(schema["enum"], list) and schema["enum"]):
        raise _refusal(tr('"{0}" in {1} must be a list with at least one value.', "enum", place))
    for key in ("properties", "$defs", "definitions"):
        parts = schema.get(key, {})
        if not isinstance(parts, dict):
            raise _refusal(tr('"{0}" in {1} must be an object in braces.', key, place))
        for name, part in parts.items():
            _check(part, references, f'"{name}"')
    for key in ("anyOf", "oneOf", "allOf"):
        parts = schema.get(key, [])
        if not isinstance(parts, list):
            raise _refusal(tr('"{0}" in {1} must be a list.', key, place))
        for part in parts:
            _check(part, references, tr('"{0}" in {1}', key, place))
    if isinstance(schema.get("items"), dict):
        _check(schema["items"], references, tr("the items of {0}", place))


def _check_reference(reference: Any, references: SchemaReferences, place: str) -> None:
    if references.find(reference) is not None:
        return
    if not isinstance(reference, str) or not reference.startswith("#"):
        raise _refusal(
            tr(
                "{0} refers to another document, which QwenDesk doesn't fetch. Copy that part into the schema.",
                _capitalized(place),
            )
        )
    raise _refusal(tr('{0} refers to "{1}", which isn\'t in the schema.', _capitalized(place), reference))


def _capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]


def _refusal(why: str) -> BadRequest:
    return BadRequest(tr("The JSON schema can't be used"), tr("The JSON schema can't be used. {0}", why))
