"""The values that a JSON schema allows, as plain forms: no references, unions and conditions that must hold together.

The grammars of answers and of tool calls are made of these forms, so a schema means the same everywhere. What a grammar
can't express anyway (limits of numbers, `not`, `uniqueItems`) is left out: the forms allow more, never less.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any
from urllib.parse import unquote, urljoin

import msgspec

JSON_TYPES = frozenset(("string", "number", "integer", "boolean", "object", "array", "null"))
_PYTHON_TYPES: Mapping[type, str] = {
    str: "string", bool: "boolean", int: "integer", float: "number", dict: "object", list: "array", type(None): "null",
}  # fmt: skip
# A schema that names no type is meant for the type whose keywords it has.
_KEYWORDS: Mapping[str, Sequence[str]] = {
    "object": ("properties", "required", "additionalProperties", "patternProperties", "propertyNames"),
    "array": ("items", "prefixItems", "minItems", "maxItems"),
    "string": ("pattern", "format", "minLength", "maxLength"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}
# A schema with more ways to be valid is loosened to one form that allows all of them.
_MOST_FORMS = 64
# Schemas read and forms joined for one document; what is left then counts as one that allows everything.
_MOST_STEPS = 20_000
# A bound of lengths beyond this says nothing.
_FAR = 10**9
# The same for a schema that refers to others in a longer chain.
_MOST_REFERENCES = 64


class Form(msgspec.Struct, frozen=True, kw_only=True):
    """One way for a value to be valid. Each field that is None says nothing."""

    types: frozenset[str] | None = None
    meant: frozenset[str] = frozenset()
    """The types for which it has keywords."""
    values: tuple[Any, ...] | None = None
    """All values that it allows."""
    properties: Mapping[str, Any] = {}
    required: tuple[str, ...] = ()
    names_properties: bool = False
    more: Any = None
    """Schema of the properties that it doesn't name; False if there are none."""
    items: Any = None
    first_items: tuple[Any, ...] = ()
    n_items: tuple[int, int | None] = (0, None)
    pattern: str | None = None
    format: str | None = None
    n_characters: tuple[int, int | None] = (0, None)

    @property
    def allowed_types(self) -> frozenset[str]:
        """Which of JSON_TYPES a value may have."""
        found = self.types or self.meant or JSON_TYPES
        if self.values is not None:
            return frozenset(_PYTHON_TYPES[type(value)] for value in self.allowed_values or ())
        return found - {"integer"} if "number" in found and found != JSON_TYPES else found

    @property
    def allowed_values(self) -> tuple[Any, ...] | None:
        """The listed values, those of a wrong type left out. If all are, the type is wrong rather than they."""
        if self.values is None or self.types is None:
            return self.values
        return tuple(value for value in self.values if has_type(value, self.types)) or self.values

    @property
    def all_properties(self) -> Mapping[str, Any]:
        """The properties, with those that are required but not described."""
        unnamed = True if self.free in (None, False) else self.free
        return {**self.properties, **{name: unnamed for name in self.required if name not in self.properties}}

    @property
    def free(self) -> Any:
        """Schema of properties with other names; False if there are none.

        As in all programs that make grammars, a schema that names properties allows others only if it says so.
        """
        return self.more if self.more is not None else not self.names_properties


