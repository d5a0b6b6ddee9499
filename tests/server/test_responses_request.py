"""Requests of OpenAI's responses, as questions to the engine."""

import json
from typing import Any

import pytest

from qwendesk.core.messages import ToolCall
from qwendesk.server.fields import Fields
from qwendesk.server.question import Question
from qwendesk.server.refusals import Refused
from qwendesk.server.responses import read_responses_request


def read(**fields: Any) -> Question:
    return read_responses_request(Fields({"input": "Hi", **fields}))


def test_a_text_is_a_question_and_instructions_are_the_system_prompt() -> None:
    question = read(instructions="Be brief.")
    assert [(each.message.role, each.message.text) for each in question.messages] == [
        ("system", "Be brief."), ("user", "Hi"),
    ]  # fmt: skip


def test_reasoning_text_and_calls_of_one_turn_are_one_message() -> None:
    question = read(
        input=[
            {"role": "developer", "content": "Rules."},
            {"role": "user", "content": [{"type": "input_text", "text": "List the files"}]},
            {"type": "reasoning", "id": "rs", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Looking."}]},
            {"type": "function_call", "call_id": "a", "name": "shell", "arguments": '{"command": "ls"}'},
            {"type": "function_call", "call_id": "b", "name": "shell", "arguments": '{"command": "pwd"}'},
            {"type": "function_call_output", "call_id": "b", "output": "/tmp"},
            {"type": "function_call_output", "call_id": "a", "output": [{"type": "input_text", "text": "a.txt"}]},
            {"type": "reasoning", "summary": [], "encrypted_content": "secret"},
            {"role": "assistant", "content": "Done."},
            {"type": "web_search_call", "id": "ws", "status": "completed"},
            {"role": "user", "content": "Thanks"},
        ]
    )
    sent = [each.message for each in question.messages]
    assert [each.role for each in sent] == ["system", "user", "assistant", "tool", "tool", "assistant", "user"]
    assert (sent[2].reasoning, sent[2].text) == ("Hm.", "Looking.")
    assert sent[2].tool_calls == (ToolCall("shell", '{"command": "ls"}'), ToolCall("shell", '{"command": "pwd"}'))
    assert question.messages[2].call_ids == ("a", "b")
    assert [each.text for each in sent[3:5]] == ["a.txt", "/tmp"]
    assert sent[5].text == "Done."


def test_tools_of_other_kinds_are_left_out() -> None:
    function = {"type": "function", "name": "shell", "description": "Runs it.", "parameters": {"type": "object"}}
    tools = [function, {"type": "web_search"}, {"type": "namespace", "name": "n", "tools": []}, {"type": "custom"}]
    (tool,) = read(tools=tools).tools_json
    assert json.loads(tool)["function"] == {
        "name": "shell", "description": "Runs it.", "parameters": {"type": "object"},
    }  # fmt: skip
    assert read(tools=tools, tool_choice={"type": "function", "name": "shell"}).must_call == "shell"


def test_effort_format_and_length() -> None:
    form = {"type": "json_schema", "name": "x", "schema": {"type": "object"}}
    question = read(reasoning={"effort": "none"}, text={"format": form}, max_output_tokens=5)
    assert question.thinking is False
    assert json.loads(question.changes["json_schema"]) == {"type": "object"}
    assert question.changes["max_tokens"] == 5


@pytest.mark.parametrize("name", ["previous_response_id", "conversation", "background"])
def test_what_needs_kept_responses_is_refused(name: str) -> None:
    with pytest.raises(Refused) as caught:
        read(**{name: True if name == "background" else "resp_1"})
    assert (caught.value.status, caught.value.param) == (400, name)
