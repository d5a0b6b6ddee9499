"""Answers of servers over real sockets: text, reasoning, calls, figures, and what goes wrong in the middle."""

import base64
import io
import json

import pytest
from PIL import Image

from qwendesk.chat.service import ChatService
from qwendesk.core.messages import CallRecord, ClipFrame, ImagePart, Message, TextPart, ToolCall, text_message
from qwendesk.engine.protocol import Begun, CallDelta, Called, Delta, Finished, Generate, PromptProgress, RequestFailed
from qwendesk.engine.state import Phase
from qwendesk.remote.answer_reader import AnswerReader, decode_chunk
from qwendesk.remote.dialects import DIALECTS
from qwendesk.remote.wire import wire_messages
from tests.remote import made_up_server
from tests.remote.made_up_server import LM_STUDIO_MISSING, Refusal, Stream, piece, usage

MODEL = "Qwen3.8-27B"


async def answered(remote, stream, question="Hello?", server=made_up_server.llama_server, model=MODEL, **how):
    served = await remote.serve(server(stream), **how)
    await remote.use(served, model)
    turn = await remote.chat.send(question)
    return served, turn.answer


async def test_reasoning_and_answer_are_told_apart_and_counted(remote):
    timings = {"cache_n": 90, "prompt_n": 10, "prompt_ms": 50.0, "predicted_n": 5, "predicted_ms": 100.0,
               "draft_n": 4, "draft_n_accepted": 3}  # fmt: skip
    stream = Stream([
        piece({"role": "assistant", "content": None}),
        {"choices": [], "prompt_progress": {"total": 100, "cache": 90, "processed": 100, "time_ms": 50}},
        piece({"reasoning_content": "Hm, "}), piece({"reasoning_content": "easy."}),
        piece({"content": "An "}), piece({"content": "answer"}), piece({"content": "."}),
        piece({}, "stop"), usage(100, 5, cached=90) | {"timings": timings},
    ])  # fmt: skip
    _, answer = await answered(remote, stream)
    assert (answer.reasoning, answer.text, answer.stop_reason, answer.error) == ("Hm, easy.", "An answer.", "eos", "")
    stats = answer.stats
    assert (stats.prompt_tokens, stats.reused_tokens, stats.reread_tokens) == (100, 90, 10)
    assert (stats.reasoning_tokens, stats.answer_tokens) == (2, 3)
    assert stats.decode_tok_s == pytest.approx(40.0)
    assert (stats.drafted_tokens, stats.accepted_tokens) == (4, 3)
    assert remote.engine.state.phase is Phase.READY


async def test_vllm_calls_the_field_reasoning_and_may_not_report_reuse(remote):
    stream = Stream([piece({"reasoning": "So."}), piece({"content": "Yes."}, "stop"), usage(10, 2)])
    served, answer = await answered(remote, stream, server=made_up_server.vllm, model="Qwen/Qwen3.8-27B-FP8")
    assert (answer.reasoning, answer.text) == ("So.", "Yes.")
    assert not answer.stats.is_reuse_known
    assert served.chats[0]["chat_template_kwargs"]["enable_thinking"] is True


@pytest.mark.parametrize("n", range(1, 12))
def test_think_tags_in_the_text_are_split_wherever_the_pieces_end(n):
    text = "<think>\nFirst I think: a < b.\n</think>\n\nThen </b> I answer."
    reader = AnswerReader(lambda: 1.0)
    items = []
    for start in range(0, len(text), n):
        items += reader.read(decode_chunk(json.dumps(piece({"content": text[start : start + n]}))))
    items += reader.finish()
    assert "".join(each.text for each in items if isinstance(each, Delta) and each.kind == "reasoning") == (
        "First I think: a < b.\n"
    )
    assert "".join(each.text for each in items if isinstance(each, Delta) and each.kind == "answer") == (
        "Then </b> I answer."
    )
    assert not reader.is_unseparated


async def test_a_server_that_leaves_thinking_in_the_text_is_noticed_and_read_right_from_then_on(remote):
    unseparated = Stream(
        [piece({"content": "I think.\n</th"}), piece({"content": "ink>\n\nYes."}, "stop"), usage(10, 4)]
    )
    served, answer = await answered(remote, unseparated)
    assert "--reasoning-parser" in answer.stats.cache_note
    second = await remote.chat.send("And now?")
    assert (second.answer.reasoning.strip(), second.answer.text) == ("I think.", "Yes.")
    assert len(served.chats) == 2


