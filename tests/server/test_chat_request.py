"""Requests of OpenAI's chat completions, as questions to the engine."""

import json
from typing import Any

import pytest

from qwendesk.core.messages import Message, ToolCall
from qwendesk.server.chat_completions import read_chat_request
from qwendesk.server.fields import Fields
from qwendesk.server.question import Question
from qwendesk.server.refusals import Refused

PIXEL = "data:image/png;base64,iVBORw0KGgo="
WEATHER = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}


def read(**fields: Any) -> Question:
    return read_chat_request(Fields({"messages": [{"role": "user", "content": "Hi"}], **fields}))


def messages(*sent: dict[str, Any]) -> list[Message]:
    return [each.message for each in read(messages=list(sent)).messages]


def refused(**fields: Any) -> Refused:
    with pytest.raises(Refused) as caught:
        read(**fields)
    return caught.value


def test_texts_keep_their_roles_and_developers_speak_as_the_system() -> None:
    got = messages(
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {"role": "assistant", "content": "c", "reasoning_content": "Hm."},
        {"role": "user", "content": "d"},
    )
    assert [(each.role, each.text) for each in got] == [
        ("system", "Be brief."), ("user", "ab"), ("assistant", "c"), ("user", "d"),
    ]  # fmt: skip
    assert got[2].reasoning == "Hm."


def test_there_is_one_system_message_at_the_beginning() -> None:
    got = messages(
        {"role": "system", "content": "One."},
        {"role": "system", "content": "Two."},
        {"role": "user", "content": "a"},
        {"role": "system", "content": "Now answer in French."},
    )
    assert [(each.role, each.text) for each in got] == [
        ("system", "One.\n\nTwo."), ("user", "a"), ("user", "Now answer in French."),
    ]  # fmt: skip


def test_a_picture_in_a_data_url_becomes_its_bytes() -> None:
    part = {"type": "image_url", "image_url": {"url": PIXEL}}
    (message,) = messages({"role": "user", "content": [part, {"type": "text", "text": "What is it?"}]})
    (image,) = message.images
    assert image.data == b"\x89PNG\r\n\x1a\n"
    assert len(image.sha256) == 64


@pytest.mark.parametrize(
    "url", ["https://example.com/a.png", "file:///etc/passwd", "data:image/png,abc", "data:;base64,%"]
)
def test_a_picture_elsewhere_is_refused(url: str) -> None:
    part = {"type": "image_url", "image_url": {"url": url}}
    error = refused(messages=[{"role": "user", "content": [part]}])
    assert (error.status, error.param) == (400, "messages[0].content[0].image_url")


def test_calls_and_results_are_joined_by_their_ids() -> None:
    calls = [
        {"id": "x", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}},
        {"id": "y", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}},
    ]
    got = messages(
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "y", "content": "snow"},
        {"role": "tool", "tool_call_id": "x", "content": [{"type": "text", "text": "sun"}]},
    )
    assert got[1].tool_calls == (ToolCall("weather", '{"city": "Rome"}'), ToolCall("weather", '{"city": "Oslo"}'))
    assert [each.text for each in got[2:]] == ["sun", "snow"]


def test_arguments_that_were_cut_off_do_not_spoil_the_conversation() -> None:
    call = {"id": "x", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Ro'}}
    got = messages({"role": "user", "content": "Hi"}, {"role": "assistant", "tool_calls": [call]})
    assert json.loads(got[1].tool_calls[0].arguments_json) == {"arguments": '{"city": "Ro'}


def test_tools_reach_the_engine_without_what_only_servers_of_openai_run() -> None:
    question = read(tools=[WEATHER, {"type": "web_search"}])
    (tool,) = question.tools_json
    assert json.loads(tool) == WEATHER
    assert (question.may_call, question.must_call) == (True, "")
    assert question.changes["parallel_tool_calls"] is True


def test_tool_choice() -> None:
    assert read(tools=[WEATHER], tool_choice="none").may_call is False
    assert read(tools=[WEATHER], tool_choice="required").must_call == "*"
    named = {"type": "function", "function": {"name": "weather"}}
    assert read(tools=[WEATHER], tool_choice=named).must_call == "weather"
    assert refused(tools=[WEATHER], tool_choice={"type": "function", "function": {"name": "x"}}).param == "tool_choice"
    assert refused(tool_choice="required").param == "tool_choice"


def test_sampling_lengths_and_stop_texts() -> None:
    changes = read(
        temperature=0, top_p=0.5, top_k=3, min_p=0.1, presence_penalty=1, frequency_penalty=-1, seed=2**40,
        max_completion_tokens=9, stop="END", logit_bias={"5": -100, "6": 1.5},
    ).changes  # fmt: skip
    assert (changes["temperature"], changes["top_p"], changes["top_k"], changes["min_p"]) == (0.0, 0.5, 3, 0.1)
    assert 0 <= changes["seed"] < 2**32
    assert (changes["max_tokens"], changes["stop"]) == (9, ("END",))
    assert changes["logit_bias"] == ("5=-inf", "6=1.5")


def test_formats() -> None:
    assert json.loads(read(response_format={"type": "json_object"}).changes["json_schema"]) == {"type": "object"}
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    assert json.loads(read(response_format=form).changes["json_schema"]) == schema
    assert json.loads(read(response_format={"type": "json_object", "schema": schema}).changes["json_schema"]) == schema
    assert json.loads(read(json_schema=schema).changes["json_schema"]) == schema
    assert "json_schema" not in read(response_format={"type": "text"}).changes
    assert refused(response_format={"type": "json_object", "schema": 1}).param == "response_format.schema"
    assert refused(response_format={"type": "json_schema"}).param == "response_format.schema"


@pytest.mark.parametrize(
    ("param", "value"),
    [
        ("n", 2), ("logprobs", 1), ("top_logprobs", 3), ("top_logprobs", 99), ("functions", []), ("temperature", 11),
        ("temperature", "hot"), ("messages", []),
        ("messages", "Hi"), ("messages", None), ("stream", "yes"), ("top_k", 1.5), ("tools", {}), ("stop", [1]),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_refused_by_name(param: str, value: Any) -> None:
    error = refused(**{param: value})
    assert (error.status, error.param) == (400, param)


def test_log_probabilities_are_asked_for_in_two_fields() -> None:
    assert read().n_logprobs == -1
    assert read(logprobs=True).n_logprobs == 0
    assert read(logprobs=True, top_logprobs=20).n_logprobs == 20
    assert read(logprobs=False, top_logprobs=0).n_logprobs == -1
