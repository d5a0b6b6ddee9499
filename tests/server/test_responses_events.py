"""Answers as OpenAI's responses."""

import itertools

from qwendesk.server.refusals import Refused
from qwendesk.server.responses import ResponsesWriter, responses_body
from tests.server.answers import CUT_OFF, THOUGHT_AND_CALLS, head, objects, streamed, unreadable, whole
from tests.server.answers import end as end_of


def events(items) -> list[dict]:
    of = head()
    return objects(streamed(ResponsesWriter(of), of, items))


def test_a_body_has_an_item_for_each_thing() -> None:
    body = responses_body(head(), whole(head(), THOUGHT_AND_CALLS))
    assert [item["type"] for item in body["output"]] == ["reasoning", "message", "function_call", "function_call"]
    assert body["output"][1]["content"][0]["text"] == "Looking now."
    assert body["output"][2]["call_id"] == "call_k00"
    assert (body["status"], body["usage"]["total_tokens"]) == ("completed", 107)


def test_a_stream_has_every_event_in_order() -> None:
    got = [event["type"].removeprefix("response.") for event in events(THOUGHT_AND_CALLS)]
    assert got == [
        "created", "in_progress",
        "output_item.added", "content_part.added", "reasoning_text.delta", "reasoning_text.delta",
        "reasoning_text.done", "content_part.done", "output_item.done",
        "output_item.added", "content_part.added", "output_text.delta", "output_text.delta",
        "output_text.done", "content_part.done", "output_item.done",
        "output_item.added", "function_call_arguments.delta", "function_call_arguments.delta",
        "function_call_arguments.done", "output_item.done",
        "output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done",
        "completed",
    ]  # fmt: skip


def test_events_name_their_item_and_are_numbered() -> None:
    got = events(THOUGHT_AND_CALLS)
    assert [event["sequence_number"] for event in got] == list(range(len(got)))
    places = [event["output_index"] for event in got if "output_index" in event]
    assert [place for place, _ in itertools.groupby(places)] == [0, 1, 2, 3]
    added = {event["output_index"]: event["item"]["id"] for event in got if event["type"].endswith("item.added")}
    assert all(event["item_id"] == added[event["output_index"]] for event in got if "item_id" in event)


def test_the_last_event_has_the_whole_response() -> None:
    got = events(THOUGHT_AND_CALLS)
    done = [event["item"] for event in got if event["type"] == "response.output_item.done"]
    assert got[-1]["response"] == responses_body(head(), whole(head(), THOUGHT_AND_CALLS))
    assert got[-1]["response"]["output"] == done


def test_an_answer_that_is_cut_off_is_incomplete_and_its_half_call_none() -> None:
    last = events(CUT_OFF)[-1]
    assert last["type"] == "response.incomplete"
    assert last["response"]["incomplete_details"] == {"reason": "max_output_tokens"}
    assert [item["type"] for item in last["response"]["output"]] == ["message"]


def test_a_call_that_cannot_be_understood_is_text() -> None:
    (item,) = events([unreadable(0, "foo"), end_of("tool_calls")])[-1]["response"]["output"]
    assert item["content"][0]["text"] == "<tool_call>foo</tool_call>"


def test_a_failure_in_a_stream_says_why() -> None:
    (failed,) = ResponsesWriter(head()).fail(Refused(503, "The engine stopped.", code="engine_exit"))
    assert failed.data["type"] == failed.name == "response.failed"
    assert failed.data["response"]["error"] == {"code": "engine_exit", "message": "The engine stopped."}