async def test_tool_calls_in_pieces_are_put_together_run_and_answered(remote):
    begun_call = {"index": 0, "id": "a1", "type": "function", "function": {"name": "look_up", "arguments": ""}}
    first = Stream([
        piece({"content": "I look."}),
        piece({"tool_calls": [begun_call]}),
        piece({"tool_calls": [{"index": 0, "function": {"arguments": '{"wo'}}]}),
        piece({"tool_calls": [{"index": 0, "function": {"arguments": 'rd": "x"}'}}]}),
        piece({}, "tool_calls"), usage(50, 12),
    ])  # fmt: skip
    served = await remote.serve(made_up_server.llama_server(None))
    served.replies["/v1/chat/completions"] = lambda asked: (
        first if asked.body["messages"][-1]["role"] == "user" else made_up_server.HELLO
    )
    await remote.use(served, MODEL)
    chat = ChatService(remote.client, remote.engine, tools=_Tools())
    turn = await chat.send("What is x?")
    step = turn.answer.steps[0]
    assert (step.text, step.calls[0].call.name, step.calls[0].call.arguments_json) == (
        "I look.",
        "look_up",
        '{"word": "x"}',
    )
    assert turn.answer.text == "Hello."
    sent = served.chats[1]["messages"]
    assert sent[-2]["tool_calls"][0]["function"] == {"name": "look_up", "arguments": '{"word": "x"}'}
    assert sent[-1] == {"role": "tool", "tool_call_id": sent[-2]["tool_calls"][0]["id"], "content": "found"}
    assert served.chats[0]["tools"][0]["function"]["name"] == "look_up"


def test_calls_that_a_server_numbers_all_the_same_are_two_by_their_ids():
    reader = AnswerReader(lambda: 1.0)
    pieces = [
        {"index": 0, "id": "c1", "function": {"name": "a", "arguments": '{"n": 1}'}},
        {"index": 0, "id": "c2", "function": {"name": "b", "arguments": {"n": 2}}},
    ]
    items = list(reader.read(decode_chunk(json.dumps(piece({"tool_calls": pieces}, "stop")))))
    items += reader.finish()
    called = [each.call for each in items if isinstance(each, Called)]
    assert called == [ToolCall("a", '{"n": 1}'), ToolCall("b", '{"n":2}')]
    assert [each.name for each in items if isinstance(each, CallDelta)] == ["a", "b"]
    assert items[-1].stop_reason == "tool_calls"


@pytest.mark.parametrize("arguments", ['{"a": ', "[1]", "nonsense"])
def test_a_damaged_call_is_no_call(arguments):
    reader = AnswerReader(lambda: 1.0)
    call = [{"index": 0, "id": "c", "function": {"name": "a", "arguments": arguments}}]
    items = [*reader.read(decode_chunk(json.dumps(piece({"tool_calls": call}, "tool_calls")))), *reader.finish()]
    called = next(each for each in items if isinstance(each, Called))
    assert called.call is None
    assert called.is_finished
    assert arguments in called.text


def test_a_call_that_was_cut_off_is_not_passed_on():
    reader = AnswerReader(lambda: 1.0, n_ctx=100)
    call = [{"index": 0, "id": "c", "function": {"name": "a", "arguments": "{}"}}]
    items = list(reader.read(decode_chunk(json.dumps(piece({"tool_calls": call}, "length")))))
    items += [*reader.read(decode_chunk(json.dumps(usage(90, 10)))), *reader.finish()]
    called = next(each for each in items if isinstance(each, Called))
    assert (called.call, called.is_finished) == (None, False)
    assert items[-1].stop_reason == "context_full"


async def test_a_connection_that_breaks_keeps_what_had_arrived_and_says_so(remote):
    _, answer = await answered(remote, Stream([piece({"content": "Half an "})], cut=True))
    assert answer.text == "Half an "
    assert "The other PC" in answer.error
    assert "kept" in answer.error
    assert remote.engine.state.phase is Phase.READY


async def test_a_stream_that_just_ends_was_cut(remote):
    _, answer = await answered(remote, Stream([piece({"content": "Half"})], ends=False))
    assert (answer.text, "lost" in answer.error) == ("Half", True)


@pytest.mark.parametrize(
    "junk", ["{not json", '"text"', "3", b"data: \xff\xfe{\n\n", b"data: " + b"x" * 5_000_000],
    ids=["broken", "text", "types", "bytes", "huge"],
)  # fmt: skip
async def test_what_is_not_an_answer_ends_it_in_words_and_keeps_the_rest(remote, junk):
    _, answer = await answered(remote, Stream([piece({"content": "So far."}), junk]))
    assert answer.text == "So far."
    assert "isn't an answer" in answer.error


