"""What `make clients` does without a network: the scripted engine's answers, and whose fault a failure is."""

import json

import pytest

from qwendesk.core.messages import Message, TextPart
from qwendesk.server.setups.service import TrialResult
from tools.clients import __main__ as clients
from tools.clients.rounds import CLIENTS, judged
from tools.clients.scripted_engine import scripted_answer


def said(role: str, text: str) -> Message:
    return Message(role=role, parts=(TextPart(text),))  # type: ignore[arg-type]


def tool(name: str, *parameters: str) -> str:
    schema = {"type": "object", "properties": {each: {"type": "string"} for each in parameters}}
    return json.dumps({"type": "function", "function": {"name": name, "parameters": schema}})


QUESTION = said("user", "Read the file /made-up/note.txt and tell me the word in it.")


@pytest.mark.parametrize(
    ("tools", "name", "arguments"),
    [
        ([tool("Bash", "command"), tool("Read", "file_path", "limit")], "Read", {"file_path": "/made-up/note.txt"}),
        ([tool("Read", "filepath")], "Read", {"filepath": "/made-up/note.txt"}),
        ([tool("exec_command", "cmd")], "exec_command", {"cmd": "cat /made-up/note.txt"}),
    ],
)
def test_the_scripted_engine_calls_the_programs_own_tool(
    tools: list[str], name: str, arguments: dict[str, str]
) -> None:
    (call,) = scripted_answer([said("system", "You help."), QUESTION], tools).calls
    assert (call.name, json.loads(call.arguments_json)) == (name, arguments)


CALL = ["exec_command", {"cmd": "cat /made-up/note.txt"}]
ASKED = {"characters": 9000, "tools": ["exec_command"], "called": [CALL], "sent_back": [], "result": ""}


@pytest.mark.parametrize(
    ("sent_back", "result", "said", "works", "own_fault"),
    [
        (CALL, "The word is periwinkle.", "The file says: periwinkle", True, ""),
        (CALL, "bwrap: no such program", "The file says: bwrap: no such program", False, "bwrap: no such program"),
        (["exec_command", {}], "cmd is missing", "The file says: cmd is missing", False, ""),
        (CALL, "The word is periwinkle.", "nothing", False, ""),
        (CALL, "", "nothing", False, ""),
    ],
)
def test_a_fault_of_the_programs_own_tool_is_told_from_one_of_the_server(
    sent_back: list[object], result: str, said: str, works: bool, own_fault: str
) -> None:
    lines = [ASKED, {**ASKED, "called": [], "sent_back": [sent_back], "result": result}]
    done = judged(TrialResult(works=True, text=said), "periwinkle", lines)
    assert (done.works, done.own_fault, done.called, done.n_tools) == (works, own_fault, "exec_command", 1)
    assert clients.Row(CLIENTS[1], tool=done).failed == (not works and not own_fault)


def test_without_a_call_the_server_is_to_blame() -> None:
    done = judged(TrialResult(works=True, text="I can't."), "periwinkle", [{**ASKED, "called": []}])
    assert (done.works, done.own_fault, done.called) == (False, "", "")
