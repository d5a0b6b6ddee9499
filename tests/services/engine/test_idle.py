"""The memory is freed when nobody has asked for so long, and never while somebody waits for an answer."""

from collections.abc import Callable
from pathlib import Path

import pytest

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
