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

from qwendesk.engine.worker.call_grammar import END_OF_TEXT_VALUE
from qwendesk.engine.worker.tools import Parameter, Tool, as_json, typed_value

_XML_HEAD = re.compile(r"\s*<function=([^\s<>\"']+)>\n")
_JSON_HEAD = re.compile(r'\s*\{"name":\s*("(?:[^"\\]|\\.)*"),\s*"arguments":\s*(?=\{)')
_PARAMETER = re.compile(r"<parameter=([^\s<>\"']+)>\n")
_END = "</function>"

_Place = Literal["head", "parameters", "text", "value", "json", "end"]


class CallPiece(msgspec.Struct, frozen=True):
    """`name` is set once, in the first piece."""

    name: str = ""
    arguments: str = ""


class CallStream:
    """Takes the text of one call, without the outer tags."""

    def __init__(self, tools: Mapping[str, Tool]) -> None:
        self._tools = tools
        self._place: _Place = "head"
        self._unread = ""
        self._tool: Tool | None = None
        self._parameter: Parameter | None = None
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
        if found := _XML_HEAD.match(self._unread):
            name, self._place = found[1], "parameters"
        elif found := _JSON_HEAD.match(self._unread):
            name, self._place = json.loads(found[1]), "json"
        else:
            return ""
        self._unread = self._unread[found.end() :]
        self._tool = self._tools.get(name)
        return name

    def _read_parameter_head(self) -> str:
        if self._unread.startswith(_END):
            self._place = "end"
            return "}" if self._n_parameters else "{}"
        found = _PARAMETER.match(self._unread)
        if not found:
            return ""
        self._unread = self._unread[found.end() :]
        self._parameter = self._tool.parameter(found[1]) if self._tool else None
        is_text = self._parameter is not None and self._parameter.is_text
        self._place = "text" if is_text else "value"
        self._n_parameters += 1
        head = f"{'{' if self._n_parameters == 1 else ', '}{as_json(found[1])}: "
        return head + '"' if is_text else head

    def _read_text(self) -> str:
        text, end, after = self._unread.partition(END_OF_TEXT_VALUE)
        if end:
            self._place, self._unread = "parameters", after
            return as_json(text)[1:-1] + '"'
        held = next(n for n in range(len(END_OF_TEXT_VALUE), -1, -1) if text.endswith(END_OF_TEXT_VALUE[:n]))
        self._unread = text[len(text) - held :]
        return as_json(text[: len(text) - held])[1:-1]

    def _read_value(self) -> str:
        text, end, after = self._unread.partition(END_OF_TEXT_VALUE)
        if not end:
            return ""
        self._place, self._unread = "parameters", after
        return as_json(typed_value(text, self._parameter))

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
