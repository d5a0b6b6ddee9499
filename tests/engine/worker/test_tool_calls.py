"""Tool calls with the real engine. The demo model is made to begin them; how they go on is its own choice."""

import json

import msgspec
import pytest

from qwendesk.core.messages import Message, ToolCall, text_message
from qwendesk.engine import protocol as p
from tests.engine.worker.conftest import Demo
from tests.engine.worker.process import Answer, WorkerProcess, demo_options, greedy, user, worker_process

SCHEMAS = {
    "current_time": {},
    "get_weather": {"properties": {"city": {"enum": ["Paris", "Rome"]}}, "required": ["city"]},
    "set_lamp": {"properties": {"on": {"type": "boolean"}, "level": {"enum": [1, 2, 3]}}, "required": ["on", "level"]},
}
TOOLS = tuple(
    json.dumps({"type": "function", "function": {"name": name, "parameters": {"type": "object", **schema}}})
    for name, schema in SCHEMAS.items()
)
QUESTION = "What is VRAM spill?"


@pytest.fixture
def calling(demo: Demo) -> tuple[str, ...]:
    """A logit bias with which the model begins a call at once."""
    return (f"{demo.vocabulary.user_defined['<tool_call>']}=1000",)


def called(answer: Answer) -> list[ToolCall | None]:
    return [event.call for event in answer.events if isinstance(event, p.Called)]


def is_valid(call: ToolCall) -> bool:
    arguments = json.loads(call.arguments_json)
    properties = SCHEMAS[call.name].get("properties", {})
    is_complete = set(SCHEMAS[call.name].get("required", ())) == set(arguments)
    return is_complete and all(
        value in properties[name].get("enum", (True, False)) for name, value in arguments.items()
    )


def with_result(answer: Answer, result: str) -> tuple[Message, Message]:
    """The messages that follow an answer with one call."""
    [call] = called(answer)
    assert call is not None
    return msgspec.structs.replace(answer.message, tool_calls=(call,)), text_message("tool", result)


@pytest.mark.parametrize("thinking", [False, True], ids=["no-think", "think"])
def test_a_call_is_valid_and_ends_the_answer(worker: WorkerProcess, calling: tuple[str, ...], thinking: bool) -> None:
    answer = worker.ask([user(QUESTION)], greedy(enable_thinking=thinking, logit_bias=calling), tools_json=TOOLS)
    assert answer.stop_reason == "tool_calls"
    [call] = called(answer)
    assert call is not None
    assert is_valid(call)
    assert (answer.text, answer.reasoning) == ("", ""), "a call inside the thinking ends it"


def test_any_sampling_gives_valid_calls(worker: WorkerProcess, calling: tuple[str, ...]) -> None:
    names = set()
    for seed in range(20):
        wild = greedy(temperature=5.0, top_k=0, top_p=1.0, seed=seed, enable_thinking=False, logit_bias=calling)
        [call] = called(worker.ask([user(QUESTION)], wild, tools_json=TOOLS))
        assert call is not None
        assert is_valid(call), call
        names.add(call.name)
    assert len(names) > 1, "they are not all the same"


def test_strings_hold_no_markers(worker: WorkerProcess, demo: Demo) -> None:
    """They would end the call or be lost. Here the model wants nothing else, all the time."""
    markers = demo.vocabulary.user_defined
    wanted = tuple(f"{token}={2000 if marker == '<tool_call>' else 1000}" for marker, token in markers.items())
    ends = [token for token, piece in demo.pieces.items() if piece == b"<" or b"</" in piece]
    wanted += tuple(f"{token}=-500" for token in ends if token not in markers.values())
    properties = {"properties": {"text": {"type": "string"}}, "required": ["text"]}
    tools = (json.dumps({"name": "write", "parameters": properties}),)
    options = greedy(enable_thinking=False, logit_bias=wanted, max_tokens=80)
    answer = worker.ask([user(QUESTION)], options, tools_json=tools)
    written = "".join(event.arguments for event in answer.events if isinstance(event, p.CallDelta))
    assert len(written) > 40
    assert not [marker for marker in markers if marker in written]


@pytest.mark.parametrize("thinking", [False, True], ids=["no-think", "think"])
def test_what_was_before_a_call_is_not_read_again(
    worker: WorkerProcess, calling: tuple[str, ...], thinking: bool
) -> None:
    """Nor is the call, although this model writes it in other tokens than those into which its text falls."""
    chat = [text_message("system", "Answer briefly."), user(QUESTION)]
    first = worker.ask(chat, greedy(enable_thinking=thinking, logit_bias=calling), tools_json=TOOLS)
    result = "Thursday, 2026-11-26, 15:04 (UTC+01:00)"
    second = worker.ask([*chat, *with_result(first, result)], greedy(enable_thinking=thinking), tools_json=TOOLS)

    assert second.stop_reason == "eos"
    assert second.stats.cache_note == ""
    n_before = first.stats.prompt_tokens + first.stats.reasoning_tokens + first.stats.answer_tokens
    assert second.stats.reused_tokens >= n_before - 1
    assert second.stats.reread_tokens <= len(result) + 24


