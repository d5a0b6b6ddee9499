"""Turn the text of a tool call into its name and pieces of JSON arguments while the model still writes it.

The pieces joined are the arguments of the finished call. That holds for calls that follow the grammar; for a damaged
call the stream stops where it no longer understands, and `call_parser.parse_call` decides what the call was.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Literal

import msgspec

from qwendesk.engine.worker.call_tags import (
    BEGUN_END,
    END_OF_VALUE,
    JSON_NAME,
    NOT_IN_NAME,
    names_by_form,
    tag,
    tag_name,
)
from qwendesk.engine.worker.tools import CallableTool, Parameter, as_json, typed_value

_JSON_HEAD = re.compile(rf'\s*\{{"name":\s*({JSON_NAME}),\s*"arguments":\s*(?=\{{)')
_NAME = r"[^\s<>\"']+"
"""A name that nobody described."""
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
