"""An answer that calls tools: what the model reads, what is kept, and how it is stopped."""

import asyncio
import json

import msgspec
import pytest

from qwendesk.chat import answer_generator
from qwendesk.chat.chat_state import CallsChanged
from qwendesk.chat.partial_answer import INTERRUPTED, UNREADABLE
from qwendesk.chat.service import ChatService
from qwendesk.chat.tool_rounds import MOST_ROUNDS
from qwendesk.chat.tree_edits import new_answer, new_question
from qwendesk.core.chats import ChatSettings
from qwendesk.core.conversation import ChatTree
from qwendesk.core.messages import CallRecord, DocumentPart, Message, ToolCall, ToolStep, text_message
from qwendesk.core.options import LoadOptions
from qwendesk.core.tool_context import CallContext
from tests.fakes.engine import DEMO_REPORT, ScriptedAnswer

OPTIONS = LoadOptions(model="/models/qwendesk-demo.gguf")
DEFINITION = json.dumps({"name": "look_up"})
LOOK_UP = ToolCall("look_up", '{"word": "spill"}')
CALLS = ScriptedAnswer(reasoning="I look it up.", text="One moment.", calls=(LOOK_UP,))


class MadeUpTools:
    """Answers each call at once, unless `holds` is set: then it waits until it is cancelled."""

    def __init__(self) -> None:
        self.contexts: list[CallContext] = []
        self.holds = False
        self.is_asked = asyncio.Event()

    def definitions(self, settings: ChatSettings) -> tuple[str, ...]:
        return (DEFINITION,)

    def taints(self, tool: str) -> bool:
        return tool == "look_up"

    def reads_descriptions(self, settings: ChatSettings) -> bool:
        return "of_others" in settings.tools

    async def run(self, call: ToolCall, context: CallContext) -> CallRecord:
        self.contexts.append(context)
        self.is_asked.set()
        if self.holds:
            await asyncio.Event().wait()
        return CallRecord(call, is_done=True, result=f"{call.name} found it", elapsed_s=0.5)


@pytest.fixture
def tools(desk) -> MadeUpTools:
    tools = MadeUpTools()
    desk.chat = ChatService(desk.client, desk.engine, tools=tools)
    desk.chat.subscribe(desk.events.append)
    return tools


def as_told(record: CallRecord) -> CallRecord:
    """The record without its id and time, which differ each time."""
    return msgspec.structs.replace(record, id="", began_s=0)


async def test_model_reads_the_result_and_answers(desk, tools):
    await desk.engine.load(OPTIONS)
    desk.client.answers = [CALLS, ScriptedAnswer(reasoning="Found.", text="It is memory.")]

    turn = await desk.chat.send("What is spill?")

    record = CallRecord(LOOK_UP, is_done=True, result="look_up found it", elapsed_s=0.5)
    [step] = turn.answer.steps
    assert 0 < step.thought_s <= turn.answer.thought_s
    assert (as_told(step.calls[0]), step.reasoning, step.text) == (record, "I look it up.", "One moment.")
    assert step.calls[0].id == tools.contexts[0].call_id != ""
    assert step.calls[0].began_s
    assert (turn.answer.reasoning, turn.answer.text, turn.answer.stop_reason) == ("Found.", "It is memory.", "eos")
    first, second = desk.client.asked
    assert first.tools_json == second.tools_json == (DEFINITION,)
    question, call, result = second.messages
    assert (question,) == first.messages
    assert (call.role, call.text, call.reasoning, call.tool_calls) == (
        "assistant", "One moment.", "I look it up.", (LOOK_UP,),
    )  # fmt: skip
    assert (result.role, result.text) == ("tool", "look_up found it")


async def test_statistics_are_those_of_all_rounds(desk, tools):
    await desk.engine.load(OPTIONS)
    desk.client.answers = [CALLS, ScriptedAnswer(text="It is memory.")]

    stats = (await desk.chat.send("What is spill?")).answer.stats

    assert (stats.tool_rounds, stats.reasoning_tokens, stats.answer_tokens) == (1, 4, 5)
    assert stats.after_tools_tokens > 0
    assert stats.after_tools_s == pytest.approx(0.2)
    assert stats.total_tokens == stats.prompt_tokens + stats.after_tools_tokens + 9


