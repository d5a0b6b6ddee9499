"""The memory is freed when nobody has asked for so long, and never while somebody waits for an answer."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from qwendesk.core.failures import LoadFailure
from qwendesk.core.options import LoadOptions
from qwendesk.engine.state import Phase
from qwendesk.engines.idle_unload import IdleUnload
from qwendesk.settings.service import SettingsService
from tests.service_desk import Desk


class Alarm:
    def __init__(self, seconds: float, ring: Callable[[], None]) -> None:
        self.seconds, self.ring, self.is_set = seconds, ring, True

    def cancel(self) -> None:
        self.is_set = False


class Clock:
    """Alarms that ring when the test says so."""

    def __init__(self) -> None:
        self.alarms: list[Alarm] = []

    def later(self, seconds: float, ring: Callable[[], None]) -> Callable[[], None]:
        self.alarms.append(Alarm(seconds, ring))
        return self.alarms[-1].cancel

    @property
    def set_alarms(self) -> list[Alarm]:
        return [alarm for alarm in self.alarms if alarm.is_set]


@pytest.fixture
def settings(tmp_path: Path) -> SettingsService:
    return SettingsService(tmp_path / "settings.json")


async def test_idle_model_is_unloaded(desk: Desk, settings: SettingsService) -> None:
    settings.change({"eject_after_min": 5})
    clock = Clock()
    idle = IdleUnload(desk.engine, settings, clock.later)
    assert clock.set_alarms == []
    await desk.engine.load(LoadOptions(model="/models/a.gguf"))
    (alarm,) = clock.set_alarms
    assert alarm.seconds == 300
    alarm.ring()
    await idle.close()
    assert desk.engine.state.report is None


async def test_question_restarts_the_countdown(desk: Desk, settings: SettingsService) -> None:
    settings.change({"eject_after_min": 5})
    clock = Clock()
    idle = IdleUnload(desk.engine, settings, clock.later)
    await desk.engine.load(LoadOptions(model="/models/a.gguf"))
    first = clock.set_alarms[0]
    alarms_while_answering = []
    desk.engine.observed.subscribe(
        lambda state: alarms_while_answering.append(len(clock.set_alarms)) if state.phase is Phase.ANSWERING else None
    )
    await desk.chat.send("Hi")
    assert set(alarms_while_answering) == {0}
    assert not first.is_set
    assert len(clock.set_alarms) == 1
    await idle.close()
    assert desk.engine.state.report is not None


async def test_zero_minutes_never_unload_and_a_change_takes_effect_at_once(
    desk: Desk, settings: SettingsService
) -> None:
    clock = Clock()
    idle = IdleUnload(desk.engine, settings, clock.later)
    await desk.engine.load(LoadOptions(model="/models/a.gguf"))
    assert clock.alarms == []
    settings.change({"eject_after_min": 1})
    assert [alarm.seconds for alarm in clock.set_alarms] == [60]
    settings.change({"eject_after_min": 0})
    assert clock.set_alarms == []
    await idle.close()


async def test_next_question_reloads_the_model_with_the_same_options(desk: Desk) -> None:
    options = LoadOptions(model="/models/a.gguf", n_ctx=4096)
    await desk.engine.load(options)
    await desk.engine.unload_idle()
    assert desk.engine.state.report is None
    assert desk.engine.state.idle_unloaded == options
    turn = await desk.chat.send("Still there?")
    assert turn.answer.text
    assert not turn.answer.error
    assert desk.engine.state.idle_unloaded is None
    assert desk.engine.state.report is not None
    assert desk.engine.state.report.options.n_ctx == 4096


async def test_failed_reload_is_shown_in_the_answer(desk: Desk) -> None:
    await desk.engine.load(LoadOptions(model="/models/a.gguf"))
    await desk.engine.unload_idle()
    desk.client.load_result = LoadFailure("out_of_vram", "Not enough memory", "A game has it now. Close the game.")
    turn = await desk.chat.send("Still there?")
    assert turn.answer.error == "A game has it now. Close the game."


async def test_idle_unloaded_model_stays_remembered_when_the_worker_is_stopped(desk: Desk) -> None:
    options = LoadOptions(model="/models/a.gguf")
    await desk.engine.load(options)
    await desk.engine.unload_idle()
    await desk.engine.probe()
    assert desk.engine.state.phase is Phase.IDLE
    await desk.engine.unload_idle()
    assert desk.engine.state.phase is Phase.OFF
    assert desk.engine.state.idle_unloaded == options


async def test_ejected_model_is_not_reloaded(desk: Desk) -> None:
    await desk.engine.load(LoadOptions(model="/models/a.gguf"))
    await desk.engine.unload_idle()
    await desk.engine.eject()
    turn = await desk.chat.send("Still there?")
    assert turn.answer.error
    assert desk.engine.state.report is None


async def test_stopping_the_question_does_not_cancel_the_reload(desk: Desk) -> None:
    await desk.engine.load(LoadOptions(model="/models/a.gguf"))
    await desk.engine.unload_idle()
    question = asyncio.create_task(desk.chat.send("Still there?"))
    await desk.until(lambda: desk.engine.state.phase is Phase.LOADING)
    await desk.chat.stop()
    turn = await question
    assert turn.answer.stop_reason == "cancelled"
    await desk.engine.wait_until_settled()
    assert desk.engine.state.report is not None
