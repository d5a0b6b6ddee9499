"""The window on a made-up gaming PC: a test changes the PC, and looks when it wants to."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from qwendesk.app.parts import build
from qwendesk.engine.state import Phase
from qwendesk.engines.measurements import MeasuredSpeeds
from qwendesk.meters.services import MeterSource
from qwendesk.services import Doubles
from qwendesk.widgets.theme_keeper import ThemeKeeper
from tests.fakes.engine import decide_by_default
from tests.fakes.gaming_pc import OPTIONS, GamingPc, engine_on, estimated, reader_of
from tests.gguf_files import mmproj_facts, moe_35b
from tests.window import app, client, desk, keeper, make_desk, pytest_pyfunc_call, qt_loop
from tests.window_desk import Desk

__all__ = ["app", "client", "desk", "keeper", "make_desk", "pytest_pyfunc_call", "qt_loop"]


class GamingDesk(Desk):
    """`pc` is what the probe sees."""

    def __init__(self, pc: GamingPc, folder: Path, platform: str) -> None:
        self.pc = pc
        self.speeds = MeasuredSpeeds(folder / "speeds.json")
        client = engine_on(pc)

        self.test_client = client
        source = MeterSource(
            reader=reader_of(pc),
            speeds=self.speeds,
            estimate_load=estimated,
            read_headers=lambda _options: (moe_35b(), mmproj_facts()),
            platform=platform,
        )
        parts = build(
            client, decide=decide_by_default, doubles=Doubles(meters=source, make_client=lambda: self.test_client)
        )
        super().__init__(parts, client)
        self.window.show()
        self.window.activateWindow()

    async def load(self) -> None:
        engine, before = self.parts.engine, self.parts.engine.state.report
        self.parts.tasks.start(engine.load(OPTIONS))
        await self.until(lambda: engine.state.report is not before and engine.state.phase is Phase.READY)

    async def look(self, times: int = 1) -> None:
        for _ in range(times):
            await self.parts.services.meters.service.sample()

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

    def make(*, has_card: bool = True, has_second_card: bool = False, platform: str = "linux") -> GamingDesk:
        desk = GamingDesk(GamingPc(has_card=has_card, has_second_card=has_second_card), tmp_path, platform)
        desks.append(desk)
        return desk

    yield make
    for made in desks:
        qt_loop.run(made.parts.close())


@pytest.fixture
def gaming_desk(make_gaming_desk: Callable[..., GamingDesk]) -> GamingDesk:
    return make_gaming_desk()
