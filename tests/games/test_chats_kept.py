"""With the real engine and the demo model: after a game, nothing of a chat is processed again."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from qwendesk.chat.open_chat import NoChatSaver
from qwendesk.chat.service import ChatService
from qwendesk.chat.state_files import StateFiles
from qwendesk.core.app_options import AppOptions
from qwendesk.core.observed import Observed
from qwendesk.core.options import LoadOptions
from qwendesk.core.paths import demo_model
from qwendesk.engine.answer_meter import AnswerMeter
from qwendesk.engine.client import WorkerClient
from qwendesk.engine.protocol import LoadReport
from qwendesk.engines.engine_service import EngineService
from qwendesk.games.rules import VramPressure
from qwendesk.games.service import GameMode, GameSources
from qwendesk.hardware.programs import RunningProgram
from qwendesk.settings.service import SettingsService
from tests.games.conftest import GAME, rule

NOTES = "Here are my notes, read them well. " + "Experts are stored in RAM, and attention stays on the card. " * 60
QUESTIONS = (NOTES + "What is VRAM spill?", "What is the KV cache?")
GREEDY = {"temperature": "0", "max_tokens": "60"}


class RealDesk:
    """The demo model in a real worker, and a game that comes and goes."""

    def __init__(self, folder: Path) -> None:
        client = WorkerClient()
        self.engine = EngineService(client)
        self.states = StateFiles(client, Observed(AppOptions(chat_states_gb=1)), folder / "states")
        self.engine.before_unload = self.states.save_before_unload
        self.chat = ChatService(client, self.engine, NoChatSaver(), states=self.states)
        self.settings = SettingsService(folder / "settings.json")
        self.settings.change({"game_programs": (rule("unload"),)})
        self.running: tuple[RunningProgram, ...] = ()
        self.game = GameMode(
            self.engine,
            self.settings,
            GameSources(lambda: self.running, tuple, lambda: None, VramPressure),
            chat=self.chat,
            answers=AnswerMeter(),
            move_experts=self._move_no_experts,
        )

    async def look(self, times: int) -> None:
        for _ in range(times):
            await self.game.look()

    async def _move_no_experts(self, _report: LoadReport) -> LoadOptions | None:
        return None

    async def close(self) -> None:
        await self.game.close()
        await self.chat.stop()
        await self.states.close()
        await self.engine.close()
        await self.settings.close()


@pytest_asyncio.fixture
async def desk(tmp_path: Path) -> AsyncIterator[RealDesk]:
    desk = RealDesk(tmp_path)
    await desk.engine.load(LoadOptions(model=str(demo_model()), n_ctx=8192, n_threads=1))
    await desk.look(1)
    desk.chat.set_sampling(GREEDY)
    yield desk
    await desk.close()


@pytest.mark.timeout(240)
async def test_the_next_answer_after_a_game_processes_only_the_new_question(desk: RealDesk) -> None:
    await desk.chat.send(QUESTIONS[0])
    desk.running = (GAME,)
    await desk.look(2)
    assert desk.engine.state.report is None
    question = asyncio.create_task(desk.chat.send(QUESTIONS[1]))
    desk.running = ()
    await desk.look(3)
    after_game = (await question).answer

    desk.chat.new_chat()
    desk.chat.set_sampling(GREEDY)
    await desk.chat.send(QUESTIONS[0])
    undisturbed = (await desk.chat.send(QUESTIONS[1])).answer
    assert after_game.text == undisturbed.text != ""
    assert after_game.stats is not None
    assert undisturbed.stats is not None
    assert after_game.stats.reused_tokens == undisturbed.stats.reused_tokens > 800
    assert after_game.stats.reread_tokens == undisturbed.stats.reread_tokens < 100
