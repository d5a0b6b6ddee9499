"""The grammar of a tool call, so that what a model calls is valid by construction.

It begins after the token `<tool_call>` and ends with the token `</tool_call>`. A string in XML goes on until
"\n</parameter>" with the next tag after it, and may be any text, or one of the values that the schema lists. What a
grammar can't express (lengths of such strings, patterns, limits of numbers, a string that reads like another type that
is allowed too) is left to whoever checks the arguments before the call.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Literal

from qwendesk.core.errors import BadRequest
from qwendesk.core.grammar_bounds import check_grammar_bounds
from qwendesk.core.json_schema import SchemaReader
from qwendesk.core.translation import mark
from qwendesk.engine.worker.call_parser import (
    BEGUN_END,
    END_TAG,
    END_WITH_TAG,
    NOT_IN_NAME,
    can_be_value,
    written_name,
)
from qwendesk.engine.worker.schema_grammar import SchemaGrammar, in_class, quoted
from qwendesk.engine.worker.tools import CallableTool, Parameter, as_json, read_tools

CallDialect = Literal["xml", "json"]

# Of the required parameters; more of them come in the order of the schema. The number of rules doubles with each.
_MOST_IN_ANY_ORDER = 6


@functools.lru_cache(maxsize=2)
def tools_and_grammar(
    tools_json: tuple[str, ...], only: str, dialect: CallDialect, end_token: int
) -> tuple[Mapping[str, CallableTool], str]:
    """Return the tools of a request by name (if given, only that one), and the grammar of their calls.

    Kept for the next request, because the requests of an agent have the same tools. Raise BadRequest for tools that
    can't be called, and for so many that the engine couldn't stand their grammar.
    """
    tools = {name: tool for name, tool in read_tools(tools_json).items() if only in ("", name)}
    try:
        text = call_grammar(tools, dialect, end_token)
        check_grammar_bounds(text, allows_tokens=True)
    except (BadRequest, RecursionError) as error:
        why = error.sentence if isinstance(error, BadRequest) else mark("They are nested too deeply.")
        sentence = mark("The schemas of the tools ({0}) are too large for a grammar. {1}")
        raise BadRequest(mark("Invalid tool"), sentence, ", ".join(tools)[:200], why) from error
    return tools, text


def call_grammar(tools: Mapping[str, CallableTool], dialect: CallDialect, end_token: int) -> str:
    """Return a GBNF grammar of one call of any of `tools`. `end_token` is the id of `</tool_call>`."""
    rules = SchemaGrammar()
    if dialect == "json":
        ways = {as_json(tool.name): _json_arguments(rules, tool) for tool in tools.values()}
        call = f'"{{\\"name\\": " {rules.rule(rules.choice(ways))} "}}"'
    else:
        ways = {f"{written_name(tool.name)}>\n": _XmlTool(rules, tool).call() for tool in tools.values()}
        call = f'"<function=" {rules.rule(rules.choice(ways))}'
    rules.add({"root": f'"\\n" {call} "\\n" <[{end_token}]>'})
    return f"{rules.rules()}\n"


def _json_arguments(rules: SchemaGrammar, tool: CallableTool) -> str:
    arguments = rules.rule(rules.object(tool.arguments, SchemaReader(tool.schema)))
    return rules.rule(f'", \\"arguments\\": " {arguments}')


class _XmlTool:
    """Makes the rules of a call of one tool, from its name on."""

    def __init__(self, rules: SchemaGrammar, tool: CallableTool) -> None:
        self._rules, self._tool, self._reader = rules, tool, SchemaReader(tool.schema)
        self._required, optional = {}, {}
        for each in tool.parameters:
            if each.required:
                self._required[f"{written_name(each.name)}>"] = self._value(each)
            elif each.schema is not False:
                optional[f"{written_name(each.name)}>"] = self._value(each)
        ways = [rules.choice(optional)] if optional else []
        if tool.others is not None:
            ways.append(f'{self._other_name()} ">" {self._value(tool.others)}')
        self._optional = rules.rule(" | ".join(ways)) if ways else ""

    def call(self) -> str:
        """Return the name of a rule of all parameters, and the closing tag."""
        required = list(self._required.items())
        if len(required) > _MOST_IN_ANY_ORDER:
            rule = self._parameters({})
            for tag, value in reversed(required):
                rule = self._parameters({tag: self._rules.rule(f"{value} {rule}")})
            return rule
        left: list[str] = []
        """The rules of what is still to come, by the bits of the required parameters in that."""
        for bits in range(1 << len(required)):
            following = {
                tag: self._rules.rule(f"{value} {left[bits & ~(1 << number)]}")
                for number, (tag, value) in enumerate(required)
                if bits >> number & 1
            }
            left.append(self._parameters(following))
        return left[-1]

    def _parameters(self, following: Mapping[str, str]) -> str:
        """Return the name of a rule of any optional parameters, and then one of those that follow, or the end."""
        end = f'"<parameter=" {self._rules.rule(self._rules.choice(following))}' if following else '"</function>"'
        return self._rules.rule(f'("<parameter=" {self._optional})* {end}' if self._optional else end)

    def _other_name(self) -> str:
        """Return the name of a rule of names that no parameter has: as they are, or as JSON."""
        names = [each.name for each in self._tool.parameters]
        as_they_are = [name for name in names if written_name(name) == name]
        plain = self._rules.any_but(as_they_are, NOT_IN_NAME, not_first='" ')
        return self._rules.rule(f"{plain} | {self._rules.string_but(names)}")

    def _value(self, parameter: Parameter) -> str:
        """Return the name of a rule of what follows the beginning of a parameter, up to its last tag."""
        if texts := self._listed_texts(parameter):
            empty = (f"\n{END_TAG}\n", f"{END_TAG}\n") if "" in texts else ()
            ways = dict.fromkeys((*empty, *(f"\n{text}\n{END_TAG}\n" for text in texts)), "")
            return self._rules.rule(self._rules.choice(ways))
        if "string" in parameter.types:
            self._rules.add(_TEXT_RULES)
            return self._rules.rule(f'"\\n" text-0 | "{END_TAG}" [ \\t\\r\\n]*')
        value = self._rules.without_blank(self._rules.value(parameter.schema, self._reader))
        return self._rules.rule(f'"\\n" {value} "\\n{END_TAG}\\n"')

    def _listed_texts(self, parameter: Parameter) -> Sequence[str]:
        """Return the texts of all values that the schema allows if it lists them.

        They are written as templates write them, without a blank after a number: what a model writes otherwise has to
        be read again with the next prompt.
        """
        values = self._reader.listed_values(parameter.schema)
        texts = (value if isinstance(value, str) else as_json(value) for value in values or ())
        return [text for text in texts if can_be_value(text)]


def _text_rules() -> dict[str, str]:
    """Return rules of any text with what ends it. text-0 is that of a text after the line break of its tag.

    Each rule stands for a text whose last characters may be the beginning of the end. Where the end is whole, a tag may
    follow; what goes on with such a tag inside the rule isn't text.
    """
    states, rules = ["\n", ""], {}
    for number, state in enumerate(states):  # it grows
        ways, leading = ['""'] if _is_end(state) else [], []
        for character in sorted(set(f"{END_TAG}<parameter=</function> \t\r\n")):
            following = _end_of(state + character)
            if following == "":
                continue
            leading.append(character)
            if following is not None:
                states += [following] if following not in states else []
                ways.append(f"{quoted(character)} text-{states.index(following)}")
        ways.append(f"[^{''.join(map(in_class, leading))}] text-1")
        rules[f"text-{number}"] = " | ".join(ways)
    return rules


def _is_end(text: str) -> bool:
    return text.startswith(f"\n{END_TAG}") and "<" not in text[len(END_TAG) + 1 :]


def _end_of(text: str) -> str | None:
    """Return what of `text` may be the beginning of the end, without needless blanks; None if a tag follows it."""
    for start in range(len(text)):
        if END_WITH_TAG.fullmatch(text, start):
            return None
        if BEGUN_END.fullmatch(text, start):
            head, tag, tail = text[start:].partition(END_TAG)
            blanks = tail[: len(tail) - len(tail.lstrip())]
            return head + tag + ("\n" if blanks.endswith("\n") else "") + tail[len(blanks) :]
    return ""


_TEXT_RULES = _text_rules()
