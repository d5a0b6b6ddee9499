"""The grammar of a tool call, so that what a model calls is valid by construction.

It begins after the token `<tool_call>` and ends with the token `</tool_call>`. A string in XML goes on until
"\\n</parameter>\\n" and may be any text, as in llama.cpp's own grammar, or one of the values that the schema lists.
What a grammar can't express (lengths of such strings, patterns, limits of numbers, several conditions at once, a string
that reads like another type that is allowed too) is left to whoever checks the arguments before the call.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from qwendesk.engine.worker.schema_grammar import SchemaGrammar, quoted
from qwendesk.engine.worker.tools import Parameter, Tool, as_json, has_type, referred_to

CallDialect = Literal["xml", "json"]

END_OF_TEXT_VALUE = "\n</parameter>\n"
"""What ends a string in XML."""
_MOST_REFERENCES = 16
"""A schema that refers to others in a longer chain lists no values."""
_MOST_IN_ANY_ORDER = 6
"""Of the required parameters; more of them come in the order of the schema. The number of rules doubles with each."""


def call_grammar(tools: Mapping[str, Tool], dialect: CallDialect, end_token: int) -> str:
    """Return a GBNF grammar of one call of any of `tools`. `end_token` is the id of `</tool_call>`."""
    return _CallGrammar(dialect).text(list(tools.values()), end_token)


class _CallGrammar:
    """Collects the rules of one grammar."""

    def __init__(self, dialect: CallDialect) -> None:
        self._dialect = dialect
        self._values = SchemaGrammar()
        self._rules: dict[str, str] = {}

    def text(self, tools: Sequence[Tool], end_token: int) -> str:
        write = self._xml_tool if self._dialect == "xml" else self._json_tool
        names = [f"tool-{number}" for number in range(len(tools))]
        for name, tool in zip(names, tools, strict=True):
            self._rules[name] = write(name, tool)
        self._rules["root"] = f'"\\n" ({" | ".join(names)}) "\\n" <[{end_token}]>'
        rules = "\n".join(f"{name} ::= {rule}" for name, rule in self._rules.items())
        return f"{rules}\n{self._values.rules()}\n"

    def _json_tool(self, name: str, tool: Tool) -> str:
        arguments = self._value(tool.schema or {"type": "object"}, tool, f"{name}-arguments")
        head = f'{{"name": {json.dumps(tool.name, ensure_ascii=False)}, "arguments": '
        return f'{quoted(head)} {arguments} "}}"'

    def _xml_tool(self, name: str, tool: Tool) -> str:
        required = [each for each in tool.parameters if each.required]
        optional = [each for each in tool.parameters if not each.required]
        rules = {}
        for number, parameter in enumerate(tool.parameters):
            rules[parameter.name] = f"{name}-parameter-{number}"
            self._rules[rules[parameter.name]] = self._xml_parameter(rules[parameter.name], parameter, tool)
        between = ""
        if optional:
            self._rules[f"{name}-optional"] = f"({' | '.join(rules[each.name] for each in optional)})*"
            between = f"{name}-optional "
        first = self._in_any_order(name, [rules[each.name] for each in required], between)
        return f'{quoted(f"<function={tool.name}>")} "\\n" {first} "</function>"'

    def _in_any_order(self, name: str, required: Sequence[str], between: str) -> str:
        """Return what stands for all of `required`, once each, with `between` before, between and after them."""
        if len(required) > _MOST_IN_ANY_ORDER:
            return between + "".join(f"{each} {between}" for each in required)
        everything = (1 << len(required)) - 1
        for left in range(1, everything + 1):
            ways = (
                f"{rule} {self._rest(name, left & ~(1 << number), between)}"
                for number, rule in enumerate(required)
                if left >> number & 1
            )
            self._rules[f"{name}-left-{left}"] = f"{between}({' | '.join(ways)})"
        return self._rest(name, everything, between)

    def _rest(self, name: str, left: int, between: str) -> str:
        return f"{name}-left-{left}" if left else between.rstrip()

    def _xml_parameter(self, name: str, parameter: Parameter, tool: Tool) -> str:
        head = f'{quoted(f"<parameter={parameter.name}>")} "\\n"'
        texts = _allowed_texts(parameter, tool)
        if texts:
            return f"{head} ({' | '.join(map(quoted, texts))}) {quoted(END_OF_TEXT_VALUE)}"
        if "string" in parameter.types:
            return f"{head} {self._any_text()}"
        return f"{head} {self._value(parameter.schema, tool, f'{name}-value')} {quoted(END_OF_TEXT_VALUE)}"

    def _any_text(self) -> str:
        """Return the rule of a text with what ends it."""
        if "text-0" not in self._rules:
            self._rules.update(_until(END_OF_TEXT_VALUE, "text"))
        return "text-0"

    def _value(self, schema: Any, tool: Tool, name: str) -> str:
        """Return the rule of a JSON value of `schema`: of any value, if the schema can't be turned into a grammar."""
        with_definitions = {**{key: tool.schema[key] for key in ("$defs", "definitions") if key in tool.schema}}
        whole = {**schema, **with_definitions} if isinstance(schema, dict) else {}
        try:
            return self._values.add(whole, name)
        except Exception:  # noqa: BLE001  the converter raises errors of any kind for what it does not know
            return self._values.visit({"type": "object"} if schema is tool.schema else {}, f"{name}-any")


