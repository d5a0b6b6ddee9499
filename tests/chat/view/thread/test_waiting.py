"""A question that waits says for what: for the model that loads, or for a program's answer."""

from collections.abc import Callable

import msgspec
import pytest
from PySide6.QtCore import Qt

from qwendesk.chat.view.thread.thread_controller import waiting_text
from qwendesk.engine.protocol import PromptProgress, WaitsFor
from qwendesk.engine.state import Phase
from tests.fakes.engine import ScriptedAnswer
from tests.window_desk import Desk

WAITS_FOR_ANSWER = WaitsFor(id=7, program="Claude Code", done=1_311, prompt_tokens=500, max_tokens=1_000)


async def test_sending_while_the_model_loads_waits_for_it(make_desk: Callable[[], Desk]) -> None:
    desk = make_desk()
    desk.client.load_delay_s = 0.3
    desk.parts.window.load_demo()
    await desk.until(lambda: desk.parts.engine.state.phase is Phase.LOADING)
    assert "Loading" in desk.text_of("model.button")
    desk.send("Are you there?")
    await desk.until(lambda: desk.has("thread.status.1"))
    assert "Loading the model" in desk.text_of("thread.status.1")
    assert not desk.client.asked
    await desk.until(lambda: not desk.parts.chat.busy and not desk.window.chat_page.thread_view.is_busy)
    assert desk.parts.chat.conversation.turns[-1].answer.text == "You said: Are you there?"


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "Claude Code comes first: its answer is at token 812 of at most 1,000"),
        ({"max_tokens": -1}, "Claude Code comes first: its answer is at token 812"),
        ({"done": 200}, "Claude Code comes first: 40% of its prompt is processed"),
        ({"program": "", "done": 499}, "Another program comes first: 99% of its prompt is processed"),
    ],
)
def test_the_text_of_what_a_question_waits_for(changes: dict[str, object], text: str) -> None:
    assert waiting_text(msgspec.structs.replace(WAITS_FOR_ANSWER, **changes)) == text


async def test_a_question_that_waits_for_a_program_says_so_until_it_is_its_turn(desk: Desk) -> None:
    desk.client.answers.append(ScriptedAnswer(text="Here I am.", tokens_per_second=0.001))
    desk.send("Are you there?")
    await desk.until(lambda: bool(desk.client.asked))
    question = desk.client.asked[0].id
    desk.client.publish(msgspec.structs.replace(WAITS_FOR_ANSWER, id=question))
    assert desk.text_of("thread.status.1").startswith("Claude Code comes first")
    # The program's own progress is not the question's.
    desk.client.publish(PromptProgress(id=question + 1, done=5, total=10, reused=0))
    assert desk.parts.engine.state.waits_for is not None
    desk.client.publish(PromptProgress(id=question, done=0, total=10, reused=0))
    assert desk.parts.engine.state.waits_for is None
    desk.press(Qt.Key.Key_Escape)
    await desk.until(lambda: not desk.parts.chat.busy)


async def test_an_engine_that_stops_lets_nothing_wait_for_a_program(desk: Desk) -> None:
    desk.client.publish(WAITS_FOR_ANSWER)
    desk.client.kill()
    assert desk.parts.engine.state.waits_for is None
