"""What the grammar of calls allows, asked of llama.cpp with the demo model's vocabulary."""

import json
import random
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from qwendesk.engine.worker.call_grammar import CallDialect, call_grammar
from qwendesk.engine.worker.call_parser import CallStream, parse_call
from qwendesk.engine.worker.model import LoadedModel, first_bytes_of
from qwendesk.engine.worker.sampling import TokenGrammar
from qwendesk.engine.worker.tools import CallableTool, read_tools
from tests.engine.worker.conftest import Demo
from tests.engine.worker.made_calls import TOOLS, calls, in_order_of_schema, written
from tests.engine.worker.sampled_calls import CallSampler, tools_json

DIALECTS: tuple[CallDialect, ...] = ("xml", "json")


@pytest.fixture(scope="module", params=DIALECTS)
def dialect(request: pytest.FixtureRequest) -> CallDialect:
    return cast("CallDialect", request.param)


@pytest.fixture(scope="module")
def grammar(demo: Demo, dialect: CallDialect) -> Iterator[TokenGrammar]:
    made = grammar_of(demo, TOOLS, dialect)
    yield made
    made.close()


def grammar_of(demo: Demo, tools: Mapping[str, CallableTool], dialect: CallDialect) -> TokenGrammar:
    text = call_grammar(tools, dialect, demo.vocabulary.user_defined["</tool_call>"])
    return TokenGrammar(
        cast("LoadedModel", SimpleNamespace(vocab=demo.vocab, first_bytes=first_bytes_of(demo.vocab))), text
    )


def take(grammar: TokenGrammar, tokens: list[int]) -> int:
    """How many of `tokens` the grammar allows, one after the other."""
    grammar.begin_again()
    for index, token in enumerate(tokens):
        if not grammar.allows(token):
            return index
        grammar.accept(token)
    return len(tokens)


@settings(max_examples=50)
@given(call=calls())
def test_calls_as_templates_write_them_are_allowed(
    demo: Demo, grammar: TokenGrammar, dialect: CallDialect, call: tuple[str, dict[str, Any]]
) -> None:
    text = written(*call, dialect)
    tokens = [*demo.tokenize(text, parse_special=False), demo.vocabulary.user_defined["</tool_call>"]]
    assert take(grammar, tokens) == len(tokens), text


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("fly", {}),
        ("edit_file", {"path": "a", "old": "b"}),
        ("edit_file", {"path": "a", "old": "b", "new": "c", "line": "soon"}),
        ("edit_file", {"path": "a", "old": "b", "new": "c", "mode": "delete"}),
        ("search", {"words": ["a"], "where": {"country": "Italy"}}),
        ("search", {"words": [1], "where": {"city": "Rome"}}),
    ],
    ids=["unknown tool", "required missing", "no number", "not listed", "object", "item"],
)
def test_what_a_schema_forbids_is_not_allowed(
    demo: Demo, grammar: TokenGrammar, dialect: CallDialect, name: str, arguments: dict[str, Any]
) -> None:
    if dialect == "json" and name in TOOLS:
        arguments = in_order_of_schema(name, arguments)
    lines = "".join(
        f"<parameter={key}>\n{value if isinstance(value, str) else json.dumps(value)}\n</parameter>\n"
        for key, value in arguments.items()
    )
    xml = f"\n<function={name}>\n{lines}</function>\n"
    text = xml if dialect == "xml" else f"\n{json.dumps({'name': name, 'arguments': arguments})}\n"
    tokens = [*demo.tokenize(text, parse_special=False), demo.vocabulary.user_defined["</tool_call>"]]

    assert take(grammar, tokens) < len(tokens)


def test_a_call_does_not_end_before_it_is_whole(demo: Demo, grammar: TokenGrammar, dialect: CallDialect) -> None:
    text = written("calculate", {"expression": "1 + 1"}, dialect)
    ends = [demo.vocabulary.control["<|im_end|>"], demo.vocabulary.control["<|endoftext|>"]]
    grammar.begin_again()
    for token in demo.tokenize(text, parse_special=False):
        assert not any(map(grammar.allows, ends))
        grammar.accept(token)
    assert grammar.allows(demo.vocabulary.user_defined["</tool_call>"])
    assert not grammar.allows(demo.tokenize("x", parse_special=False)[0])