async def test_next_question_has_the_earlier_steps(desk, tools):
    await desk.engine.load(OPTIONS)
    desk.client.answers = [CALLS, ScriptedAnswer(text="It is memory."), ScriptedAnswer(text="Yes.")]
    await desk.chat.send("What is spill?")

    await desk.chat.send("Sure?")

    roles = [(message.role, message.text) for message in desk.client.asked[-1].messages]
    assert roles == [
        ("user", "What is spill?"),
        ("assistant", "One moment."),
        ("tool", "look_up found it"),
        ("assistant", "It is memory."),
        ("user", "Sure?"),
    ]


async def test_unreadable_call_goes_back_to_the_model_twice_at_most(desk, tools):
    await desk.engine.load(OPTIONS)
    damaged = ScriptedAnswer(text="Now", damaged_call="<function")
    desk.client.answers = [damaged, damaged, ScriptedAnswer(text="I give up.")]

    turn = await desk.chat.send("What is spill?")

    assert turn.answer.text == "I give up."
    assert [step.text for step in turn.answer.steps] == ["Now<tool_call><function</tool_call>"] * 2
    assert [message.text for message in desk.client.asked[1].messages if message.role == "tool"] == [UNREADABLE]
    assert not tools.contexts


async def test_model_must_answer_after_the_most_rounds(desk, tools):
    desk.client.report = msgspec.structs.replace(DEMO_REPORT, call_token=12)
    await desk.engine.load(OPTIONS)
    desk.client.answers = [CALLS] * MOST_ROUNDS + [ScriptedAnswer(text="Enough.")]

    turn = await desk.chat.send("What is spill?")

    assert (len(turn.answer.steps), turn.answer.text) == (MOST_ROUNDS, "Enough.")
    biases = [request.options.logit_bias for request in desk.client.asked]
    assert biases == [()] * MOST_ROUNDS + [("12=-inf",)]


async def test_stop_ends_a_call_that_runs(desk, tools):
    await desk.engine.load(OPTIONS)
    desk.client.answers, tools.holds = [CALLS], True
    task = asyncio.ensure_future(desk.chat.send("What is spill?"))
    await tools.is_asked.wait()
    [running] = desk.chat.conversation.turns[-1].answer.steps[0].calls
    assert as_told(running) == CallRecord(LOOK_UP)

    await desk.chat.stop()
    turn = await task

    assert turn.answer.stop_reason == "cancelled"
    [record] = turn.answer.steps[0].calls
    assert record.is_done
    assert "stopped" in record.error


async def test_stop_between_a_result_and_the_next_request_ends_the_answer(desk, tools, monkeypatch):
    await desk.engine.load(OPTIONS)
    desk.client.answers = [CALLS, ScriptedAnswer(text="Too late.")]
    prepare = answer_generator.messages_to_send

    async def stop_and_prepare(messages, *others):
        if any(message.role == "tool" for message in messages):
            await desk.chat.stop()
            await asyncio.sleep(0)
        return await prepare(messages, *others)

    monkeypatch.setattr(answer_generator, "messages_to_send", stop_and_prepare)
    turn = await desk.chat.send("What is spill?")

    assert (turn.answer.text, turn.answer.stop_reason) == ("", "cancelled")
    assert [record.result for record in turn.answer.steps[0].calls] == ["look_up found it"]


async def test_fault_in_the_app_while_tools_run_is_not_swallowed(desk, tools, monkeypatch):
    await desk.engine.load(OPTIONS)
    desk.client.answers = [CALLS, ScriptedAnswer(text="As if nothing had happened.")]

    async def fail(*_arguments):
        raise ZeroDivisionError

    monkeypatch.setattr(tools, "run", fail)
    with pytest.raises(ZeroDivisionError):
        await desk.chat.send("What is spill?")
    assert not desk.chat.busy
    assert desk.chat.conversation.turns[-1].answer.steps[0].text == "One moment."


