"""The memory is freed when nobody has asked for so long, and never while somebody waits for an answer."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from qwendesk.core.failures import LoadFailure
from qwendesk.core.options import LoadOptions
from qwendesk.engine.state import Phase
from qwendesk.services.engine.idle import IdleEject
from qwendesk.services.settings import SettingsService
from tests.services.conftest import Desk

pytestmark = pytest.mark.asyncio


class Alarm:
    def __init__(self, seconds: float, ring: Callable[[], None]) -> None:
        self.seconds, self.ring, self.is_set = seconds, ring, True

    def cancel(self) -> None:
        self.is_set = False


class Clock:
    """Alarms that ring when the test says so."""

    def __init__(self) -> None:
        self.alarms: list[Alarm] = []

    def later(self, seconds: float, ring: Callable[[], None]) -> Alarm:
        self.alarms.append(Alarm(seconds, ring))
        return self.alarms[-1]

    @property
    def set_alarms(self) -> list[Alarm]:
        return [alarm for alarm in self.alarms if alarm.is_set]


@pytest.fixture
def settings(tmp_path: Path) -> SettingsService:
    return SettingsService(tmp_path / "settings.json")


async def test_a_model_that_nobody_asks_is_ejected(desk: Desk, settings: SettingsService) -> None:
    settings.change({"eject_after_min": 5})
    clock = Clock()
    idle = IdleEject(desk.engine, settings, clock.later)
    assert clock.set_alarms == []
    await desk.engine.load(LoadOptions(model="/models/a.gguf"))
    (alarm,) = clock.set_alarms
    assert alarm.seconds == 300
    alarm.ring()
    await idle.close()
    assert desk.engine.state.report is None


async def test_a_question_begins_the_time_anew(desk: Desk, settings: SettingsService) -> None:
    settings.change({"eject_after_min": 5})
    clock = Clock()
    idle = IdleEject(desk.engine, settings, clock.later)
    await desk.engine.load(LoadOptions(model="/models/a.gguf"))
    first = clock.set_alarms[0]
    alarms_while_answering = []
    desk.engine.subscribe(
        lambda state: alarms_while_answering.append(len(clock.set_alarms)) if state.phase is Phase.ANSWERING else None
    )
    await desk.chat.send("Hi")
    assert set(alarms_while_answering) == {0}
    assert not first.is_set
    assert len(clock.set_alarms) == 1
    await idle.close()
    assert desk.engine.state.report is not None


async def test_never_is_never_and_a_change_holds_at_once(desk: Desk, settings: SettingsService) -> None:
    clock = Clock()
    idle = IdleEject(desk.engine, settings, clock.later)
    await desk.engine.load(LoadOptions(model="/models/a.gguf"))
    assert clock.alarms == []
    settings.change({"eject_after_min": 1})
    assert [alarm.seconds for alarm in clock.set_alarms] == [60]
    settings.change({"eject_after_min": 0})
    assert clock.set_alarms == []
    await idle.close()


async def test_the_next_question_loads_the_model_again_as_it_was_asked_for(desk: Desk) -> None:
    options = LoadOptions(model="/models/a.gguf", n_ctx=4096)
    await desk.engine.load(options)
    await desk.engine.rest()
    assert desk.engine.state.report is None
    assert desk.engine.state.resting == options
    turn = await desk.chat.send("Still there?")
    assert turn.answer.text
    assert not turn.answer.error
    assert desk.engine.state.resting is None
    assert desk.engine.state.report is not None
    assert desk.engine.state.report.options.n_ctx == 4096


async def test_a_load_that_fails_then_says_why_in_the_answer(desk: Desk) -> None:
    await desk.engine.load(LoadOptions(model="/models/a.gguf"))
    await desk.engine.rest()
    desk.client.load_result = LoadFailure("out_of_vram", "Not enough memory", "A game has it now. Close the game.")
    turn = await desk.chat.send("Still there?")
    assert turn.answer.error == "A game has it now. Close the game."


async def test_what_rests_goes_on_resting_when_no_worker_may_be_left(desk: Desk) -> None:
    options = LoadOptions(model="/models/a.gguf")
    await desk.engine.load(options)
    await desk.engine.rest()
    await desk.engine.probe()
    assert desk.engine.state.phase is Phase.IDLE
    await desk.engine.rest()
    assert desk.engine.state.phase is Phase.OFF
    assert desk.engine.state.resting == options


async def test_what_a_person_ejects_stays_ejected(desk: Desk) -> None:
    await desk.engine.load(LoadOptions(model="/models/a.gguf"))
    await desk.engine.rest()
    await desk.engine.eject()
    turn = await desk.chat.send("Still there?")
    assert turn.answer.error
    assert desk.engine.state.report is None


async def test_a_stop_while_it_loads_ends_the_question_and_not_the_load(desk: Desk) -> None:
    await desk.engine.load(LoadOptions(model="/models/a.gguf"))
    await desk.engine.rest()
    question = asyncio.create_task(desk.chat.send("Still there?"))
    await desk.until(lambda: desk.engine.state.phase is Phase.LOADING)
    await desk.chat.stop()
    turn = await question
    assert turn.answer.stop_reason == "cancelled"
    await desk.engine.settled()
    assert desk.engine.state.report is not None
