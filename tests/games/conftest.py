"""Game mode on a scripted engine and made-up programs, one look at a time."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import msgspec
import pytest_asyncio

from qwendesk.chat.service import ChatService
from qwendesk.core.app_options import ProgramRule
from qwendesk.core.options import LoadOptions
from qwendesk.core.units import GIB
from qwendesk.engine.answer_meter import AnswerMeter
from qwendesk.engine.protocol import LoadReport
from qwendesk.engines.engine_service import EngineService
from qwendesk.games.rules import ProgramMemory, VramPressure
from qwendesk.games.service import GameMode, GameSources
from qwendesk.hardware.programs import RunningProgram
from qwendesk.remote.loaded_models import HeldModel
from qwendesk.settings.service import SettingsService
from tests.fakes.engine import FakeEngineClient, decide_by_default
from tests.fakes.gaming_pc import REPORT

GAME = RunningProgram(900, "Cyberdrome.exe")
OPTIONS = LoadOptions(model="/models/Qwen3.5-35B-A3B.gguf", n_ctx=4096)
ON_CPU = msgspec.structs.replace(OPTIONS, n_cpu_moe=40)


class GameDesk:
    """`running`, `full_screen` and `pressure` are what the next look sees."""

    def __init__(self, folder: Path) -> None:
        self.client = FakeEngineClient(report=REPORT)
        self.engine = EngineService(self.client, decide=decide_by_default)
        self.chat = ChatService(self.client, self.engine)
        self.settings = SettingsService(folder / "settings.json")
        self.running: tuple[RunningProgram, ...] = ()
        self.full_screen: RunningProgram | None = None
        self.pressure = VramPressure()
        self.looked: list[str] = []
        self.moved: LoadOptions | None = ON_CPU
        """How the model can be loaded with its experts on the CPU."""
        self.held: tuple[HeldModel, ...] = ()
        """What other programs hold."""
        self.refusals: dict[str, str] = {}
        """Why they don't unload a model, by its name."""
        self.game = GameMode(
            self.engine,
            self.settings,
            GameSources(
                self._running,
                lambda: self.running,
                self._full_screen,
                lambda: self.pressure,
                self._held,
                self._unload,
            ),
            chat=self.chat,
            answers=AnswerMeter(),
            move_experts=self._move_experts,
        )

    @property
    def loaded(self) -> LoadOptions | None:
        """The options that the loaded model was requested with."""
        return self.engine.state.requested if self.engine.state.report is not None else None

    @property
    def shown(self) -> str:
        state = self.game.state.value
        return f"{state.status} {state.program}".strip()

    def set_options(self, *rules: ProgramRule, **changes: object) -> None:
        self.settings.change({**changes, "game_programs": rules})

    def press(self, n_bytes: int = 3 * GIB) -> None:
        """The game takes so much video memory that the model doesn't fit any more."""
        self.running = (GAME,)
        taken = (ProgramMemory(GAME.name, GAME.pid, n_bytes),)
        self.pressure = VramPressure(is_short=True, programs=taken, free_bytes=GIB // 4)

    def end_game(self) -> None:
        self.running, self.full_screen, self.pressure = (), None, VramPressure(free_bytes=23 * GIB)

    async def look(self, times: int = 1) -> str:
        """So many looks; what the window shows after the last one."""
        for _ in range(times):
            await self.game.look()
        return self.shown

    async def until(self, condition: Callable[[], bool]) -> None:
        """Lets the loop run until `condition()` holds."""
        while not condition():  # noqa: ASYNC110 - what it looks at has no event
            await asyncio.sleep(0)

    def _running(self) -> tuple[RunningProgram, ...]:
        self.looked.append("running")
        return self.running

    def _full_screen(self) -> RunningProgram | None:
        self.looked.append("full screen")
        return self.full_screen

    async def _held(self) -> tuple[HeldModel, ...]:
        assert not self.game.state.value.others, "those of the game before"
        self.looked.append("held elsewhere")
        return self.held

    async def _unload(self, model: HeldModel) -> str:
        self.looked.append(f"unload {model.name}")
        return self.refusals.get(model.name, "")

    async def _move_experts(self, _report: LoadReport) -> LoadOptions | None:
        return self.moved


@pytest_asyncio.fixture
async def desk(tmp_path: Path) -> AsyncIterator[GameDesk]:
    desk = GameDesk(tmp_path)
    await desk.engine.load(OPTIONS)
    await desk.look()
    yield desk
    await desk.game.close()
    await desk.chat.stop()
    await desk.engine.close()
    await desk.settings.close()


def rule(action: str, name: str = GAME.name) -> ProgramRule:
    return msgspec.convert({"name": name, "action": action}, ProgramRule)
