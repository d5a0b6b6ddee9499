"""One call of an answer is stopped or runs again, and what changes while calls run."""

import asyncio

import pytest

from qwendesk.core.chats import ChatSettings
from qwendesk.core.errors import BadRequest
from qwendesk.core.messages import ToolCall
from tests.chat.test_tool_rounds import CALLS, LOOK_UP, OPTIONS, tools
from tests.fakes.engine import ScriptedAnswer

__all__ = ["tools"]


async def test_one_call_is_stopped_and_the_answer_goes_on(desk, tools):
    await desk.engine.load(OPTIONS)
    other = ToolCall("look_up", '{"word": "rope"}')
    desk.client.answers, tools.holds = [ScriptedAnswer(calls=(LOOK_UP, other)), ScriptedAnswer(text="Half.")], True
    task = asyncio.ensure_future(desk.chat.send("What is spill?"))
    await tools.is_asked.wait()
    tools.holds = False
    [first, _] = desk.chat.conversation.turns[-1].answer.steps[0].calls

    desk.chat.stop_call("another")
    desk.chat.stop_call(first.id)
    turn = await task

    assert turn.answer.text == "Half."
    stopped, found = turn.answer.steps[0].calls
    assert (stopped.is_done, stopped.error, stopped.id) == (True, "The user stopped this call.", first.id)
    assert found.result == "look_up found it"


async def test_call_runs_again_and_the_answer_goes_on_from_there_as_another_version(desk, tools):
    await desk.engine.load(OPTIONS)
    first = ScriptedAnswer(reasoning="Hm.", text="First.", calls=(LOOK_UP,))
    desk.client.answers = [first, CALLS, ScriptedAnswer(text="Nothing found."), ScriptedAnswer(text="It is memory.")]
    turn = await desk.chat.send("What is spill?")
    old_steps = turn.answer.steps

    again = await desk.chat.call_again(turn.id, 1)

    assert (again.answer.text, again.answer_version) == ("It is memory.", (2, 2))
    assert again.answer.steps[0] == old_steps[0], "what came before the call stays"
    step = again.answer.steps[1]
    assert (step.reasoning, step.text, step.thought_s) == ("I look it up.", "One moment.", old_steps[1].thought_s)
    assert step.calls[0].result == "look_up found it"
    assert step.calls[0].id not in ("", old_steps[1].calls[0].id)
    assert [message.role for message in desk.client.asked[-1].messages] == ["user", *["assistant", "tool"] * 2]
    assert tools.contexts[-1].is_tainted, "the call before it has told something"
    desk.chat.show_version(again.id, "answer", -1)
    assert desk.chat.conversation.turns[-1].answer.steps == old_steps


async def test_other_calls_of_the_round_keep_their_results_when_one_runs_again(desk, tools):
    await desk.engine.load(OPTIONS)
    other = ToolCall("calculate", '{"expression": "1"}')
    desk.client.answers = [
        ScriptedAnswer(calls=(other, LOOK_UP)),
        ScriptedAnswer(text="No."),
        ScriptedAnswer(text="Ah."),
    ]
    turn = await desk.chat.send("What is spill?")
    n_run = len(tools.contexts)

    again = await desk.chat.call_again(turn.id, 0)

    assert len(tools.contexts) == n_run + 1
    assert again.answer.steps[0].calls[1] == turn.answer.steps[0].calls[1]
    assert tools.contexts[-1].is_tainted, "the model goes on with what the other call has told"


async def test_call_that_runs_again_can_be_stopped_with_the_answer(desk, tools):
    await desk.engine.load(OPTIONS)
    desk.client.answers = [CALLS, ScriptedAnswer(text="No."), ScriptedAnswer(text="Never asked.")]
    turn = await desk.chat.send("What is spill?")
    tools.holds = True
    tools.is_asked.clear()
    task = asyncio.ensure_future(desk.chat.call_again(turn.id, 0))
    await tools.is_asked.wait()
    await desk.chat.stop()
    again = await task
    assert again.answer.stop_reason == "cancelled"
    assert len(desk.client.asked) == 2
    assert again.answer.steps[0].text == "One moment."


async def test_unreadable_call_is_not_run_again(desk, tools):
    await desk.engine.load(OPTIONS)
    desk.client.answers = [ScriptedAnswer(damaged_call="<function"), ScriptedAnswer(text="I give up.")]
    turn = await desk.chat.send("What is spill?")
    for number in (0, 1):
        with pytest.raises(BadRequest):
            await desk.chat.call_again(turn.id, number)


async def test_settings_changed_meanwhile_count_for_the_next_question(desk, tools):
    """The prompt of a running answer stays as it is, so that the engine goes on with what it has processed."""
    tools.definitions = lambda settings: settings.tools
    await desk.engine.load(OPTIONS)
    desk.chat.change_settings(ChatSettings(tools=("look_up",), tool_folders=("/a", "/b"), system_prompt="Be brief."))
    desk.client.answers, tools.holds = [CALLS, ScriptedAnswer(text="Done."), ScriptedAnswer(text="Yes.")], True
    task = asyncio.ensure_future(desk.chat.send("What is spill?"))
    await tools.is_asked.wait()
    changed = ChatSettings(
        tools=("look_up", "calculate"), system_prompt="Sing.", thinking=False, overrides={"seed": "7"}
    )
    desk.chat.change_settings(changed)
    [running] = desk.chat.conversation.turns[-1].answer.steps[0].calls
    desk.chat.stop_call(running.id)
    await task

    first, second = desk.client.asked
    assert second.messages[:2] == first.messages
    assert (second.tools_json, second.options) == (first.tools_json, first.options)

    await desk.chat.send("Sure?")
    assert desk.client.asked[-1].messages[0].text == "Sing."
    assert desk.client.asked[-1].tools_json == ("look_up", "calculate")


async def test_tool_and_folder_that_are_taken_away_meanwhile_are_not_used_any_more(desk, tools):
    await desk.engine.load(OPTIONS)
    desk.chat.change_settings(ChatSettings(tools=("look_up", "calculate"), tool_folders=("/a", "/b")))
    desk.client.answers, tools.holds = [CALLS, CALLS, ScriptedAnswer(text="Done.")], True
    task = asyncio.ensure_future(desk.chat.send("What is spill?"))
    await tools.is_asked.wait()
    desk.chat.change_settings(ChatSettings(tools=("calculate", "current_time"), tool_folders=("/b", "/c")))
    tools.holds = False
    [running] = desk.chat.conversation.turns[-1].answer.steps[0].calls
    desk.chat.stop_call(running.id)
    await task
    allowed = tools.contexts[-1].settings
    assert (allowed.tools, allowed.tool_folders) == (("calculate",), ("/b",))