class SchemaReader:
    """Reads the schemas of one document, which is where their references point into."""

    def __init__(self, root: Any) -> None:
        self._root, self._references = root, SchemaReferences(root)
        self._steps_left = _MOST_STEPS
        self.lost_references: list[str] = []
        """Those that lead nowhere, of the schemas read so far."""
        self.unknown_types: list[str] = []

    def forms(self, schema: Any) -> tuple[Form, ...]:
        """Return forms of which a valid value has at least one; none if the schema allows no value."""
        try:
            return tuple(_without_duplicates(self._forms(schema, ())))
        except RecursionError:
            return (Form(),)

    def types(self, schema: Any) -> frozenset[str]:
        """Return which of JSON_TYPES a value may have: all if the schema allows none."""
        return frozenset(name for form in self.forms(schema) for name in form.allowed_types) or JSON_TYPES

    def listed_values(self, schema: Any) -> list[Any] | None:
        """Return all values that the schema allows; None if it doesn't list them."""
        found: list[Any] = []
        for form in self.forms(schema):
            values = form.allowed_values
            if values is None:
                if not form.allowed_types <= {"null", "boolean"}:
                    return None
                values = tuple(
                    each for kind, each in (("null", None), ("boolean", False), ("boolean", True))
                    if kind in form.allowed_types
                )  # fmt: skip
            found += values
        return list({_key(value): value for value in found}.values())

    def arguments(self) -> Form | None:
        """Return the arguments that the document describes as the schema of an object; None if it can't be one.

        All that any form names may be written, and what every form requires must be.
        """
        objects = [form for form in self.forms(self._root) if "object" in form.allowed_types]
        return None if not objects or self.lost_references else loosest(objects)

    def _forms(self, schema: Any, followed: tuple[str, ...]) -> list[Form]:
        self._steps_left -= 1
        if schema is False:
            return []
        if not isinstance(schema, dict) or self._steps_left < 0:
            return [Form()]
        found = [self._plain(schema)]
        for part in self._parts(schema, followed):
            if len(found) * len(part) > _MOST_FORMS:
                part = [loosest(part)]  # noqa: PLW2901
            n_properties = sum(len(form.properties) for form in found)
            self._steps_left -= len(part) * (len(found) + n_properties // 8)
            if self._steps_left < 0:
                return [Form()]
            merged = (_both(one, other) for one in found for other in part)
            found = _without_duplicates(form for form in merged if form is not None)
        return found

    def _parts(self, schema: Mapping[str, Any], followed: tuple[str, ...]) -> Iterator[list[Form]]:
        """Yield the forms of each condition of the schema that must hold beside its own keywords."""
        for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
            if keyword in schema:
                yield self._referred_to(schema[keyword], followed)
        for each in _listed(schema.get("allOf")):
            yield self._forms(each, followed)
        for choice in ("anyOf", "oneOf"):
            if choices := _listed(schema.get(choice)):
                yield _without_duplicates(form for each in choices for form in self._forms(each, followed))
        if "if" in schema:
            both = {"allOf": [schema["if"], schema.get("then", True)]}
            yield self._forms(both, followed) + self._forms(schema.get("else", True), followed)
        for keyword in ("dependentSchemas", "dependencies"):  # the latter before draft 2019-09
            for each in _mapping(schema.get(keyword)).values():
                yield [*self._forms(each, followed), Form()]

    def _referred_to(self, reference: Any, followed: tuple[str, ...]) -> list[Form]:
        if reference in followed:
            return []
        target = self._references.find(reference)
        if target is None:
            self.lost_references.append(str(reference))
        if target is None or len(followed) > _MOST_REFERENCES:
            return [Form()]
        return self._forms(target, (*followed, reference))

    def _plain(self, schema: Mapping[str, Any]) -> Form:
        """Return what the schema's own keywords say."""
        types = self._types(schema)
        values: list[Any] | None = _listed(schema.get("enum")) or None  # an empty list is a slip: no value is valid
        if values is None and "const" in schema:
            values = [schema["const"]]
        if schema.get("nullable") is True and values is not None and None not in values:
            values = [*values, None]
        properties, more = _mapping(schema.get("properties")), schema.get("additionalProperties")
        if patterns := _mapping(schema.get("patternProperties")):
            others = [more] if more not in (None, False) else []
            more = _any_of([*patterns.values(), *others])
        if more is not False and (names := self._names(schema.get("propertyNames"))):
            properties, more = {**dict.fromkeys(names, True if more is None else more), **properties}, False
        has_places = isinstance(schema.get("items"), list)  # as before draft 2020-12
        items = schema.get("additionalItems" if has_places else "items")
        first = _listed(schema.get("items" if has_places else "prefixItems"))
        return Form(
            types=types,
            meant=frozenset(kind for kind, words in _KEYWORDS.items() if any(word in schema for word in words)),
            values=None if values is None else tuple(values),
            properties=properties,
            required=tuple(name for name in _listed(schema.get("required")) if isinstance(name, str)),
            names_properties=isinstance(schema.get("properties"), dict),
            more=more if isinstance(more, bool | dict) else None,
            items=items if isinstance(items, bool | dict) else None,
            first_items=tuple(first),
            n_items=_bounds(schema, "minItems", "maxItems"),
            pattern=_text(schema.get("pattern")),
            format=_text(schema.get("format")),
            n_characters=_bounds(schema, "minLength", "maxLength"),
        )

    def _types(self, schema: Mapping[str, Any]) -> frozenset[str] | None:
        given = schema.get("type")
        names = [given] if isinstance(given, str) else _listed(given)
        known = JSON_TYPES.intersection(name for name in names if isinstance(name, str))
        self.unknown_types += [str(name) for name in names if name not in known]
        if known and schema.get("nullable") is True:
            known |= {"null"}
        return known or None

    def _names(self, schema: Any) -> list[str]:
        """Return the names that a schema of names lists, if it lists them."""
        listed = _mapping(self._references.find(schema["$ref"]) if "$ref" in _mapping(schema) else schema)
        return [value for value in _listed(listed.get("enum")) if isinstance(value, str)]


def loosest(forms: Sequence[Form]) -> Form:
    """Return a form that allows what any of `forms` allows."""
    if len(forms) == 1:
        return forms[0]
    objects = [form for form in forms if "object" in form.allowed_types]
    properties: dict[str, list[Any]] = {}
    for form in objects:
        for name, schema in form.all_properties.items():
            properties.setdefault(name, []).append(schema)
    free = [form.free for form in objects if form.free is not False]
    lists = [form.allowed_values for form in forms]
    items = [True if each is None else each for form in forms for each in (form.items, *form.first_items)]
    return Form(
        types=frozenset(name for form in forms for name in form.allowed_types),
        values=None if None in lists else tuple(value for values in lists for value in values or ()),
        properties={name: _any_of(schemas) for name, schemas in properties.items()},
        required=tuple(name for name in properties if all(name in form.required for form in objects)),
        names_properties=True,
        more=_any_of(free) if free else False,
        items=_any_of(items),
    )


def has_type(value: Any, types: frozenset[str]) -> bool:
    """Return whether a JSON value has one of `types`. A whole number is a number too."""
    name = _PYTHON_TYPES[type(value)]
    return name in types or (name == "integer" and "number" in types)


def _both(one: Form, other: Form) -> Form | None:
    """Return a form of the values that both allow, more or less; None if there is none."""
    types, values = one.types or other.types, other.values if one.values is None else one.values
    if one.types is not None and other.types is not None:
        shared = one.types & other.types
        if "number" in one.types | other.types:
            shared |= {"integer"} & (one.types | other.types)
        if not shared:
            return None
        types = shared
    if one.values is not None and other.values is not None:
        keys = set(map(_key, other.values))
        values = tuple(value for value in one.values if _key(value) in keys)
        if not values:
            return None
    names = dict.fromkeys((*one.properties, *other.properties))
    return Form(
        types=types,
        meant=one.meant | other.meant,
        values=values,
        properties={name: _all_of(one.properties.get(name), other.properties.get(name)) for name in names},
        required=tuple(dict.fromkeys((*one.required, *other.required))),
        names_properties=one.names_properties or other.names_properties,
        more=_all_of(one.more, other.more),
        items=_all_of(one.items, other.items),
        first_items=one.first_items or other.first_items,
        n_items=_narrower(one.n_items, other.n_items),
        pattern=one.pattern or other.pattern,
        format=one.format or other.format,
        n_characters=_narrower(one.n_characters, other.n_characters),
    )


def _all_of(one: Any, other: Any) -> Any:
    """Return a schema of what two schemas allow; None stands for one that says nothing."""
    if False in (one, other):
        return False
    if one in (None, True) or other in (None, True):
        return other if one in (None, True) and other is not None else one
    parts = {_key(part): part for each in (one, other) for part in (each["allOf"] if [*each] == ["allOf"] else [each])}
    return one if len(parts) == 1 else {"allOf": list(parts.values())}


def _any_of(schemas: Sequence[Any]) -> Any:
    different = list({_key(each): each for each in schemas}.values())
    if True in different:
        return True
    return different[0] if len(different) == 1 else {"anyOf": different}


def _narrower(one: tuple[int, int | None], other: tuple[int, int | None]) -> tuple[int, int | None]:
    limits = [limit for limit in (one[1], other[1]) if limit is not None]
    return max(one[0], other[0]), min(limits, default=None)


def _bounds(schema: Mapping[str, Any], least: str, most: str) -> tuple[int, int | None]:
    found = [schema.get(name) for name in (least, most)]
    low, high = (each if isinstance(each, int | float) and 0 <= each < _FAR else None for each in found)
    return int(low or 0), None if high is None else int(high)


def _without_duplicates(forms: Iterable[Form]) -> list[Form]:
    return list({repr(form): form for form in forms}.values())


def _key(value: Any) -> str:
    """Return a text that is the same for equal JSON only: in Python, 1 equals True."""
    return json.dumps(value, sort_keys=True)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


# Documents in the document in which a path is looked for that isn't in it.
_MOST_PLACES = 20


class SchemaReferences:
    """Finds the parts of a document that references such as "#/$defs/Size" name, each in about the same time."""

    def __init__(self, root: Any) -> None:
        self._base = _id_of(root) if isinstance(root, dict) else ""
        self._by_address: dict[str, Any] = {self._base: root}
        self._by_anchor: dict[str, Any] = {}
        for part in _embedded(root):
            address = _id_of(part)
            if address and part is not root:
                self._by_address.setdefault(_joined(self._base, address), part)
            for anchor in (part.get("$anchor"), part.get("$dynamicAnchor"), address[1:] if address[:1] == "#" else ""):
                if anchor and isinstance(anchor, str):
                    self._by_anchor.setdefault(anchor, part)

    def find(self, reference: Any) -> Any:
        """Return what it names; None if there is none.

        A path that isn't in the document is looked for in those that it contains, where the reference may stand.
        """
        if not isinstance(reference, str):
            return None
        document, _, fragment = reference.partition("#")
        fragment = unquote(fragment)
        if fragment and not fragment.startswith("/"):
            return self._by_anchor.get(fragment)
        found = _at(fragment, self._by_address.get(_joined(self._base, document)))
        if found is None and not document:
            places = islice(self._by_address.values(), _MOST_PLACES)
            return next((part for place in places if (part := _at(fragment, place)) is not None), None)
        return found


def _id_of(schema: Mapping[str, Any]) -> str:
    """Return the address that a schema gives itself, before draft 6 in "id"; "" if it gives none."""
    given = schema.get("$id", schema.get("id"))
    return given.removesuffix("#") if isinstance(given, str) else ""


def _joined(base: str, address: str) -> str:
    try:
        return urljoin(base, address)
    except ValueError:  # no address
        return address


def _at(path: str, place: Any) -> Any:
    """Return the part at a JSON pointer; None if there is none."""
    found = place
    for step in path.split("/")[1:] if path != "/" else ():
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict) and key in found:
            found = found[key]
        elif isinstance(found, list) and re.fullmatch("0|[1-9][0-9]{0,8}", key) and int(key) < len(found):
            found = found[int(key)]
        else:
            return None
    return found


def _embedded(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield all objects in a schema."""
    waiting = [schema]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            yield each
        waiting += each.values() if isinstance(each, dict) else each if isinstance(each, list) else ()