def test_arguments_come_while_they_are_written(worker: WorkerProcess, calling: tuple[str, ...]) -> None:
    lamp = (TOOLS[2],)
    answer = worker.ask([user(QUESTION)], greedy(enable_thinking=False, logit_bias=calling), tools_json=lamp)
    pieces = [event for event in answer.events if isinstance(event, p.CallDelta)]
    [call] = called(answer)
    assert call is not None
    assert [piece.name for piece in pieces if piece.name] == ["set_lamp"]
    assert len(pieces) >= 4
    assert "".join(piece.arguments for piece in pieces) == call.arguments_json
    assert [piece.tokens for piece in pieces] == sorted(piece.tokens for piece in pieces)


def test_several_calls_at_once_if_that_is_allowed(worker: WorkerProcess, calling: tuple[str, ...]) -> None:
    options = greedy(enable_thinking=False, logit_bias=calling, parallel_tool_calls=True, max_tokens=200)
    answer = worker.ask([user(QUESTION)], options, tools_json=TOOLS)
    calls = [call for call in called(answer) if call is not None]
    assert len(calls) > 2
    assert all(map(is_valid, calls))


def test_nothing_is_a_call_where_none_may_be_made(worker: WorkerProcess, calling: tuple[str, ...]) -> None:
    options = greedy(enable_thinking=False, logit_bias=calling, max_tokens=5)
    answer = worker.ask([user(QUESTION)], options, tools_json=TOOLS, may_call=False)
    assert called(answer) == []
    assert answer.text == "<tool_call>" * 5


def test_tools_change_nothing_for_a_model_that_calls_none(worker: WorkerProcess) -> None:
    answer = worker.ask([user(QUESTION)], greedy(enable_thinking=False), tools_json=TOOLS)
    assert called(answer) == []
    assert answer.stop_reason == "eos"


@pytest.mark.parametrize("tools", [("{}",), ("nonsense",), (TOOLS[0], "[]")])
def test_definitions_that_are_none_are_refused(worker: WorkerProcess, tools: tuple[str, ...]) -> None:
    assert worker.refuse([user(QUESTION)], tools_json=tools).sentence


def test_drafts_change_nothing_of_a_call(worker: WorkerProcess, calling: tuple[str, ...]) -> None:
    options = greedy(enable_thinking=False, logit_bias=calling)
    chat = [user(QUESTION)]
    plain = worker.ask(chat, options, tools_json=TOOLS)
    with worker_process() as process:
        drafting = demo_options(speculative="lookup", draft_n_max=3)
        assert process.load(drafting).n_draft_max > 0
        drafted = process.ask(chat, options, tools_json=TOOLS)
        again = [*chat, *with_result(drafted, "Done."), text_message("assistant", "Done."), user(QUESTION)]
        repeated = process.ask(again, options, tools_json=TOOLS)
    assert called(drafted) == called(plain)
    assert repeated.stats.drafted_tokens > 0
    [call] = called(repeated)
    assert call is not None
    assert is_valid(call)


@pytest.mark.parametrize("thinking", [False, True], ids=["no-think", "think"])
def test_a_call_that_must_come_comes_after_the_thinking(worker: WorkerProcess, thinking: bool) -> None:
    asked = [user(QUESTION)]
    free = worker.ask(asked, greedy(enable_thinking=thinking), tools_json=TOOLS)
    answer = worker.ask(asked, greedy(enable_thinking=thinking), tools_json=TOOLS, must_call="*")
    assert (free.stop_reason, answer.stop_reason) == ("eos", "tool_calls")
    assert (answer.reasoning, answer.text) == (free.reasoning, "")
    [call] = called(answer)
    assert call is not None
    assert is_valid(call)


def test_the_tool_that_must_be_called_is_the_one_that_is_named(worker: WorkerProcess) -> None:
    for name in SCHEMAS:
        [call] = called(worker.ask([user(QUESTION)], greedy(enable_thinking=False), tools_json=TOOLS, must_call=name))
        assert call is not None
        assert call.name == name
        assert is_valid(call)


def test_tools_count_as_tokens_of_the_prompt(worker: WorkerProcess) -> None:
    asked = (user(QUESTION),)
    options = greedy(enable_thinking=False)
    worker.send(p.Measure, messages=asked, options=options, tools_json=TOOLS)
    counted = worker.expect(p.Measured)
    assert counted.prompt_tokens == worker.ask(asked, options, tools_json=TOOLS).stats.prompt_tokens
