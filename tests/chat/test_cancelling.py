"""Whoever awaits the chat may be cancelled at any moment: the next question is answered."""

import asyncio
import itertools
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from qwendesk.chat.chat_state import TurnStarted
from qwendesk.chat.service import ChatService
from qwendesk.core.conversation import Turn
from qwendesk.core.options import LoadOptions
from qwendesk.engine.state import Phase
from tests.cancelling import cancelled_at, public_coroutines
from tests.chat.test_tool_rounds import CALLS, MadeUpTools
from tests.fakes.engine import ScriptedAnswer
from tests.service_desk import Desk

ANSWER = ScriptedAnswer(reasoning="Let me see.", text="It is four.")
METHODS: dict[str, Callable[[ChatService, Turn], Coroutine[Any, Any, Any]]] = {
    "send": lambda chat, _: chat.send("And now?"),
    "edit_question": lambda chat, turn: chat.edit_question(turn.id, "And now?"),
    "regenerate": lambda chat, turn: chat.regenerate(turn.id),
    "continue_thinking": lambda chat, turn: chat.continue_thinking(turn.id),
    "call_again": lambda chat, turn: chat.call_again(turn.id, 0),
    "resume": lambda chat, turn: chat.resume(turn.id),
    "stop": lambda chat, _: chat.stop(),
    "answer_now": lambda chat, _: chat.answer_now(),
}


async def desk_with_a_turn() -> tuple[Desk, Turn]:
    desk = Desk()
    desk.chat = ChatService(desk.client, desk.engine, tools=MadeUpTools())
    await desk.engine.load(LoadOptions(model="/models/a.gguf"))
    desk.client.answers = [CALLS, ANSWER]
    return desk, await desk.chat.send("2 + 2?")


async def test_every_coroutine_of_the_chat_is_tried():
    assert set(METHODS) == public_coroutines(ChatService)


@pytest.mark.parametrize("when_done", [False, True])
@pytest.mark.parametrize("is_idle", [False, True])
@pytest.mark.parametrize("name", METHODS)
async def test_cancelled_at_each_await_it_leaves_a_chat_that_answers(name, is_idle, when_done):
    for number in itertools.count(1):
        desk, turn = await desk_with_a_turn()
        if is_idle:
            await desk.engine.unload_idle()
        desk.client.answers = [CALLS, ANSWER]
        sending = None
        if name in ("stop", "answer_now"):
            sending = asyncio.create_task(desk.chat.send("And now?"))
            started = asyncio.Event()
            desk.chat.subscribe(lambda event, started=started: isinstance(event, TurnStarted) and started.set())
            await started.wait()
        has_ended = await cancelled_at(number, METHODS[name](desk.chat, turn), when_done=when_done)
        if sending is not None:
            await sending
        await desk.engine.wait_until_settled()
        assert not desk.chat.busy
        assert desk.engine.state.phase in (Phase.OFF, Phase.READY)
        desk.client.answers = [ANSWER]
        assert (await desk.chat.send("The next?")).answer.text == ANSWER.text
        await desk.engine.close()
        assert not desk.client.is_running
        if has_ended:
            break
