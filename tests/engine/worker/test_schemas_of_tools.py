"""Whatever a grammar of a tool allows is read back as it was meant, for schemas as real MCP servers have them."""

import json
import random
from typing import Any

import pytest

from qwendesk.engine.worker.call_grammar import CallDialect
from qwendesk.engine.worker.call_parser import CallStream, parse_call, written_name
from qwendesk.engine.worker.tools import CallableTool, read_tools
from tests.engine.worker.conftest import Demo
from tests.engine.worker.made_schemas import made_schema
from tests.engine.worker.sampled_calls import CallSampler
from tests.engine.worker.test_call_grammar import grammar_of


def check(demo: Demo, dialect: CallDialect, first: int, number: int) -> int:
    """Try that many schemas, and return how many calls of them came to an end."""
    n_calls = 0
    for seed in range(first, first + number):
        rng = random.Random(seed)
        schema = made_schema(rng)
        tools = read_tools([json.dumps({"name": rng.choice(("use", "my tool", 'a "b"', "x>y")), "parameters": schema})])
        [tool] = tools.values()
        made = grammar_of(demo, tools, dialect)
        text = CallSampler(demo, made, dialect, tools).sample(rng, rng.choice((0.4, 0.8, 0.95)))
        made.close()
        if text is None:
            continue
        n_calls += 1
        found = parse_call(text, tools)
        assert found is not None, (seed, text)
        assert found.name == tool.name, (seed, text)
        arguments = json.loads(found.arguments_json)
        stream = CallStream(tools)
        pieces = "".join(stream.feed(character).arguments for character in text)
        assert stream.is_whole, (seed, text)
        assert json.loads(pieces) == arguments, (seed, text)
        assert {each.name for each in tool.parameters if each.required} <= arguments.keys(), (seed, text)
        again = written_again(tool, arguments, dialect)
        read = parse_call(again, tools)
        assert read is not None, (seed, again)
        assert json.loads(read.arguments_json) == arguments, (seed, text, again)
    return n_calls


def written_again(tool: CallableTool, arguments: dict[str, Any], dialect: CallDialect) -> str:
    """The call as a template writes it."""
    if dialect == "json":
        return f"\n{json.dumps({'name': tool.name, 'arguments': arguments}, ensure_ascii=False)}\n"
    lines = "".join(
        f"<parameter={written_name(name)}>\n{value if isinstance(value, str) else json.dumps(value)}\n</parameter>\n"
        for name, value in arguments.items()
    )
    return f"\n<function={written_name(tool.name)}>\n{lines}</function>\n"


@pytest.mark.parametrize("dialect", ["xml", "json"])
def test_any_call_that_a_grammar_allows_is_read_back(demo: Demo, dialect: CallDialect) -> None:
    assert check(demo, dialect, 0, 25) > 8


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("dialect", ["xml", "json"])
def test_two_thousand_schemas(demo: Demo, dialect: CallDialect) -> None:
    assert check(demo, dialect, 1000, 1000) > 300
