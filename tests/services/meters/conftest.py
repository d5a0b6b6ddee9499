import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest_asyncio

from qwendesk.core.units import GIB
from qwendesk.services.chat.service import ChatService
from qwendesk.services.engine.service import EngineService
from qwendesk.services.meters.answers import AnswerMeter, counted
from qwendesk.services.meters.meters import MeterService
from qwendesk.services.meters.relief import ReliefService
from qwendesk.services.meters.speeds import SpeedBook
from tests.fakes.gaming_pc import OPTIONS, GamingPc, engine_on, looking_at, priced


class MeterDesk:
    """The meters on a made-up gaming PC, one look at a time. `now_s` is the clock."""

    def __init__(self, folder: Path, *, has_card: bool = True) -> None:
        self.pc = GamingPc(has_card=has_card)
        self.now_s = 0.0
        self.client = engine_on(self.pc)
        self.answers = AnswerMeter(lambda: self.now_s)
        client = counted(self.client, self.answers)
        self.engine = EngineService(client, decide=lambda options, devices: options)
        self.chat = ChatService(client, self.engine)
        self.relief = ReliefService(self.engine, self.answers, priced)
        self.speeds = SpeedBook(folder / "speeds.json")
        self.meters = MeterService(
            self.engine,
            self.answers,
            self.relief,
            looking=looking_at(self.pc),
            speeds=self.speeds,
            reserve_bytes=lambda: GIB,
            clock=lambda: self.now_s,
        )

    async def load(self) -> None:
        await self.engine.load(OPTIONS)

    async def look(self, times: int = 1) -> str:
        """So many looks, a second apart; the states as words."""
        states = []
        for _ in range(times):
            self.now_s += 1
            meters = await self.meters.look()
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
