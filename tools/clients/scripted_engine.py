"""An engine that answers as a model would that does what it is asked: it reads a file with the program's own tool."""

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from qwendesk.core.messages import Message, ToolCall
from qwendesk.engine.protocol import Generate
from tests.fakes.answer_stream import FakeAnswerStream, ScriptedAnswer
from tests.fakes.engine import DEMO_REPORT, FakeEngineClient

RECORD_VARIABLE: Final = "QWENDESK_CLIENTS_RECORD"
"""An environment variable with the file in which requests are recorded, a line of JSON for each."""
_TOLD = re.compile(r"read the file (\S+)", re.IGNORECASE)
"""What the question of tools/clients/rounds.py says."""
_TITLE = "A word in a file"
"""The answer to all else: some programs ask for a title of the conversation."""

_READERS: Final[Mapping[str, Callable[[str], dict[str, Any]]]] = {
    "Read": lambda path: {"file_path": path, "filepath": path},
    "read": lambda path: {"filePath": path},
    "read_file": lambda path: {"path": path},
    "read_files": lambda path: {"files": [{"path": path}]},
    "exec_command": lambda path: {"cmd": f"cat {path}"},
    "shell_command": lambda path: {"command": f"cat {path}"},
    "shell": lambda path: {"command": ["cat", path]},
}
"""By name, the tool with which a program's model reads a file, and its arguments."""

REPORT = msgspec.structs.replace(
    DEMO_REPORT,
    n_ctx=262_144,
    n_ctx_train=262_144,
    template=msgspec.structs.replace(DEMO_REPORT.template, tools=True, call_dialect="xml"),
)


class ScriptedEngine(FakeEngineClient):
    """Decides by what it is asked, so that the order of a program's requests doesn't matter."""

    def __init__(self) -> None:
        super().__init__(REPORT)

    def generate(self, request: Generate) -> FakeAnswerStream:
        answer = scripted_answer(request.messages, request.tools_json)
        _record(request, answer)
        self.answers = [answer]
        return super().generate(request)


def scripted_answer(messages: Sequence[Message], tools_json: Sequence[str]) -> ScriptedAnswer:
    """Return a call of the tool that reads the file, what it returned if it was called, or a title."""
    if messages and messages[-1].role == "tool":
        return ScriptedAnswer(reasoning="Now I know it.", text=f"The file says: {messages[-1].text}", chunk=2)
    told = [match[1] for each in messages if each.role == "user" for match in _TOLD.finditer(each.text)]
    schemas = {tool["name"]: tool.get("parameters", {}) for tool in map(_function, tools_json)}
    reader = next((name for name in schemas if name in _READERS), "")
    if not told or not reader:
        return ScriptedAnswer(text=_TITLE)
    known = schemas[reader].get("properties", {})
    arguments = _READERS[reader](told[-1].rstrip(".,"))
    used = {key: value for key, value in arguments.items() if key in known} or arguments
    call = ToolCall(reader, json.dumps(used))
    return ScriptedAnswer(reasoning="I should read it.", text="I read the file.", calls=(call,), chunk=2)


def _function(tool_json: str) -> dict[str, Any]:
    function: dict[str, Any] = json.loads(tool_json)["function"]
    return function


def _call_values(call: ToolCall) -> list[Any]:
    return [call.name, json.loads(call.arguments_json)]


def _record(request: Generate, answer: ScriptedAnswer) -> None:
    path = os.environ.get(RECORD_VARIABLE, "")
    if not path:
        return
    messages, tools_json = request.messages, request.tools_json
    made = [each for message in messages for each in message.tool_calls]
    line = {
        "characters": sum(len(each.text) for each in messages) + sum(map(len, tools_json)),
        "tools": [_function(tool)["name"] for tool in tools_json],
        "called": [_call_values(call) for call in answer.calls],
        "sent_back": [_call_values(call) for call in made],
        "result": messages[-1].text if messages and messages[-1].role == "tool" else "",
    }
    with Path(path).open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