@settings(max_examples=80)
@given(definitions=tools_json(), seed=st.integers(0, 10**9), haste=st.sampled_from([0.2, 0.5, 0.9]))
def test_any_text_under_the_grammar_is_a_call_that_its_schema_allows(
    demo: Demo, dialect: CallDialect, definitions: tuple[str, ...], seed: int, haste: float
) -> None:
    """It fails, for instance, if a required parameter may be missing, or if a list of values allows others."""
    tools = read_tools(definitions)
    made = grammar_of(demo, tools, dialect)
    text = CallSampler(demo, made, dialect, tools).sample(random.Random(seed), haste)
    made.close()
    assume(text is not None)
    assert text is not None

    found = parse_call(text, tools)

    assert found is not None, text
    arguments = json.loads(found.arguments_json)
    Draft202012Validator(dict(tools[found.name].schema)).validate(arguments)
    stream = CallStream(tools)
    assert json.loads(stream.feed(text).arguments) == arguments
    assert stream.is_whole


def test_listed_values_are_written_as_they_are(demo: Demo, dialect: CallDialect) -> None:
    schema = {
        "properties": {
            "end": {"enum": ["\\n", 'a "b"', "ß"]},
            "colour": {"anyOf": [{"$ref": "#/$defs/Colour"}, {"type": "null"}]},
            "mode": {"type": ["string", "null"], "enum": ["fast", None]},
        },
        "required": ["end", "colour", "mode"],
        "$defs": {"Colour": {"type": "string", "enum": ["red"]}},
    }
    tools = read_tools([json.dumps({"name": "paint", "parameters": schema})])
    made = grammar_of(demo, tools, dialect)

    def is_allowed(end: str, colour: str | None, mode: str | None) -> bool:
        arguments = {"end": end, "colour": colour, "mode": mode}
        text = written("paint", arguments, "xml")
        if dialect == "json":
            text = f"\n{json.dumps({'name': 'paint', 'arguments': arguments}, ensure_ascii=False)}\n"
        tokens = [*demo.tokenize(text, parse_special=False), demo.vocabulary.user_defined["</tool_call>"]]
        return take(made, tokens) == len(tokens)

    assert is_allowed("\\n", "red", "fast")
    assert is_allowed('a "b"', None, None)
    assert is_allowed("ß", "red", None)
    assert not is_allowed("n", "red", "fast")
    assert not is_allowed("ß", "blue", "fast")
    assert not is_allowed("ß", "red", "slow")
    made.close()


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"enum": [1, 200]}, 200),
        ({"type": "integer"}, 200),
        ({"type": "number"}, 2.5),
        ({"type": "boolean"}, True),
        ({"type": "null"}, None),
    ],
    ids=["listed", "integer", "number", "boolean", "null"],
)
def test_a_number_is_written_without_blanks(demo: Demo, schema: dict[str, object], value: object) -> None:
    """The next prompt has it so: a call with a blank would have to be read again."""
    tools = read_tools([json.dumps({"name": "go", "parameters": {"properties": {"n": schema}}})])
    made = grammar_of(demo, tools, "xml")
    text = written("go", {"n": value}, "xml")
    for allowed, each in ((True, text), (False, text.replace("\n</parameter>", " \n</parameter>"))):
        tokens = [*demo.tokenize(each, parse_special=False), demo.vocabulary.user_defined["</tool_call>"]]
        assert (take(made, tokens) == len(tokens)) is allowed
        made.begin_again()
    made.close()


def test_schemas_that_no_grammar_can_express_allow_any_value(demo: Demo) -> None:
    parameters = {
        "properties": {"a": {"type": "object", "$ref": "https://example.org/schema"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    }
    tools = read_tools([json.dumps({"name": "odd", "parameters": parameters})])
    made = grammar_of(demo, tools, "xml")
    text = '\n<function=odd>\n<parameter=b>\n7\n</parameter>\n<parameter=a>\n{"x": [1]}\n</parameter>\n</function>\n'
    tokens = [*demo.tokenize(text, parse_special=False), demo.vocabulary.user_defined["</tool_call>"]]

    assert take(made, tokens) == len(tokens)
    made.close()
