"""Tools with schemas of all kinds, and calls of them as Qwen's templates write them."""

import json
from typing import Any

from hypothesis import strategies as st

from qwendesk.engine.worker.call_grammar import CallDialect
from qwendesk.engine.worker.tools import read_tools

DEFINITIONS: tuple[dict[str, Any], ...] = (
    {"name": "current_time"},
    {"name": "calculate", "parameters": {"properties": {"expression": {"type": "string"}}, "required": ["expression"]}},
    {
        "name": "edit_file",
        "parameters": {
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "old": {"type": "string"},
                "new": {"type": "string"},
                "line": {"type": "integer"},
                "mode": {"enum": ["replace", "insert"]},
            },
            "required": ["path", "old", "new"],
        },
    },
    {
        "name": "search",
        "parameters": {
            "type": "object",
            "properties": {
                "words": {"type": "array", "items": {"type": "string"}},
                "exact": {"type": "boolean"},
                "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                "where": {"$ref": "#/$defs/Where"},
                "note": {"type": ["string", "null"]},
            },
            "required": ["words", "where"],
            "$defs": {"Where": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}},
        },
    },
    {
        "name": "send mail",
        "parameters": {
            "properties": {"whom to": {"type": "string"}, 'the "text"': {"type": "string"}},
            "anyOf": [
                {"properties": {"it's urgent": {"type": "boolean"}}, "required": ["whom to", 'the "text"']},
                {"properties": {"it's a list": {"type": "integer"}}, "required": ["whom to", 'the "text"']},
            ],
        },
    },
)
TOOLS_JSON = tuple(json.dumps({"type": "function", "function": each}) for each in DEFINITIONS)
TOOLS = read_tools(TOOLS_JSON)

_text = st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.just("\n"), max_size=30).filter(
    lambda text: "</parameter>" not in text
)
_values: dict[str, st.SearchStrategy[Any]] = {
    "expression": _text,
    "path": _text,
    "old": _text,
    "new": _text,
    "line": st.integers(-99, 10**6),
    "mode": st.sampled_from(["replace", "insert"]),
    "words": st.lists(_text, max_size=3),
    "exact": st.booleans(),
    "limit": st.none() | st.integers(0, 99),
    "where": st.fixed_dictionaries({"city": _text}),
    "whom to": _text,
    'the "text"': _text,
    "it's urgent": st.booleans(),
    "it's a list": st.integers(0, 99),
    "note": st.none() | _text.filter(lambda text: text.strip() not in ("null", "None")),
}


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """Name and arguments of a call that a schema allows, the arguments in any order."""
    tool = TOOLS[draw(st.sampled_from(sorted(TOOLS)))]
    chosen = [each.name for each in tool.parameters if each.required or draw(st.booleans())]
    return tool.name, {name: draw(_values[name]) for name in draw(st.permutations(chosen))}


def written(name: str, arguments: dict[str, Any], dialect: CallDialect) -> str:
    """The call between the outer tags."""
    if dialect == "json":
        call = {"name": name, "arguments": in_order_of_schema(name, arguments)}
        return f"\n{json.dumps(call, ensure_ascii=False)}\n"
    lines = "".join(f"<parameter={each}>\n{_shown(value)}\n</parameter>\n" for each, value in arguments.items())
    return f"\n<function={name}>\n{lines}</function>\n"


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def in_order_of_schema(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """JSON grammars want the order of the schema, the required parameters first."""
    parameters = sorted(TOOLS[name].parameters, key=lambda each: not each.required)
    return {each.name: arguments[each.name] for each in parameters if each.name in arguments}
