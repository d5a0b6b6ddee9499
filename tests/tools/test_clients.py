"""What `make clients` does without a network: the scripted engine's answers, and the table."""

import json
from pathlib import Path

import pytest

from qwendesk.core.messages import Message, TextPart
from qwendesk.server.setups.trial import TrialResult
from tools.clients import __main__ as clients
from tools.clients.rounds import CLIENTS, Round, judged
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


def test_the_scripted_engine_says_what_the_tool_returned_and_gives_a_title_to_all_else() -> None:
    assert "periwinkle" in scripted_answer([QUESTION, said("tool", "periwinkle")], [tool("Read", "file_path")]).text
    for messages, tools in (([QUESTION], []), ([said("user", "Hello")], [tool("Read", "file_path")])):
        answer = scripted_answer(messages, tools)
        assert answer.text
        assert not answer.calls


def test_the_table_says_what_worked_and_what_was_not_there(tmp_path: Path) -> None:
    works = Round(works=True, said="", characters=30_400, n_tools=1, called="read")
    rows = [
        clients.Row(CLIENTS[0], "2.1.0", tool=works, demo=Round(works=False, said="nothing")),
        clients.Row(CLIENTS[1], skipped="npm isn't installed"),
    ]
    page = tmp_path / "server.md"
    page.write_text("before\n<!-- table of make clients -->\nold\n<!-- end of the table -->\nafter\n", encoding="utf-8")

    clients._write(page, clients._table(rows))

    text = page.read_text(encoding="utf-8")
    assert "| Claude Code | 2.1.0 | Messages | 30 KB, 1 tool | `read` | works | fails |" in text
    assert "| Codex | – | Responses | – | – | not installed | not installed |" in text
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert rows[0].failed
    assert not rows[1].failed


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
