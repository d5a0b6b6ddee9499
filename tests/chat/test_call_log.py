"""The log of a chat has every call once, with all that was asked and how it was allowed."""

import json
from pathlib import Path

import msgspec
import pytest

from qwendesk.chat.tree_edits import copied_path, edited_answer, new_answer, new_question
from qwendesk.chat.view.thread.tools.call_log_dialog import log_json, log_text, logged_calls, write_log
from qwendesk.core.conversation import ChatNode, ChatTree
from qwendesk.core.errors import BadRequest
from qwendesk.core.messages import CallRecord, Message, ToolCall, ToolStep, text_message
from qwendesk.core.tool_context import ToolLook

LOOKS = {"read_file": ToolLook("Read file")}
READ = CallRecord(
    ToolCall("read_file", '{"path": "a.txt"}'),
    is_done=True,
    result="one\ntwo",
    elapsed_s=0.25,
    id="a",
    began_s=1e9,
    consent="unasked",
)
REFUSED = CallRecord(
    ToolCall("send", '{"text": "hi"}'), is_done=True, error="No.", id="b", began_s=1e9 + 5, consent="refused"
)
CUT_OFF = CallRecord(ToolCall("send", '{"text"'), id="c", began_s=1e9 + 9)


def answer(question: ChatNode, *records: CallRecord) -> ChatNode:
    message = Message("assistant", steps=tuple(ToolStep((record,)) for record in records))
    return msgspec.structs.replace(new_answer(question.id), message=message)


def chat() -> ChatTree:
    """Return a chat with two versions of an answer, the later one edited by the user."""
    question = new_question("", text_message("user", "Look"))
    first, second = answer(question, CUT_OFF), answer(question, READ, REFUSED)
    tree = ChatTree().with_node(question).with_node(first).with_node(second)
    return tree.with_node(edited_answer(second, text="Mine", reasoning=""))


def test_every_call_is_there_once_in_the_order_in_which_they_ran() -> None:
    assert [call.record for call in logged_calls(chat())] == [READ, REFUSED, CUT_OFF]
    copy = copied_path(chat(), "")
    assert [call.record for call in logged_calls(copy)] == [READ, REFUSED]


def test_calls_of_a_running_answer_are_there_once_they_run() -> None:
    running = msgspec.structs.replace(READ, id="d", began_s=2e9, is_done=False)
    steps = (ToolStep((READ, running, CallRecord(ToolCall("send")))),)
    assert [call.record for call in logged_calls(chat(), steps)] == [READ, REFUSED, CUT_OFF, running]


def test_calls_of_older_chats_have_the_time_of_their_answer() -> None:
    old = CallRecord(ToolCall("read_file"), True, "x")
    question = new_question("", text_message("user", "Look"))
    node = answer(question, old, old)
    calls = logged_calls(ChatTree().with_node(question).with_node(node))
    assert [call.time_s for call in calls] == [node.created_s] * 2


def test_text_has_everything_in_full() -> None:
    text = log_text(logged_calls(chat()), LOOKS)
    first, second, third = text.split("\n\n")
    assert first.split("\n")[1:] == ['{"path": "a.txt"}', "one", "two"]
    assert first.split("\n")[0].endswith("Read file (read_file)   Ran without asking   0.2 s")
    assert "Refused" in second
    assert "Error: No." in second
    assert "Interrupted" in third


def test_json_can_be_read_by_programs(tmp_path: Path) -> None:
    write_log(tmp_path / "calls.json", logged_calls(chat()), LOOKS)
    first, second, third = json.loads((tmp_path / "calls.json").read_bytes())
    assert first == {
        "time": "2001-09-09T01:46:40Z", "tool": "read_file", "arguments": {"path": "a.txt"}, "consent": "unasked",
        "is_done": True, "result": "one\ntwo", "error": None, "elapsed_s": 0.25,
    }  # fmt: skip
    assert (second["consent"], second["error"]) == ("refused", "No.")
    assert (third["arguments"], third["is_done"]) == ('{"text"', False)
    assert json.loads(log_json(())) == []


def test_text_file_by_its_name(tmp_path: Path) -> None:
    write_log(tmp_path / "calls.txt", logged_calls(chat()), LOOKS)
    assert (tmp_path / "calls.txt").read_text().startswith("2001-09-")


def test_file_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    with pytest.raises(BadRequest, match="Choose another location"):
        write_log(tmp_path / "x" / "calls.json", logged_calls(chat()), LOOKS)
