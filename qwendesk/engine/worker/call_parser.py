"""Read one tool call as the model wrote it, also if tags are missing or its JSON is damaged.

Qwen's models write calls in one of two dialects. Since Qwen3.5, a call is XML:

    <tool_call>
    <function=NAME>
    <parameter=PARAMETER>
    value
    </parameter>
    </function>
    </tool_call>

Older ones write `{"name": NAME, "arguments": {...}}` between the outer tags. A model that slips writes the other one,
so both are always tried. What can be understood is never dropped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from qwendesk.core.json_decoding import decode_json
from qwendesk.core.messages import ToolCall
from qwendesk.engine.worker.call_stream import CallStream
from qwendesk.engine.worker.call_tags import names_by_form, tag, tag_name
from qwendesk.engine.worker.tools import CallableTool, as_json, python_value, typed_value

_IN_TAG = {"equals": r"\s*=\s*", "quote": "[\"']?"}
_FUNCTION_NAME, _PARAMETER_NAME = "[^\\s>\"'<]+", "[^>\"'<\n]*[^\\s>\"'<]"
"""Names that nobody described."""
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
