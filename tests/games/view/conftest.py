"""The window on a made-up gaming PC, with made-up programs. A test looks when it wants to."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from qwendesk.app.parts import build
from qwendesk.core.options import LoadOptions
from qwendesk.engine.state import Phase
from qwendesk.engines.measurements import MeasuredSpeeds
from qwendesk.games.rules import vram_pressure
from qwendesk.games.service import GameSources
from qwendesk.hardware.programs import RunningProgram
from qwendesk.meters.services import MeterSource
from qwendesk.remote.loaded_models import HeldModel
from qwendesk.services import Doubles
from qwendesk.widgets.theme_keeper import ThemeKeeper
from tests.fakes.engine import decide_by_default
from tests.fakes.gaming_pc import GAME, OPTIONS, GamingPc, engine_on, estimated, reader_of
from tests.gguf_files import mmproj_facts, moe_35b
from tests.settings_page import home
from tests.window import app, client, desk, keeper, make_desk, pytest_pyfunc_call, qt_loop
from tests.window_desk import Desk

__all__ = ["app", "client", "desk", "home", "keeper", "make_desk", "pytest_pyfunc_call", "qt_loop"]

CYBERDROME = RunningProgram(GAME, "Cyberdrome.exe")


class GamingWindow(Desk):
    """`pc` is what the probe sees, and `running` the programs."""

    def __init__(self, folder: Path) -> None:
        self.pc = GamingPc()
        self.running: tuple[RunningProgram, ...] = ()
        client = engine_on(self.pc)
        source = MeterSource(
            reader=reader_of(self.pc),
            speeds=MeasuredSpeeds(folder / "speeds.json"),
            estimate_load=estimated,
            read_headers=lambda _options: (moe_35b(), mmproj_facts()),
        )

        def pressure() -> object:
            return vram_pressure(self.parts.services.meters.service.state.value)

        async def held() -> tuple[HeldModel, ...]:
            return self.held

        async def unload(model: HeldModel) -> str:
            self.unloaded.append(model)
            return ""

        self.held: tuple[HeldModel, ...] = ()
        self.unloaded: list[HeldModel] = []
        sources = GameSources(lambda: self.running, lambda: self.running, lambda: None, pressure, held, unload)
        super().__init__(build(client, decide=decide_by_default, doubles=Doubles(meters=source, games=sources)), client)
        self.window.show()
        self.window.activateWindow()

    async def load(self, options: LoadOptions = OPTIONS) -> None:
        engine = self.parts.engine
        self.parts.tasks.start(engine.load(options))
        await self.until(lambda: engine.state.phase is Phase.READY)
        await self.look()

    async def look(self, times: int = 1) -> None:
        """So many looks at the hardware and at the programs, while the user works with another program."""
        services = self.parts.services
        services.game_mode.set_in_front(False)
        for _ in range(times):
            await services.meters.service.sample()
            await services.game_mode.look()

    def play(self, n_bytes: int = 3 * 1024**3) -> None:
        """The game runs and has taken so much video memory."""
        self.running, self.pc.game = (CYBERDROME,), n_bytes

    def end_game(self) -> None:
        self.running, self.pc.game = (), 0


@pytest.fixture
def gaming(home: Path, qt_loop: asyncio.Runner, keeper: ThemeKeeper, tmp_path: Path) -> Iterator[GamingWindow]:
    desk = GamingWindow(tmp_path)
    yield desk
    qt_loop.run(desk.parts.close())
