"""Answers as Anthropic's messages."""

from qwendesk.server.messages import MessagesWriter, messages_body
from qwendesk.server.refusals import Refused
from tests.server.answers import (
    CUT_OFF,
    PROGRESS,
    THOUGHT_AND_CALLS,
    end,
    head,
    objects,
    said,
    streamed,
    unreadable,
    whole,
)  # fmt: skip


def events(items) -> list[dict]:
    of = head()
    return objects(streamed(MessagesWriter(of, PROGRESS), of, items))


def test_a_body_has_a_block_for_each_thing() -> None:
    body = messages_body(head(), whole(head(), THOUGHT_AND_CALLS))
    assert [block["type"] for block in body["content"]] == ["thinking", "text", "tool_use", "tool_use"]
    assert body["content"][0]["thinking"] == "Let me look."
    assert body["content"][0]["signature"]
    assert body["content"][2] == {"type": "tool_use", "id": "call_k00", "name": "read", "input": {"path": "a"}}
    assert body["stop_reason"] == "tool_use"
    assert (body["usage"]["input_tokens"], body["usage"]["cache_read_input_tokens"]) == (10, 90)


def test_a_stream_has_every_event_in_order() -> None:
    got = [(event["type"], event.get("delta", {}).get("type")) for event in events(THOUGHT_AND_CALLS)]
    start, delta, stop = "content_block_start", "content_block_delta", "content_block_stop"
    assert got == [
        ("message_start", None), ("ping", None),
        (start, None), (delta, "thinking_delta"), (delta, "thinking_delta"), (delta, "signature_delta"), (stop, None),
        (start, None), (delta, "text_delta"), (delta, "text_delta"), (stop, None),
        (start, None), (delta, "input_json_delta"), (delta, "input_json_delta"), (stop, None),
        (start, None), (delta, "input_json_delta"), (stop, None),
        ("message_delta", None), ("message_stop", None),
    ]  # fmt: skip


def test_events_have_names_and_blocks_have_numbers() -> None:
    of = head()
    sent = streamed(MessagesWriter(of, PROGRESS), of, THOUGHT_AND_CALLS)
    assert all(event.name == event.data["type"] for event in sent)
    assert sent[0].encoded().startswith(b"event: message_start\ndata: {")
    begun = [event for event in events(THOUGHT_AND_CALLS) if event["type"] == "content_block_start"]
    assert [event["index"] for event in begun] == [0, 1, 2, 3]
    assert begun[2]["content_block"] == {"type": "tool_use", "id": "call_k00", "name": "read", "input": {}}


def test_tokens_of_the_prompt_come_first_and_those_of_the_answer_last() -> None:
    got = events(THOUGHT_AND_CALLS)
    first = got[0]["message"]["usage"]
    assert (first["input_tokens"], first["cache_read_input_tokens"], first["output_tokens"]) == (10, 90, 0)
    assert got[-2]["usage"]["output_tokens"] == 7
    assert got[-2]["delta"] == {"stop_reason": "tool_use", "stop_sequence": None}


def test_the_reasons_of_ends() -> None:
    expected = {"eos": "end_turn", "stop_string": "stop_sequence", "max_tokens": "max_tokens"}
    for reason, word in expected.items():
        stop_text = "END" if reason == "stop_string" else ""
        body = messages_body(head(), whole(head(), [*said("answer", "a"), end(reason, stop_text)]))
        assert body["stop_reason"] == word
        assert body["stop_sequence"] == (stop_text or None)


def test_a_call_that_was_cut_off_is_none() -> None:
    body = messages_body(head(), whole(head(), CUT_OFF))
    assert [block["type"] for block in body["content"]] == ["text"]
    assert body["stop_reason"] == "max_tokens"
    assert [event["type"] for event in events(CUT_OFF)][-3:] == ["content_block_stop", "message_delta", "message_stop"]


def test_a_call_that_cannot_be_understood_is_text() -> None:
    items = [unreadable(0, "foo"), end("tool_calls")]
    assert messages_body(head(), whole(head(), items))["content"] == [
        {"type": "text", "text": "<tool_call>foo</tool_call>"}
    ]
    assert events(items)[3]["delta"] == {"type": "text_delta", "text": "<tool_call>foo</tool_call>"}


def test_a_failure_in_a_stream_is_an_error_event() -> None:
    (failed,) = MessagesWriter(head()).fail(Refused(503, "The engine stopped."))
    assert failed.name == "error"
    assert failed.data == {"type": "error", "error": {"type": "overloaded_error", "message": "The engine stopped."}}


def test_a_client_that_waits_is_pinged() -> None:
    assert MessagesWriter(head()).wait().encoded() == b'event: ping\ndata: {"type":"ping"}\n\n'
