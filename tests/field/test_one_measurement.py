"""While something is measured on this PC, nothing else loads a model, in whatever way it is asked."""

import asyncio

import pytest

from qwendesk.engine.state import Phase
from tests.bench.view.conftest import TrialDesk, trial_desk
from tests.fakes.answer_stream import ScriptedAnswer
from tests.fakes.engine import FakeEngineClient
from tests.field.grid import SERVER, Kind, Way, case
from tests.field.serving import served

__all__ = ["trial_desk"]

AT_ONCE = Kind(
    "A measurement and something else have models loaded at once: one doesn't fit, and what is measured is wrong",
    {
        Way.CLI: "a command is a process of its own, and plans for the memory that is free then",
        Way.MCP: "an MCP server loads no model",
        Way.IMPORT: "an import loads no model",
    },
)
FOUND = "found when the trial of a PC and the Bench page became one"


@case(AT_ONCE, Way.WINDOW, report=FOUND, before="failed")
async def test_a_question_ends_a_trial_of_the_pc(trial_desk: TrialDesk) -> None:
    await trial_desk.load_demo()
    await trial_desk.run_into_first_question()
    trial_desk.window.show_page("chat")

    trial_desk.send("hello")
    trial_desk.click("composer.interrupt")
    await trial_desk.until(lambda: bool(trial_desk.parts.chat.conversation.turns) and not trial_desk.parts.chat.busy)

    assert trial_desk.report.was_stopped
    assert all(client.closed for _, client in trial_desk.pc.clients)


@case(AT_ONCE, Way.WINDOW, report=FOUND, before="failed")
async def test_no_speed_is_measured_during_a_trial(trial_desk: TrialDesk) -> None:
    await trial_desk.load_demo()
    await trial_desk.run_into_first_question()

    trial_desk.parts.navigation.bench_section_asked.emit("speed")
    trial_desk.click("bench.run")
    await trial_desk.until(lambda: trial_desk.is_shown("bench.trouble"))

    assert "Another measurement is running" in trial_desk.text_of("bench.trouble")
    assert trial_desk.pc.trial.state.value.is_running


@case(AT_ONCE, Way.WINDOW, report=FOUND, before="held")
async def test_a_trial_does_not_begin_while_an_answer_is_generated(trial_desk: TrialDesk) -> None:
    await trial_desk.load_demo()
    trial_desk.client.answers = [ScriptedAnswer(text="long " * 50, tokens_per_second=0.0001)]
    trial_desk.window.show_page("chat")
    trial_desk.send("hello")
    await trial_desk.until(lambda: trial_desk.parts.engine.state.phase is Phase.ANSWERING)
    trial_desk.window.show_page("bench")

    trial_desk.click("pc.run")
    await trial_desk.until(lambda: trial_desk.is_shown("pc.trouble"))

    assert "An answer is being generated" in trial_desk.text_of("pc.trouble")
    assert trial_desk.pc.clients == []


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/v1/messages"])
@case(AT_ONCE, *SERVER, report=FOUND, before="failed")
async def test_a_request_is_told_that_something_is_measured(path: str) -> None:
    client, begun = FakeEngineClient(), asyncio.Event()

    async def measure() -> None:
        begun.set()
        await asyncio.Event().wait()

    async with served(client) as server:
        runs = server.services.bench.runs
        measuring = asyncio.create_task(runs.run_alone("pc", measure))
        await begun.wait()
        status, body = await server.ask(path)
        runs.stop()
        await measuring

    assert status == 503
    assert "A measurement is running" in str(body)
