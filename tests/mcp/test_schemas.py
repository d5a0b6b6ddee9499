"""Schemas of others: what describes the arguments stays, what could do harm goes."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from qwendesk.mcp.host.offers import TooLarge, usable_schema

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "properties", "items", "$ref", "anyOf", "required", "enum", "minimum", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


def test_descriptions_types_and_values_stay() -> None:
    schema = {
        "type": "object",
        "properties": {"colour": {"type": "string", "enum": ["red"], "description": "Of the car.", "maxLength": 9}},
        "required": ["colour"],
        "additionalProperties": False,
    }
    assert usable_schema(schema) == schema


def test_references_are_written_out() -> None:
    schema = {"properties": {"a": {"$ref": "#/$defs/A~1B"}}, "$defs": {"A/B": {"type": "integer"}}}
    assert usable_schema(schema)["properties"] == {"a": {"type": "integer"}}


@pytest.mark.parametrize(
    "harmful",
    [
        {"$ref": "http://192.0.2.1/schema.json"},
        {"$ref": "file:///etc/passwd"},
        {"$ref": "#/properties/a"},
        {"pattern": "^(a+)+$"},
        {"$dynamicRef": "#x"},
        {"maxLength": 10**9, "minItems": 10**9},
    ],
)
def test_what_could_do_harm_goes(harmful: dict[str, Any]) -> None:
    assert usable_schema({"properties": {"a": harmful}})["properties"] == {"a": {}}


def test_without_patterns_of_names_all_names_are_allowed() -> None:
    """The server checks them. Without any of them, the validator would allow no name."""
    schema = {"patternProperties": {"^(a+)+$": {"type": "integer"}}, "additionalProperties": False}

    assert usable_schema({"properties": {"a": schema}})["properties"] == {
        "a": {"additionalProperties": {"anyOf": [{"type": "integer"}]}}
    }


def test_what_stands_beside_a_reference_stays() -> None:
    schema = {
        "properties": {"a": {"$ref": "#/$defs/A", "description": "One."}, "b": {"$ref": "#/$defs/A", "maxLength": 5}},
        "$defs": {"A": {"type": "string", "maxLength": 9}},
    }
    assert usable_schema(schema)["properties"] == {
        "a": {"type": "string", "maxLength": 9, "description": "One."},
        "b": {"allOf": [{"type": "string", "maxLength": 9}, {"maxLength": 5}]},
    }


def test_schema_that_grows_with_each_reference_is_refused() -> None:
    definitions = {f"n{n}": {"anyOf": [{"$ref": f"#/$defs/n{n + 1}"}] * 3} for n in range(50)}
    with pytest.raises(TooLarge):
        usable_schema({"properties": {"a": {"$ref": "#/$defs/n0"}}, "$defs": definitions})


@given(JSON, JSON)
def test_any_schema_becomes_one_that_arguments_can_be_checked_with(schema: Any, value: Any) -> None:
    usable = usable_schema(schema if isinstance(schema, dict) else {})
    list(Draft202012Validator(usable).iter_errors({"x": value}))