async def test_comments_blank_lines_and_other_events_are_passed_over(remote):
    noise = [b": ping\n\n", b"event: ping\nid: 3\n\n", b"\n\n", piece({"content": "Fine."}, "stop"), usage(1, 1)]
    _, answer = await answered(remote, Stream(noise))
    assert (answer.text, answer.error) == ("Fine.", "")


async def test_an_error_in_the_stream_is_said(remote):
    error = {"error": {"code": 500, "message": "CUDA error: out of memory", "type": "server_error"}}
    _, answer = await answered(remote, Stream([piece({"content": "So"}), error]))
    assert answer.text == "So"
    assert "out of memory" in answer.error


REFUSALS = [
    (401, {"error": {"message": "Invalid API Key"}}, "key"),
    (404, {"error": "model 'x' not found, try pulling it first"}, "has no model"),
    (400, {"error": {"type": "exceed_context_size_error", "message": "request exceeds"}}, "longer than the context"),
    (400, {"object": "error", "message": "This model's maximum context length is 4096"}, "longer than the context"),
    (400, {"error": {"message": '"auto" tool choice requires --enable-auto-tool-choice'}}, "tool parser"),
    (400, {"error": "registry.ollama.ai/x does not support tools"}, "tools"),
    (500, {"error": {"message": "image input is not supported - hint: provide the mmproj"}}, "no vision"),
    (429, {"error": {"message": "slow down"}}, "too many requests"),
    (503, {"error": {"message": "Loading model"}}, "still loading"),
    (500, {"detail": "worker died"}, "worker died"),
    (502, b"<html>Bad gateway</html>", "error 502"),
    (418, {"error": {"message": "teapot"}}, "teapot"),
]


@pytest.mark.parametrize(("status", "body", "said"), REFUSALS, ids=[f"{row[0]}-{row[2]}" for row in REFUSALS])
async def test_each_refusal_is_a_clear_sentence(remote, status, body, said):
    _, answer = await answered(remote, Refusal(status, body, {"Retry-After": "7"}))
    assert said in answer.error
    assert "<html" not in answer.error
    assert ("Try again in 7 s" in answer.error) == (status == 429)


async def test_answer_now_is_asked_of_llama_server_by_the_answers_id(remote):
    stream = Stream([piece({"reasoning_content": "Hm"})], holds=True)
    served = await remote.serve(made_up_server.llama_server(stream))
    served.replies["/v1/chat/completions/control"] = {"success": True}
    await remote.use(served, MODEL)
    answer = remote.client.generate(Generate(messages=(text_message("user", "Hi"),)))
    await anext(aiter(answer))
    await answer.answer_now()
    assert served.asked[-1].path == "/v1/chat/completions/control"
    assert served.asked[-1].body == {"id": "chatcmpl-1", "action": "reasoning_end"}
    assert served.chats[0]["reasoning_control"] is True


@pytest.mark.parametrize(
    ("server", "model", "missing", "expected"),
    [
        (made_up_server.ollama, "qwen3.5:27b", None, {"reasoning_effort": "none"}),
        (made_up_server.lm_studio, "qwen/qwen3.5-9b", LM_STUDIO_MISSING, {"reasoning_effort": "none"}),
        (made_up_server.vllm, "Qwen/Qwen3.8-27B-FP8", None, {"chat_template_kwargs": {"enable_thinking": False}}),
    ],
)
async def test_thinking_is_switched_off_as_each_server_wants_it(remote, server, model, missing, expected):
    remote.chat.set_thinking(False)
    served, _ = await answered(remote, made_up_server.HELLO, server=server, model=model, missing=missing)
    body = served.chats[0]
    for key, value in expected.items():
        assert body[key] == value or value.items() <= body[key].items()


async def test_an_unknown_server_gets_nothing_but_openai_s_fields(remote):
    served = await remote.serve({"/v1/models": {"data": [{"id": "m"}]}, "/v1/chat/completions": made_up_server.HELLO})
    await remote.use(served, "m")
    await remote.chat.send("Hi")
    assert set(served.chats[0]) <= {
        "model", "messages", "stream", "stream_options", "temperature", "top_p", "presence_penalty",
        "frequency_penalty", "seed", "stop", "max_tokens", "tools", "tool_choice", "parallel_tool_calls",
    }  # fmt: skip


