"""What the grammar of calls allows, asked of llama.cpp with the demo model's vocabulary."""

import json
import random
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from qwendesk.engine.worker.call_grammar import CallDialect, call_grammar
from qwendesk.engine.worker.call_parser import parse_call
from qwendesk.engine.worker.call_stream import CallStream
from qwendesk.engine.worker.model import LoadedModel
from qwendesk.engine.worker.token_grammar import TokenGrammar
from qwendesk.engine.worker.tools import has_type, read_tools
from tests.engine.worker.conftest import Demo
from tests.engine.worker.made_calls import TOOLS, calls, in_order_of_schema, written

DIALECTS: tuple[CallDialect, ...] = ("xml", "json")


@pytest.fixture(scope="module", params=DIALECTS)
def dialect(request: pytest.FixtureRequest) -> CallDialect:
    return cast("CallDialect", request.param)


@pytest.fixture(scope="module")
def grammar(demo: Demo, dialect: CallDialect) -> Iterator[TokenGrammar]:
    text = call_grammar(TOOLS, dialect, demo.vocabulary.user_defined["</tool_call>"])
    made = TokenGrammar(cast("LoadedModel", SimpleNamespace(vocab=demo.vocab)), text)
    yield made
    made.close()


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


@settings(max_examples=50)
@given(call=calls(), seed=st.integers(0, 10**9))
def test_any_text_under_the_grammar_is_a_valid_call(
    demo: Demo, grammar: TokenGrammar, dialect: CallDialect, call: tuple[str, dict[str, Any]], seed: int
) -> None:
    plan = demo.tokenize(written(*call, dialect), parse_special=False)
    text = strayed(demo, grammar, plan, random.Random(seed))
    assume(text is not None)
    assert text is not None

    found = parse_call(text, TOOLS)

    assert found is not None, text
    arguments = json.loads(found.arguments_json)
    tool = TOOLS[found.name]
    assert {each.name for each in tool.parameters if each.required} <= set(arguments), text
    for name, value in arguments.items():
        parameter = tool.parameter(name)
        assert parameter is not None, text
        assert has_type(value, parameter.types), text
    stream = CallStream(TOOLS)
    assert json.loads(stream.feed(text).arguments) == arguments
    assert stream.is_whole


def strayed(demo: Demo, grammar: TokenGrammar, plan: list[int], rng: random.Random) -> str | None:
    """A text that follows the grammar, and `plan` only where a token drawn at random is not allowed.

    None if that led to a place from which the plan can't go on.
    """
    end = demo.vocabulary.user_defined["</tool_call>"]
    drawn = sorted(set(demo.pieces) - demo.special_ids)
    grammar.begin_again()
    text, stream = b"", CallStream(TOOLS)
    for planned in [*plan, end]:
        for token in (rng.choice(drawn), planned) if rng.random() < 0.3 else (planned,):
            if grammar.allows(token) and (token != end or stream.is_whole):
                grammar.accept(token)
                text += b"" if token == end else demo.pieces[token]
                stream.feed(demo.pieces[token].decode("utf-8", "replace"))
            elif token == planned:
                return None
    return text.decode("utf-8", "replace")


def test_schemas_that_no_grammar_can_express_allow_any_value(demo: Demo) -> None:
    parameters = {
        "properties": {"a": {"type": "object", "$ref": "https://example.org/schema"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
    }
    tools = read_tools([json.dumps({"name": "odd", "parameters": parameters})])
    made = TokenGrammar(
        cast("LoadedModel", SimpleNamespace(vocab=demo.vocab)),
        call_grammar(tools, "xml", demo.vocabulary.user_defined["</tool_call>"]),
    )
    text = '\n<function=odd>\n<parameter=b>\n7\n</parameter>\n<parameter=a>\n{"x": [1]}\n</parameter>\n</function>\n'
    tokens = [*demo.tokenize(text, parse_special=False), demo.vocabulary.user_defined["</tool_call>"]]

    assert take(made, tokens) == len(tokens)
    made.close()
