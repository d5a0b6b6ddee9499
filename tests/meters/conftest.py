import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest_asyncio

from qwendesk.chat.service import ChatService
from qwendesk.core.app_options import AppOptions
from qwendesk.core.observed import Observed
from qwendesk.engine.answer_meter import AnswerMeter
from qwendesk.engine.contract import EngineClient
from qwendesk.engines.engine_service import EngineService
from qwendesk.engines.measurements import MeasuredSpeeds, Measurements
from qwendesk.meters.remedy_service import RemedyService
from qwendesk.meters.service import MeterService
from qwendesk.remote.routed_client import RoutedClient
from tests.fakes.engine import decide_by_default
from tests.fakes.gaming_pc import OPTIONS, GamingPc, engine_on, estimated, reader_of


def never_connected() -> EngineClient:
    raise AssertionError("no model on a server is used here")


class MeterDesk:
    """The meters on a made-up gaming PC, one look at a time. `now_s` is the clock."""

    def __init__(self, folder: Path, *, has_card: bool = True) -> None:
        self.pc = GamingPc(has_card=has_card)
        self.now_s = 0.0
        self.client = engine_on(self.pc)
        self.answers = AnswerMeter(lambda: self.now_s)
        client = RoutedClient(self.client, never_connected, self.answers)
        self.engine = EngineService(client, decide=decide_by_default)
        self.chat = ChatService(client, self.engine)
        self.remedies = RemedyService(self.engine, self.answers, estimated)
        self.speeds = MeasuredSpeeds(folder / "speeds.json")
        self.meters = MeterService(
            self.engine,
            self.answers,
            self.remedies,
            reader=reader_of(self.pc),
            app=Observed(AppOptions(reserve_gb=1.0)),
            measured=Measurements(speeds=self.speeds),
            clock=lambda: self.now_s,
        )

    async def load(self) -> None:
        await self.engine.load(OPTIONS)

    async def look(self, times: int = 1) -> str:
        """So many looks, a second apart; the states as words."""
        states = []
        for _ in range(times):
            self.now_s += 1
            meters = await self.meters.sample()
            states.append("-" if meters.state is None else str(meters.state.value))
        return " ".join(states)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Lets the loop run until `condition()` holds."""
        while not condition():  # noqa: ASYNC110 - what it looks at has no event
            await asyncio.sleep(0)

    async def close(self) -> None:
        await self.meters.close()
        await self.engine.close()


@pytest_asyncio.fixture
async def desk(tmp_path: Path) -> AsyncIterator[MeterDesk]:
    desk = MeterDesk(tmp_path)
    yield desk
    await desk.close()


@pytest_asyncio.fixture
async def cpu_desk(tmp_path: Path) -> AsyncIterator[MeterDesk]:
    desk = MeterDesk(tmp_path, has_card=False)
    yield desk
    await desk.close()