async def test_a_partial_answer_is_continued_where_the_server_can(remote):
    served = await remote.serve(made_up_server.llama_server())
    await remote.use(served, MODEL)
    begun = Begun(reasoning="I think.", text="It is ")
    answer = remote.client.generate(Generate(messages=(text_message("user", "Hi"),), begun=begun))
    items = [item async for item in answer]
    assert isinstance(items[-1], Finished)
    assert served.chats[0]["messages"][-1] == {
        "role": "assistant", "content": "It is ", "reasoning_content": "I think.",
    }  # fmt: skip
    assert served.chats[0]["continue_final_message"] == "content"
    other = await remote.serve(made_up_server.ollama())
    await remote.use(other, "qwen3.5:27b")
    items = [i async for i in remote.client.generate(Generate(messages=(text_message("user", "Hi"),), begun=begun))]
    assert isinstance(items[0], RequestFailed)
    assert "Regenerate" in items[0].sentence
    assert not other.chats


async def test_pictures_travel_upright_without_what_the_camera_wrote(remote, tmp_path):
    photo = tmp_path / "photo.jpg"
    exif = Image.Exif()
    exif[0x0112], exif[0x010F] = 6, "SecretCamera"
    Image.new("RGB", (40, 20), "red").save(photo, exif=exif)
    served = await remote.serve(made_up_server.llama_server())
    await remote.use(served, MODEL)
    turn = await remote.chat.send("What is this?", [photo])
    assert not turn.answer.error
    content = served.chats[0]["messages"][-1]["content"]
    kind, _, data = content[0]["image_url"]["url"].partition(",")
    assert kind == "data:image/jpeg;base64"
    sent = base64.b64decode(data)
    assert Image.open(io.BytesIO(sent)).size == (20, 40)
    assert b"SecretCamera" not in sent
    assert content[-1] == {"type": "text", "text": "What is this?"}


async def test_reasoning_of_earlier_turns_is_sent_as_the_chat_says(remote):
    stream = Stream([piece({"reasoning_content": "Hm."}), piece({"content": "Yes."}, "stop"), usage(1, 2)])
    served, _ = await answered(remote, stream)
    await remote.chat.send("Sure?")
    assert served.chats[1]["messages"][1] == {"role": "assistant", "content": "Yes.", "reasoning_content": "Hm."}
    remote.chat.set_overrides({"preserve_thinking": "false"})
    await remote.chat.send("Really?")
    assert all("reasoning_content" not in each for each in served.chats[2]["messages"])


async def test_progress_of_the_prompt_is_shown_where_it_is_reported(remote):
    progress = [{"choices": [], "prompt_progress": {"total": 100, "cache": 0, "processed": n}} for n in (40, 100)]
    stream = Stream([*progress, piece({"content": "Hi"}, "stop"), usage(100, 1)])
    served = await remote.serve(made_up_server.llama_server(stream))
    await remote.use(served, MODEL)
    items = [item async for item in remote.client.generate(Generate(messages=(text_message("user", "Hi"),)))]
    assert [item.done for item in items if isinstance(item, PromptProgress)] == [40, 100]


class _Tools:
    def definitions(self, settings):
        return (json.dumps({"type": "function", "function": {"name": "look_up", "parameters": {}}}),)

    def reads_descriptions(self, settings):
        return False

    def taints(self, tool):
        return False

    async def run(self, call, context):
        return CallRecord(call, is_done=True, result="found")


def test_a_result_without_its_call_is_told_as_text():
    messages = (
        text_message("user", "Hi"),
        text_message("assistant", "<tool_call>broken</tool_call>"),
        text_message("tool", "This call could not be read."),
        Message("user", (ImagePart("x.png", ""), TextPart("And this?"))),
    )
    written = [*wire_messages(messages, DIALECTS["vllm"], lambda _part: "data:,", keep_reasoning=True)]
    assert [each["role"] for each in written] == ["user", "assistant", "user", "user"]
    assert "could not be read" in written[2]["content"]


def test_frames_of_a_clip_are_pictures_with_their_times():
    frames = (ImagePart(name, name, frame=ClipFrame("a.mp4", "sha", at, 9.0)) for name, at in (("a", 0.0), ("b", 4.5)))
    message = Message("user", (*frames, TextPart("What happens?")))
    (written,) = wire_messages((message,), DIALECTS["vllm"], lambda part: part.path, keep_reasoning=True)
    assert [each.get("text") or each["image_url"]["url"] for each in written["content"]] == [
        "0:00 ", "a", "0:04 ", "b", "What happens?",
    ]  # fmt: skip