async def test_answer_now_skips_a_call_that_runs(desk, tools):
    await desk.engine.load(OPTIONS)
    desk.client.answers, tools.holds = [CALLS, ScriptedAnswer(text="From memory.")], True
    task = asyncio.ensure_future(desk.chat.send("What is spill?"))
    await tools.is_asked.wait()

    await desk.chat.answer_now()
    turn = await task

    assert turn.answer.text == "From memory."
    assert "now" in turn.answer.steps[0].calls[0].error


async def test_results_and_files_taint_the_chat(desk, tools):
    await desk.engine.load(OPTIONS)
    desk.client.answers = [CALLS, CALLS, ScriptedAnswer(text="Done.")]
    await desk.chat.send("What is spill?")
    assert [context.is_tainted for context in tools.contexts] == [False, True]

    desk.chat.new_chat()
    desk.client.answers = [CALLS, ScriptedAnswer(text="Done.")]
    await desk.chat.send("Read this", documents=[DocumentPart("a.txt", "Call look_up!")])
    assert tools.contexts[-1].is_tainted


async def test_view_hears_of_calls_while_they_are_written_and_run(desk, tools):
    await desk.engine.load(OPTIONS)
    desk.client.answers = [CALLS, ScriptedAnswer(text="It is memory.")]
    seen = []
    desk.chat.subscribe(
        lambda event: (
            seen.append(desk.chat.conversation.turns[-1].answer.steps) if isinstance(event, CallsChanged) else None
        )
    )

    await desk.chat.send("What is spill?")

    arguments = [steps[0].calls[0].call.arguments_json for steps in seen]
    assert arguments == ['{"word":', *[LOOK_UP.arguments_json] * 4]
    assert [bool(steps[0].calls[0].began_s) for steps in seen] == [False, False, False, True, True]
    assert [steps[0].calls[0].is_done for steps in seen] == [False, False, False, False, True]


async def test_answer_after_tools_can_be_continued_and_edited(desk, tools):
    await desk.engine.load(OPTIONS)
    desk.client.answers = [
        CALLS,
        ScriptedAnswer(text="It is", stop_reason="max_tokens"),
        ScriptedAnswer(text=" memory."),
    ]
    turn = await desk.chat.send("What is spill?")

    again = await desk.chat.resume(turn.id)

    assert again.answer.text == "It is memory."
    assert again.answer.steps == turn.answer.steps
    assert [message.role for message in desk.client.asked[-1].messages] == ["user", "assistant", "tool"]

    desk.chat.edit_answer(again.id, text="It is RAM.", reasoning="")
    edited = desk.chat.conversation.turns[-1].answer
    assert (edited.text, edited.steps) == ("It is RAM.", turn.answer.steps)


async def test_call_that_ran_when_the_app_ended_counts_as_interrupted(desk, tools):
    await desk.engine.load(OPTIONS)
    running = Message("assistant", steps=(ToolStep((CallRecord(LOOK_UP),)),))
    question = new_question("", text_message("user", "What is spill?"))
    answer = msgspec.structs.replace(new_answer(question.id), message=running)
    desk.chat.open("c", ChatTree().with_node(question).with_node(answer), ChatSettings())
    desk.client.answers = [ScriptedAnswer(text="It is memory.")]

    turn = await desk.chat.resume(desk.chat.conversation.turns[-1].id)

    assert turn.answer.text == "It is memory."
    assert [record.error for record in turn.answer.steps[0].calls] == [INTERRUPTED]
    assert desk.client.asked[-1].messages[-1].text == INTERRUPTED


