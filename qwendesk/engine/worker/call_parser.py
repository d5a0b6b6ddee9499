"""Read tool calls as the model writes them: name and arguments while they arrive, and whole calls, damaged ones too.

Qwen's models write calls in one of two dialects. Since Qwen3.5, a call is XML:

    <tool_call>
    <function=NAME>
    <parameter=PARAMETER>
    value
    </parameter>
    </function>
    </tool_call>

Older ones write `{"name": NAME, "arguments": {...}}` between the outer tags. A model that slips writes the other one,
so both are always tried. A call that can be understood is never dropped.

The pieces joined are the arguments of the finished call. That holds for calls that follow the grammar; for a damaged
call the stream stops where it no longer understands, and `call_parser.parse_call` decides what the call was.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

import msgspec

from qwendesk.core.json_decoding import decode_json
from qwendesk.core.messages import ToolCall
from qwendesk.engine.worker.tools import CallableTool, Parameter, as_json, python_value, typed_value

END_TAG = "</parameter>"
# What ends a value. The line break before an empty one is that of the tag which begins it, or is missing.
#
# A closing tag with anything else after it is part of the text.
END_OF_VALUE = re.compile(r"\n</parameter>[ \t\r\n]*(?=<parameter=|</function>)")
END_WITH_TAG = re.compile(END_OF_VALUE.pattern.replace("(?=", "(?:"))
# Characters that no name has which stands in a tag as it is, as in a class of GBNF and of regular expressions.
NOT_IN_NAME = r">\x00-\x1F\x7F"
JSON_NAME = r'"(?:[^"\\\x00-\x1F]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"'
_PLAIN_NAME = re.compile(rf'(?![\s"])[^{NOT_IN_NAME}\ud800-\udfff]+(?<!\s)')


def _partly(text: str, then: str = "") -> str:
    """Return a regular expression of all beginnings of `text`, and of `text` with `then` after it."""
    for character in reversed(text):
        then = f"(?:{re.escape(character)}{then})?"
    return then


# What may become the end of a value with the text that follows.
BEGUN_END = re.compile("\n" + _partly(END_TAG, rf"[ \t\r\n]*(?:{_partly('<parameter=')}|{_partly('</function>')})"))


def written_name(name: str) -> str:
    """Return a name as it stands in a tag: as it is, or as JSON if it could be mistaken for something else then."""
    return name if _PLAIN_NAME.fullmatch(name) else as_json(name)


def names_by_form(names: Iterable[str]) -> dict[str, str]:
    """Return the names by all forms in which they may stand in a tag, as the grammar and as a template write them."""
    known = list(names)
    return {name: name for name in known} | {written_name(name): name for name in known}


def tag(kind: str, names: Iterable[str], others: str, *, equals: str = "=", quote: str = "", end: str = ">") -> str:
    """Return a regular expression of a tag with one of `names`, any name as JSON, or one that `others` matches."""
    known = "|".join(map(re.escape, sorted(names, key=len, reverse=True))) or "(?!)"
    forms = rf"(?:{quote}(?P<known>{known}){quote}(?=\s*>)|(?P<json>{JSON_NAME})|{quote}(?P<other>{others}){quote})"
    return f"<{kind}{equals}{forms}{end}"


def tag_name(found: re.Match[str], names: Mapping[str, str]) -> str:
    """Return the name in a tag that was found; `names` are those known, by form."""
    if found["known"] is not None:
        return names[found["known"]]
    return found["other"] if found["json"] is None else str(json.loads(found["json"]))


def can_be_value(text: str) -> bool:
    """Return whether a text ends where it should when it stands between its tags."""
    found = END_OF_VALUE.search(f"\n{text}\n{END_TAG}\n</function>")
    return found is not None and found.start() == 1 + len(text)


_JSON_HEAD = re.compile(rf'\s*\{{"name":\s*({JSON_NAME}),\s*"arguments":\s*(?=\{{)')
# A name that nobody described.
_NAME = r"[^\s<>\"']+"
_BEGUN_END = re.compile(rf"(?:{BEGUN_END.pattern})\Z")
_END = re.compile(r"\s*</function>")

_Place = Literal["head", "parameters", "text", "value", "json", "end"]


class CallPiece(msgspec.Struct, frozen=True):
    """`name` is set once, in the first piece."""

    name: str = ""
    arguments: str = ""


class CallStream:
    """Takes the text of one call, without the outer tags."""

    def __init__(self, tools: Mapping[str, CallableTool]) -> None:
        self._tools = tools
        self._place: _Place = "head"
        self._unread = ""
        self._tool: CallableTool | None = None
        self._parameter: Parameter | None = None
        self._is_at_start = False
        self._n_parameters = 0
        self._depth = 0
        self._in_string = self._escaped = False

    @property
    def is_whole(self) -> bool:
        """Whether the arguments are complete."""
        return self._place == "end"

    def feed(self, text: str) -> CallPiece:
        """Return what `text` adds to the call; both parts may be empty."""
        self._unread += text
        name, arguments = "", ""
        while True:
            place, length = self._place, len(self._unread)
            match place:
                case "head":
                    name = self._read_head()
                case "parameters":
                    arguments += self._read_parameter_head()
                case "text":
                    arguments += self._read_text()
                case "value":
                    arguments += self._read_value()
                case "json":
                    arguments += self._read_json()
                case "end":
                    self._unread = ""
            if (self._place, len(self._unread)) == (place, length):
                return CallPiece(name, arguments)

    def _read_head(self) -> str:
        names = names_by_form(self._tools)
        if found := re.match(rf"\s*{tag('function', names, _NAME)}\n", self._unread):
            name, self._place = tag_name(found, names), "parameters"
        elif found := _JSON_HEAD.match(self._unread):
            name, self._place = json.loads(found[1]), "json"
        else:
            return ""
        self._unread = self._unread[found.end() :]
        self._tool = self._tools.get(name)
        return name

    def _read_parameter_head(self) -> str:
        if _END.match(self._unread):
            self._place = "end"
            return "}" if self._n_parameters else "{}"
        names = names_by_form(each.name for each in self._tool.parameters) if self._tool else {}
        others = f"[^{NOT_IN_NAME}]+" if self._tool and self._tool.others else _NAME
        found = re.match(rf"\s*{tag('parameter', names, others)}(?=\n|</parameter>)", self._unread)
        if not found:
            return ""
        name = tag_name(found, names)
        # The line break of the tag is that of an empty value's end too.
        self._unread, self._is_at_start = "\n" + self._unread[found.end() :].removeprefix("\n"), True
        self._parameter = self._tool.parameter(name) if self._tool else None
        is_text = self._parameter is not None and self._parameter.is_text
        self._place = "text" if is_text else "value"
        self._n_parameters += 1
        head = f"{'{' if self._n_parameters == 1 else ', '}{as_json(name)}: "
        return head + '"' if is_text else head

    def _read_text(self) -> str:
        end = END_OF_VALUE.search(self._unread)
        if end:
            return as_json(self._take_value(end))[1:-1] + '"'
        begun = _BEGUN_END.search(self._unread)
        text = self._unread[: begun.start()] if begun else self._unread
        self._unread = self._unread[len(text) :]
        return as_json(self._without_break(text))[1:-1]

    def _read_value(self) -> str:
        end = END_OF_VALUE.search(self._unread)
        return as_json(typed_value(self._take_value(end), self._parameter)) if end else ""

    def _take_value(self, end: re.Match[str]) -> str:
        text = self._without_break(self._unread[: end.start()])
        self._place, self._unread = "parameters", self._unread[end.end() :]
        return text

    def _without_break(self, text: str) -> str:
        """Return text of a value, without the line break of its tag."""
        if text:
            text, self._is_at_start = text[self._is_at_start :], False
        return text

    def _read_json(self) -> str:
        """Pass an object on as it is, up to the brace that closes it."""
        for index, character in enumerate(self._unread):
            if self._in_string:
                self._in_string = self._escaped or character != '"'
                self._escaped = character == "\\" and not self._escaped
            elif character == '"':
                self._in_string = True
            elif character in "{[":
                self._depth += 1
            elif character in "}]":
                self._depth -= 1
                if not self._depth:
                    passed, self._unread, self._place = self._unread[: index + 1], "", "end"
                    return passed
        passed, self._unread = self._unread, ""
        return passed


_IN_TAG = {"equals": r"\s*=\s*", "quote": "[\"']?"}
# Names that nobody described.
_FUNCTION_NAME, _PARAMETER_NAME = "[^\\s>\"'<]+", "[^>\"'<\n]*[^\\s>\"'<]"
_END_OF_VALUE = re.compile(r"(?:\r?\n)?[ \t]*</parameter>(?=\s*(?:<parameter\s*=|</function>|</tool_call>|\Z))")
_END_WITHOUT_TAG = re.compile(r"\r?\n[ \t]*(?=<parameter\s*=|</function>)|</function>|\r?\n</tool_call>")
_NAMES = ("name", "function", "tool", "tool_name")
_ARGUMENTS = ("arguments", "parameters", "args", "input")
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")


def parse_call(text: str, tools: Mapping[str, CallableTool]) -> ToolCall | None:
    """Return the call in `text`, which is what stands between the outer tags; None if there is none to be understood.

    The tool need not be one of `tools`; if it is, the values of its parameters get the types of its schema.
    """
    return _undamaged(text, tools) or _damaged(text, tools)


def _undamaged(text: str, tools: Mapping[str, CallableTool]) -> ToolCall | None:
    """Read a call that follows the grammar, in which a string may hold anything, tags included.

    If a required parameter is missing then, a closing tag is missing rather, and the parameter stands in a string.
    """
    stream = CallStream(tools)
    piece = stream.feed(text)
    if not stream.is_whole:
        return None
    try:
        arguments = decode_json(piece.arguments)
    except msgspec.DecodeError:
        return None
    tool = tools.get(piece.name)
    if tool and any(each.required and each.name not in arguments for each in tool.parameters):
        return None
    return ToolCall(piece.name, piece.arguments)


def _damaged(text: str, tools: Mapping[str, CallableTool]) -> ToolCall | None:
    names = names_by_form(tools)
    function = re.search(tag("function", names, _FUNCTION_NAME, **_IN_TAG, end=r"\s*>?"), text)
    brace = text.find("{")
    if function and (brace < 0 or function.start() < brace):
        return _from_xml(tag_name(function, names), text[function.end() :], tools)
    return _from_json(text[brace:], tools) if brace >= 0 else None


def _from_xml(name: str, body: str, tools: Mapping[str, CallableTool]) -> ToolCall:
    tool = tools.get(name)
    arguments = {}
    for parameter, text in _values(body, tool):
        known = tool.parameter(parameter) if tool else None
        arguments[parameter] = typed_value(text, known)
    if not arguments and (brace := body.find("{")) >= 0:  # JSON arguments between XML tags
        found = _read_object(body[brace:])
        arguments = found if found is not None else {}
    return ToolCall(name, as_json(arguments))


def _values(body: str, tool: CallableTool | None) -> Iterator[tuple[str, str]]:
    """Return the parameters and their texts, in order."""
    names = names_by_form(each.name for each in tool.parameters) if tool else {}
    parameter = re.compile(tag("parameter", names, _PARAMETER_NAME, **_IN_TAG, end=r"\s*>(?:\r?\n)?"))
    begin = parameter.search(body)
    while begin:
        end = _END_OF_VALUE.search(body, begin.end()) or _END_WITHOUT_TAG.search(body, begin.end())
        following = parameter.search(body, begin.end())
        if end and following and following.start() < end.start():
            # The end belongs to a later parameter: this one's own is missing.
            end = _END_WITHOUT_TAG.search(body, begin.end()) or end
        text = body[begin.end() : end.start()] if end else body[begin.end() :].removesuffix("\n")
        yield tag_name(begin, names), text
        begin = parameter.search(body, end.end()) if end else None


def _from_json(text: str, tools: Mapping[str, CallableTool]) -> ToolCall | None:
    found = _read_object(text)
    if found is None:
        return None
    for key in ("function", "tool_call"):
        inner = found.get(key)
        if isinstance(inner, dict):  # {"function": {"name": ..., "arguments": ...}}
            found = inner
    name = next((found[key] for key in _NAMES if isinstance(found.get(key), str)), "")
    if not name:
        return None
    key = next((key for key in _ARGUMENTS if key in found), "")
    arguments = found.get(key, {})
    if isinstance(arguments, str):  # JSON in a string, as in OpenAI's API
        arguments = _read_object(arguments)
    if not isinstance(arguments, dict):
        arguments = {}
    if not key:  # the arguments beside the name
        arguments = {each: value for each, value in found.items() if each not in (*_NAMES, "type", "id")}
    return ToolCall(name, as_json(arguments))


def _read_object(text: str) -> dict[str, Any] | None:
    """Return the JSON object that `text` begins with, mended if it is damaged; None if it cannot be read."""
    with_end = text + _missing_end(text)
    for attempt in (text, with_end, _TRAILING_COMMA.sub(r"\1", with_end)):
        try:
            value, _ = json.JSONDecoder(strict=False).raw_decode(attempt)
        except (ValueError, RecursionError):
            continue
        return value if isinstance(value, dict) else None
    value = python_value(_object_text(with_end))  # single quotes, True, None
    return value if isinstance(value, dict) else None


def _missing_end(text: str) -> str:
    """Return the quotes, brackets and braces that `text` lacks at its end."""
    expected: list[str] = []
    in_text = escaped = False
    for character in text:
        if in_text:
            in_text = escaped or character != '"'
            escaped = character == "\\" and not escaped
        elif character == '"':
            in_text = True
        elif character in "{[":
            expected.append("}" if character == "{" else "]")
        elif character in "}]" and expected:
            expected.pop()
            if not expected:
                return ""
    return ('"' if in_text else "") + "".join(reversed(expected))


def _object_text(text: str) -> str:
    """Return `text` up to the brace that closes the first one."""
    depth = 0
    for index, character in enumerate(text):
        depth += (character == "{") - (character == "}")
        if not depth:
            return text[: index + 1]
    return text
