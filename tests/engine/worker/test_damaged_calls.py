"""Two hundred made conversations with damaged calls, in both dialects: no answer and no call is lost.

`python -m bench.tool_calls` gives the same ones to llama-server's parser.
"""

import json
import random

import pytest

from qwendesk.engine import protocol as p
from qwendesk.engine.worker.call_grammar import CallDialect
from qwendesk.engine.worker.prompt import Prompt, build_prompt
from tests.engine.worker.conftest import Demo
from tests.engine.worker.made_calls import TOOLS_JSON
from tests.engine.worker.made_conversations import (
    DAMAGES,
    DIALECTS,
    N_CONVERSATIONS,
    TEMPLATES,
    Conversation,
    made_answer,
    made_conversations,
)
from tests.engine.worker.parsed_answers import parsed, writer_for
from tests.engine.worker.templates import compiled

CONVERSATIONS = made_conversations()


def prompt_of(demo: Demo, conversation: Conversation, number: int) -> Prompt:
    return build_prompt(
        compiled(TEMPLATES[conversation.dialect]), demo.vocabulary, conversation.messages_before(number),
        tools_json=TOOLS_JSON, enable_thinking=conversation.thinking, preserve_thinking=False,
    )  # fmt: skip


def test_there_are_two_hundred_with_a_dozen_kinds_of_damage() -> None:
    assert len(CONVERSATIONS) == N_CONVERSATIONS == 200
    for dialect in DIALECTS:
        ours = [each for each in CONVERSATIONS if each.dialect == dialect]
        damages = {each.damage for conversation in ours for each in conversation.rounds}
        assert damages == set(DAMAGES[dialect])
        assert len(damages - {"none"}) >= 12
        assert {each.thinking for each in ours} == {True, False}
        assert {len(each.rounds) for each in ours} == {2, 3, 4}


@pytest.mark.parametrize("thinking", [False, True], ids=["no-think", "think"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_answer_and_no_call_is_lost(demo: Demo, dialect: CallDialect, thinking: bool) -> None:
    for conversation in CONVERSATIONS:
        if (conversation.dialect, conversation.thinking) != (dialect, thinking):
            continue
        earlier: tuple[int, ...] = ()
        for number, each in enumerate(conversation.rounds):
            prompt = prompt_of(demo, conversation, number)
            (tokens,) = prompt.pieces
            assert isinstance(tokens, tuple)
            assert tokens[: len(earlier)] == earlier, "what was read stays as it is"
            earlier = tokens

            answer = parsed(demo, each.written, in_reasoning=prompt.opens_reasoning)

            assert answer.reasoning.strip() == each.made.reasoning, each.written
            assert " ".join(answer.text.split()) == each.text, each.written
            assert len(answer.calls) == bool(each.made.name), each.written
            for called in answer.calls:
                assert called.call is not None, each.written
                assert called.call.name == each.made.name
                assert json.loads(called.call.arguments_json) == each.made.arguments, each.written


@pytest.mark.parametrize("tail", ["", "\nDone."])
def test_a_call_without_its_first_tag_is_one(demo: Demo, tail: str) -> None:
    made = made_answer(random.Random(3), "xml", thinking=True)
    answer = parsed(demo, made.head + made.call.removeprefix("<tool_call>\n") + tail, in_reasoning=True)
    assert [json.loads(called.call.arguments_json) for called in answer.calls if called.call] == [made.arguments]
    assert " ".join(answer.text.split()) == f"{made.text} {tail.strip()}".strip()


def test_code_that_shows_a_call_is_text(demo: Demo) -> None:
    made = made_answer(random.Random(5), "xml", thinking=False)
    call = made.call.removeprefix("<tool_call>").removesuffix("</tool_call>")
    for written in (f"Like this:\n```{call}```\nThat is it.", f"Write <function={made.name}> to call it."):
        answer = parsed(demo, written)
        assert answer.text == written
        assert not answer.calls


def test_a_call_that_is_cut_off_is_never_a_call(demo: Demo) -> None:
    made = made_answer(random.Random(4), "xml", thinking=False)
    events: list[p.Event] = []
    writer = writer_for(demo, events)
    head, whole = demo.tokenize(made.text, parse_special=True), demo.tokenize(made.call, parse_special=True)
    for token in (*head, *whole[:-3]):
        writer.write(token)
    writer.finish(can_continue=True)

    [called] = [event for event in events if isinstance(event, p.Called)]
    assert (called.call, called.is_finished) == (None, False)
    assert writer.tokens == head, "the answer continues before the call"
    assert writer.n_calls == 0


def test_without_tools_a_call_is_text(demo: Demo) -> None:
    call = "<tool_call>\n<function=current_time>\n</function>\n</tool_call>"
    answer = parsed(demo, call, tools={})
    assert (answer.text, answer.calls) == (call, ())