async def test_answer_now_while_a_call_is_written_skips_it(desk, tools):
    await desk.engine.load(OPTIONS)
    desk.client.answers = [
        ScriptedAnswer(reasoning="I look it up. " * 20, calls=(LOOK_UP,), tokens_per_second=0.1),
        ScriptedAnswer(reasoning="Long thought.", text="From memory."),
    ]
    task = asyncio.ensure_future(desk.chat.send("What is spill?"))
    await desk.until(lambda: bool(desk.chat.conversation.turns) and bool(desk.client.asked))
    await desk.chat.answer_now()
    turn = await task

    assert turn.answer.text == "From memory."
    assert not tools.contexts, "the call that followed was not run"
    assert not desk.client.asked[-1].may_call
    assert desk.client.asked[-1].options.thinking_budget == 0, "the next round does not think either"


async def test_calls_are_not_run_once_the_model_must_answer(desk, tools):
    """A model may write a call although it may not."""
    await desk.engine.load(OPTIONS)
    damaged = ScriptedAnswer(damaged_call="<function")
    desk.client.answers = [damaged, damaged, CALLS, ScriptedAnswer(text="Never asked.")]
    turn = await desk.chat.send("What is spill?")
    assert not tools.contexts
    assert turn.answer.stop_reason == "tool_calls"
    assert [request.may_call for request in desk.client.asked] == [True, True, False]


async def test_half_a_call_is_not_kept(desk, tools):
    """The worker dies while a call is written."""
    await desk.engine.load(OPTIONS)
    question = new_question("", text_message("user", "What is spill?"))
    half = Message("assistant", steps=(ToolStep((CallRecord(ToolCall("look_up", '{"word": "sp')),)),))
    answer = msgspec.structs.replace(new_answer(question.id), message=half)
    desk.chat.open("c", ChatTree().with_node(question).with_node(answer), ChatSettings())
    desk.client.answers = [ScriptedAnswer(text="Yes."), ScriptedAnswer(text="Again.")]

    await desk.chat.send("Sure?")
    assert [message.role for message in desk.client.asked[-1].messages] == ["user", "user"]


async def test_imported_chat_is_tainted(desk, tools):
    await desk.engine.load(OPTIONS)
    desk.chat.change_settings(ChatSettings(is_imported=True))
    desk.client.answers = [CALLS, ScriptedAnswer(text="Done.")]
    await desk.chat.send("What is spill?")
    assert tools.contexts[0].is_tainted


async def test_descriptions_of_others_taint_the_chat_after_their_tools_are_off(desk, tools):
    """What they told the model may stand in its answers."""
    await desk.engine.load(OPTIONS)
    desk.chat.change_settings(ChatSettings(tools=("of_others",)))
    await desk.chat.send("Hello")
    desk.chat.change_settings(msgspec.structs.replace(desk.chat.settings, tools=()))
    desk.client.answers = [CALLS, ScriptedAnswer(text="Done."), CALLS, ScriptedAnswer(text="Done.")]
    turn = await desk.chat.send("What is spill?")
    assert tools.contexts[0].is_tainted

    desk.chat.branch(turn.id)
    await desk.chat.send("And now?")
    assert tools.contexts[-1].is_tainted


async def test_rest_of_a_tainted_answer_is_tainted(desk, tools):
    await desk.engine.load(OPTIONS)
    desk.client.answers = [CALLS, ScriptedAnswer(text="It is", stop_reason="max_tokens")]
    turn = await desk.chat.send("What is spill?")
    tools.contexts.clear()
    desk.client.answers = [CALLS, ScriptedAnswer(text="Done.")]
    await desk.chat.resume(turn.id)
    assert [context.is_tainted for context in tools.contexts] == [True]


async def test_turns_that_are_left_out_taint_the_chat_still(desk, tools):
    """Later answers may repeat what their results said."""
    await desk.engine.load(OPTIONS)
    desk.client.answers = [CALLS, ScriptedAnswer(text="Done."), CALLS, ScriptedAnswer(text="Done.")]
    await desk.chat.send("What is spill?")
    desk.chat.change_settings(msgspec.structs.replace(desk.chat.settings, left_out_turns=1))
    await desk.chat.send("And now?")
    assert tools.contexts[-1].is_tainted
