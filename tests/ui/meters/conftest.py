"""The window on a made-up gaming PC: a test changes the PC, and looks when it wants to."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from qwendesk.app.meters_part import MeterSource
from qwendesk.app.parts import build
from qwendesk.engine.state import Phase
from qwendesk.services.meters.speeds import SpeedBook
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from tests.fakes.gaming_pc import OPTIONS, GamingPc, engine_on, looking_at, priced
from tests.gguf_files import mmproj_facts, moe_35b
from tests.ui.desk import Desk


class GamingDesk(Desk):
    """`pc` is what the probe sees."""

    def __init__(self, pc: GamingPc, keeper: ThemeKeeper, folder: Path, platform: str) -> None:
        self.pc = pc
        self.speeds = SpeedBook(folder / "speeds.json")
        client = engine_on(pc)

        self.test_client = client
        source = MeterSource(
            looking=looking_at(pc),
            speeds=self.speeds,
            price_of=priced,
            files_of=lambda _options: (moe_35b(), mmproj_facts()),
            platform=platform,
        )
        parts = build(
            client,
            keeper,
            decide=lambda options, _devices: options,
            meter_source=source,
            make_client=lambda: self.test_client,
        )
        super().__init__(parts, client)
        self.window.show()
        self.window.activateWindow()

    async def load(self) -> None:
        engine, before = self.parts.engine, self.parts.engine.state.report
        engine.load(OPTIONS)
        await self.until(lambda: engine.state.report is not before and engine.state.phase is Phase.READY)

    async def look(self, times: int = 1) -> None:
        for _ in range(times):
            await self.parts.meters.bridge.look()

    async def spill(self) -> None:
        """A model, and then a game."""
        await self.load()
        await self.look(2)
        self.pc.game = 3 * 1024**3
        await self.look(4)


@pytest.fixture
def make_gaming_desk(
    qt_loop: asyncio.Runner, keeper: ThemeKeeper, tmp_path: Path
) -> Iterator[Callable[..., GamingDesk]]:
    desks: list[GamingDesk] = []

    def make(*, has_card: bool = True, platform: str = "linux") -> GamingDesk:
        desk = GamingDesk(GamingPc(has_card=has_card), keeper, tmp_path, platform)
        desks.append(desk)
        return desk

    yield make
    for desk in desks:
        qt_loop.run(desk.parts.close())


@pytest.fixture
def gaming_desk(make_gaming_desk: Callable[..., GamingDesk]) -> GamingDesk:
    return make_gaming_desk()
