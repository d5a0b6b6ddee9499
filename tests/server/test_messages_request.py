"""Requests of Anthropic's messages, as questions to the engine."""

import json
from typing import Any

import pytest

from qwendesk.core.messages import ToolCall
from qwendesk.server.fields import Fields
from qwendesk.server.messages import read_messages_request
from qwendesk.server.question import Question
from qwendesk.server.refusals import Refused

BILLING = "x-anthropic-billing-header: cc_version=2.1; cch=a1b2c;"
READ = {"name": "Read", "description": "Reads a file.", "input_schema": {"type": "object"}}


def read(*sent: dict[str, Any], **fields: Any) -> Question:
    return read_messages_request(Fields({"messages": list(sent) or [{"role": "user", "content": "Hi"}], **fields}))


def test_the_changing_first_block_of_the_system_prompt_is_set_aside() -> None:
    blocks = [{"type": "text", "text": text} for text in (BILLING, "You are an agent.", "Rules.")]
    question = read(system=blocks)
    assert question.messages[0].message.text == "You are an agent.\n\nRules."
    assert read(system="Be brief.").messages[0].message.text == "Be brief."
    assert read(system=[{"type": "text", "text": BILLING}]).messages[0].message.role == "user"


def test_blocks_become_reasoning_text_calls_and_results() -> None:
    question = read(
        {"role": "user", "content": [{"type": "text", "text": "Read both", "cache_control": {"type": "ephemeral"}}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "s"},
                {"type": "redacted_thinking", "data": "x"},
                {"type": "text", "text": "Reading."},
                {"type": "tool_use", "id": "a", "name": "Read", "input": {"path": "1"}},
                {"type": "tool_use", "id": "b", "name": "Read", "input": {"path": "2"}},
                {"type": "server_tool_use", "id": "c", "name": "web_search", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "b", "content": "two", "is_error": True},
                {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "one"}]},
                {"type": "text", "text": "And now?"},
            ],
        },
    )
    sent = [each.message for each in question.messages]
    assert [(each.role, each.text) for each in sent] == [
        ("user", "Read both"), ("assistant", "Reading."), ("tool", "one"), ("tool", "two"), ("user", "And now?"),
    ]  # fmt: skip
    assert sent[1].reasoning == "Hm."
    assert sent[1].tool_calls == (ToolCall("Read", '{"path":"1"}'), ToolCall("Read", '{"path":"2"}'))


def test_tools_that_run_at_anthropic_are_left_out() -> None:
    question = read(tools=[READ, {"type": "web_search_20250305", "name": "web_search"}])
    (tool,) = question.tools_json
    function = json.loads(tool)["function"]
    assert (function["name"], function["parameters"]) == ("Read", {"type": "object"})


def test_tool_choice() -> None:
    assert read(tools=[READ], tool_choice={"type": "any"}).must_call == "*"
    assert read(tools=[READ], tool_choice={"type": "tool", "name": "Read"}).must_call == "Read"
    assert read(tools=[READ], tool_choice={"type": "none"}).may_call is False
    alone = read(tools=[READ], tool_choice={"type": "auto", "disable_parallel_tool_use": True})
    assert alone.changes["parallel_tool_calls"] is False
    with pytest.raises(Refused, match="tool_choice"):
        read(tools=[READ], tool_choice={"type": "tool", "name": "Write"})


def test_only_a_request_that_asks_for_thinking_has_it() -> None:
    assert read().thinking is False
    assert read(thinking={"type": "disabled"}).thinking is False
    assert read(thinking={"type": "adaptive"}).thinking is True
    budget = read(thinking={"type": "enabled", "budget_tokens": 1024})
    assert (budget.thinking, budget.changes["thinking_budget"]) == (True, 1024)
    assert read(output_config={"effort": "low"}).changes["reasoning_effort"] == "low"


def test_lengths_stop_texts_and_formats() -> None:
    form = {"type": "json_schema", "schema": {"type": "object"}}
    changes = read(max_tokens=7, stop_sequences=["A", "B"], top_k=4, output_config={"format": form}).changes
    assert (changes["max_tokens"], changes["stop"], changes["top_k"]) == (7, ("A", "B"), 4)
    assert json.loads(changes["json_schema"]) == {"type": "object"}