def _allowed_texts(parameter: Parameter, tool: Tool) -> Sequence[str]:
    """Return the texts of all values that the schema allows, if it lists them and some are strings; else nothing."""
    values = _listed_values(parameter.schema, tool.schema, _MOST_REFERENCES)
    if values is None or "string" not in parameter.types:
        return ()
    return [value if isinstance(value, str) else as_json(value) for value in values if has_type(value, parameter.types)]


def _listed_values(schema: Any, root: Mapping[str, Any], references_left: int) -> list[Any] | None:
    """Return all values that `schema` allows; None if it doesn't list them. Its references point into `root`."""
    if not isinstance(schema, dict) or not references_left:
        return None
    if "$ref" in schema:
        return _listed_values(referred_to(schema["$ref"], root), root, references_left - 1)
    choices = schema.get("anyOf", schema.get("oneOf"))
    if isinstance(choices, list):
        listed = [_listed_values(each, root, references_left - 1) for each in choices]
        return None if None in listed else [value for values in listed for value in values or ()]
    if isinstance(schema.get("enum"), list):
        return list(schema["enum"])
    if "const" in schema:
        return [schema["const"]]
    kind = schema.get("type")
    return [None] if kind == "null" else [False, True] if kind == "boolean" else None


def _until(end: str, name: str) -> Iterator[tuple[str, str]]:
    """Return rules for any text up to the first `end`, and for `end` itself; the first of them is `name`-0.

    Rule number n stands for a text whose last n characters are the beginning of `end`.
    """
    for matched in range(len(end)):
        ways = []
        for character in dict.fromkeys(end):
            longest = _longest_beginning(end, end[:matched] + character)
            if longest == len(end):
                ways.append(quoted(character))
            elif longest:
                ways.append(f"{quoted(character)} {name}-{longest}")
        leading = "".join(c for c in dict.fromkeys(end) if _longest_beginning(end, end[:matched] + c))
        ways.append(f"[^{_in_class(leading)}] {name}-0")
        yield f"{name}-{matched}", " | ".join(ways)


def _longest_beginning(end: str, text: str) -> int:
    """Return the length of the longest beginning of `end` that `text` ends with."""
    return next(length for length in range(len(text), -1, -1) if text.endswith(end[:length]))


def _in_class(characters: str) -> str:
    return "".join({"\n": "\\n", "]": "\\]", "\\": "\\\\", "^": "\\^"}.get(c, c) for c in characters)
