"""Answers as OpenAI's chat completions."""

from qwendesk.server.answer import Comment
from qwendesk.server.chat_completions import ChatWriter, chat_body
from qwendesk.server.refusals import Refused
from tests.server.answers import (
    CUT_OFF,
    THOUGHT_AND_CALLS,
    call,
    end,
    head,
    objects,
    said,
    streamed,
    unreadable,
    whole,
)  # fmt: skip


def deltas(items, **question) -> list[dict]:
    of = head(**question)
    return [chunk["choices"][0]["delta"] for chunk in objects(streamed(ChatWriter(of), of, items)) if chunk["choices"]]


def test_a_body_has_reasoning_text_and_calls() -> None:
    body = chat_body(head(), whole(head(), THOUGHT_AND_CALLS))
    (choice,) = body["choices"]
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"] == {
        "role": "assistant",
        "content": "Looking now.",
        "reasoning_content": "Let me look.",
        "tool_calls": [
            {"id": "call_k00", "type": "function", "function": {"name": "read", "arguments": '{"path": "a"}'}},
            {"id": "call_k01", "type": "function", "function": {"name": "list", "arguments": "{}"}},
        ],
    }
    assert body["usage"]["prompt_tokens_details"]["cached_tokens"] == 90
    assert (body["usage"]["completion_tokens"], body["usage"]["total_tokens"]) == (7, 107)


def test_a_stream_has_the_same_in_pieces() -> None:
    got = deltas(THOUGHT_AND_CALLS)
    assert got[0] == {"role": "assistant", "content": ""}
    assert [each["reasoning_content"] for each in got if "reasoning_content" in each] == ["Let me", " look."]
    calls = [each["tool_calls"][0] for each in got if "tool_calls" in each]
    assert calls[0] == {
        "index": 0, "id": "call_k00", "type": "function", "function": {"name": "read", "arguments": '{"path":'},
    }  # fmt: skip
    assert calls[1] == {"index": 0, "function": {"arguments": ' "a"}'}}
    assert [each["index"] for each in calls] == [0, 0, 1]


def test_a_stream_ends_with_reason_usage_and_done() -> None:
    of = head(include_usage=True)
    events = streamed(ChatWriter(of), of, THOUGHT_AND_CALLS)
    assert events[-1].encoded() == b"data: [DONE]\n\n"
    assert (events[-2].data["choices"], events[-2].data["usage"]["total_tokens"]) == ([], 107)
    assert events[-3].data["choices"][0]["finish_reason"] == "tool_calls"
    of = head(include_usage=False)
    assert all("usage" not in each for each in objects(streamed(ChatWriter(of), of, THOUGHT_AND_CALLS)))


def test_the_reasons_of_ends() -> None:
    for reason, word in {
        "eos": "stop",
        "stop_string": "stop",
        "max_tokens": "length",
        "context_full": "length",
    }.items():
        answer = whole(head(), [*said("answer", "a"), end(reason)])
        assert chat_body(head(), answer)["choices"][0]["finish_reason"] == word


def test_a_call_that_was_cut_off_is_none() -> None:
    (choice,) = chat_body(head(), whole(head(), CUT_OFF))["choices"]
    assert "tool_calls" not in choice["message"]
    assert choice["finish_reason"] == "length"


def test_a_call_that_cannot_be_understood_is_text() -> None:
    items = [unreadable(0, "\nfoo\n"), end("tool_calls")]
    (choice,) = chat_body(head(), whole(head(), items))["choices"]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("<tool_call>\nfoo\n</tool_call>", "stop")
    assert deltas(items)[1] == {"content": "<tool_call>\nfoo\n</tool_call>"}


def test_a_call_that_went_wrong_halfway_stays_a_call_which_its_client_refuses() -> None:
    begun = list(call(0, "read", '{"path": "a'))[:1]
    items = [*begun, unreadable(0, "..."), end("tool_calls")]
    (made,) = chat_body(head(), whole(head(), items))["choices"][0]["message"]["tool_calls"]
    assert made["function"] == {"name": "read", "arguments": '{"path": "a'}


def test_a_failure_in_a_stream_is_an_error_event() -> None:
    failed, done = ChatWriter(head()).fail(Refused(503, "The engine stopped."))
    assert failed.data["error"]["message"] == "The engine stopped."
    assert done.data == "[DONE]"


def test_a_client_that_waits_gets_a_comment() -> None:
    frame = ChatWriter(head()).wait()
    assert isinstance(frame, Comment)
    assert frame.encoded() == b": no answer yet\n\n"
