"""Grammars and schemas that the engine can't stand are refused by a check whose time is that of reading them."""

import contextlib
import json
import random
from typing import Any

import pytest

from qwendesk.core.errors import BadRequest
from qwendesk.core.grammar_bounds import check_grammar_bounds, check_schema_bounds, check_tools_bounds
from qwendesk.core.json_schema import SchemaReferences

VALID_GRAMMARS = (
    'root ::= "yes" | "no"',
    '# a list\nroot ::= item+ # at least one\r\nitem ::=\n  [^\\n\\]a-z-]{2,} "\\n"\n',
    'root ::= ("a" |\n b{0,3}) .\nb ::= "\\x41\\u00e9\\U0001F600" | ',
    'root ::= "a" root | "b"',
    'root ::= ("a"?)* "é"',
    'root ::= (space item?)*\nspace ::= [ ]*\nitem ::= "a"{0,99999}',
    "root ::= " + "(" * 400 + '"a"' + ")" * 400,
    'root ::= "' + '" | "'.join(map(str, range(900))) + '"',
)
"""tests/engine/worker/test_sampling.py asks llama.cpp itself."""

_DEEP = "(" * 20_000 + '"a"' + ")" * 20_000
_CHAIN = "\n".join(f"r{n} ::= r{n + 1}" for n in range(3000)) + '\nr3000 ::= "a"\nroot ::= r0'
_BRANCHING = "\n".join(f'r{n} ::= r{n + 1} | r{n + 1} "x"' for n in range(60)) + '\nr60 ::= "a"\nroot ::= r0'
HOSTILE_GRAMMARS = {
    "brackets": (f"root ::= {_DEEP}", "nested"),
    "brackets never closed": ("root ::= " + "(" * 400_000, "nested"),
    "rules in each other": (_CHAIN, "nested"),
    "two ways at each of 60 rules": (_BRANCHING, "ways"),
    "begins with itself": ('root ::= root "a" | "b"', '"root" begins with itself'),
    "begins with itself after nothing": (
        'root ::= a root "x" | "y"\na ::= b b\nb ::= "z" | ""',
        "begins with",
    ),
    "begins with itself in brackets": ('root ::= x\nx ::= ("y"? | "z"*) root', "begins with itself"),
    "lower number last": ('root ::= "a"{3,2}', "lower one comes first"),
    "repetitions": ('root ::= "a"{999999999}', "at most 2,000 repetitions"),
    "a number of 50 digits": ('root ::= "a"{' + "9" * 50 + "}", "written as"),
    "a long text, repeated": ('root ::= "' + "x" * 50_000 + '"{2000}', "written out"),
    "many repetitions": ("root ::= " + '"x"{0,2000} ' * 50_000, "written out"),
    "repetitions of repetitions": ('root ::= "x"' + "{2000}" * 9, "written out"),
    "optional things, repeated": ("root ::= ([a-z]?){100}", "ways"),
    "optional things in a row": ("root ::= " + "[a-z]? " * 30, "ways"),
    "nested optional things": ('root ::= ((("a"?){20}){20}){20}', "ways"),
    "sets": ("root ::= " + " | ".join(f'[a-z] "{n}"' for n in range(100)), "ways"),
    "100,000 texts": ("root ::= " + " | ".join(f'"{n}"' for n in range(100_000)), "ways"),
    "a rule with a long name": ("a" * 500_000 + " ::= " + '("x") ' * 50_000 + '\nroot ::= "b"', "written out"),
    "bytes": ('root ::= "a" #' + "x" * 2**20, "bytes"),
    "NUL": ('root ::= "a" \0', "NUL"),
    "a token": ('root ::= "a" !<[5]>', "Tokens such as !<[5]>"),
}
"""Each of these made llama.cpp crash, or never end. With what is said of it."""


@pytest.mark.parametrize("text", ["", *VALID_GRAMMARS])
def test_an_ordinary_grammar_is_left_to_the_engine(text: str) -> None:
    assert check_grammar_bounds(text) <= 1000


@pytest.mark.parametrize("name", HOSTILE_GRAMMARS)
def test_what_the_engine_cannot_stand_is_refused(name: str) -> None:
    text, complaint = HOSTILE_GRAMMARS[name]

    with pytest.raises(BadRequest, match="Invalid grammar") as refused:
        check_grammar_bounds(text)

    assert complaint in refused.value.sentence


def test_bad_syntax_is_the_engines_to_find() -> None:
    random.seed(5)
    pieces = ["root", "::=", '"a"', "[a-z", "]", "(", ")", "*", "{2,3}", "|", "\n", '"', "\\", "<", "#", "é"]
    for _ in range(300):
        text = " ".join(random.choices(pieces, k=20))
        with contextlib.suppress(BadRequest):  # nothing else is raised
            check_grammar_bounds(text)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "isn't JSON"),
        ('{"const": 1e999}', "isn't JSON"),
        ('{"items":' * 150 + "{}" + "}" * 150, "levels deep"),
        ('{"items":' * 20_000 + "{}" + "}" * 20_000, "nested"),
        (json.dumps({"enum": list(range(100_000))}), "50,000 values"),
        (json.dumps({"const": "x" * 2**20}), "bytes"),
    ],
)
def test_a_schema_beyond_the_bounds_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(BadRequest, match="Invalid JSON schema") as refused:
        check_schema_bounds(text)

    assert complaint in refused.value.sentence


def test_tools_are_bounded_together_and_by_name() -> None:
    schema = {"enum": list(range(1000))}
    check_tools_bounds({f"t{n}": schema for n in range(40)})
    with pytest.raises(BadRequest, match='up to "t49" have more than 50,000 values'):
        check_tools_bounds({f"t{n}": schema for n in range(60)})
    for _ in range(150):
        schema = {"items": schema}
    with pytest.raises(BadRequest, match='the tool "deep"'):
        check_tools_bounds({"deep": schema})


def test_references_are_found_without_going_through_the_schema_for_each() -> None:
    """7,000 of them took two minutes."""
    properties = {f"p{number}": {"$ref": "#here"} for number in range(7000)}
    schema: Any = {"type": "object", "properties": properties, "$defs": {"x": {"$anchor": "here", "type": "string"}}}
    references = SchemaReferences(schema)
    assert all(references.find(each["$ref"]) is schema["$defs"]["x"] for each in properties.values())
