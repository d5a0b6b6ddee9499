"""Which model a name means, and how it is loaded for a client."""

import asyncio
import os
from pathlib import Path

import pytest

from qwendesk.core.failures import LoadFailure
from qwendesk.core.options import LoadOptions
from qwendesk.engines.engine_service import EngineService
from qwendesk.server.refusals import Refused
from qwendesk.server.served_models import ServedModels, find_model, model_ids
from tests.fakes.engine import FakeEngineClient, decide_by_default

FILES = OWN, OTHER, TWIN, SPLIT = tuple(str(Path("/m", *name.split("/"))) for name in (
    "own/Small-4B-Q4_K_M.gguf", "a/Big-9B-Q8_0.gguf", "b/big-9b-q8_0.gguf", "a/Huge-35B-Q4_K_M-00001-of-00003.gguf"
))  # fmt: skip
IDS = {
    "Small-4B-Q4_K_M": OWN, "a/Big-9B-Q8_0": OTHER, "b/big-9b-q8_0": TWIN, "Huge-35B-Q4_K_M": SPLIT,
    "qwen-max": "https://example.com#qwen-max",
}  # fmt: skip


def test_an_id_has_as_many_folders_as_tell_it_from_others() -> None:
    assert model_ids((*FILES, OWN, "https://example.com#qwen-max")) == IDS
    assert next(iter(model_ids((TWIN, *FILES)))) == "b/big-9b-q8_0"
    assert list(model_ids(("/x/m.gguf", "/y/x/m.gguf", "/m.gguf"))) == [f"{os.sep}/x/m", "y/x/m", f"{os.sep}/m"]


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("small-4b-q4_k_m", OWN), ("Small-4B-Q4_K_M.gguf", OWN), (OWN, OWN), ("Small-4B", OWN), ("small:4b", OWN),
        ("b/Big-9B-Q8_0", TWIN), ("Huge-35B-Q4_K_M-00001-of-00003", SPLIT), ("Huge-35B", SPLIT),
        ("qwen-max", IDS["qwen-max"]),
        ("", None), ("gpt-5", None), ("openai/gpt-5-codex", None), ("o4-mini", None), ("claude-sonnet-4-5", None),
        ("default", None), ("qwendesk", None), ("qwendesk/qwendesk", None),
    ],
)  # fmt: skip
def test_a_name_means_one_model_or_any(name: str, model: str | None) -> None:
    assert find_model(name, IDS) == model


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Big-9B-Q8_0", '"Big-9B-Q8_0" may be any of these models: a/Big-9B-Q8_0, b/big-9b-q8_0. Name one'),
        ("llama-3-8b", 'There is no model "llama-3-8b" on this PC. There are: Small-4B-Q4_K_M, a/Big'),
        ("gpt-oss-20b", "There is no model"),
        ("Small-4", "There is no model"),
    ],
)
def test_a_name_that_means_none_or_several_is_refused_with_what_there_is(name: str, words: str) -> None:
    with pytest.raises(Refused) as refused:
        find_model(name, IDS)
    assert refused.value.status == 404
    assert words in refused.value.sentence


def test_where_several_have_the_name_the_loaded_one_is_meant() -> None:
    assert find_model("big-9b-q8_0", IDS, loaded=TWIN) == TWIN


class Desk:
    """Models that are loaded for clients of the server, and for a window."""

    def __init__(self) -> None:
        self.client = FakeEngineClient()
        self.engine = EngineService(self.client, decide=decide_by_default)
        self.engine.options_for = self._options
        self.obstacle = ""
        self.models = ServedModels(self.engine, self._default, self._others, lambda: self.obstacle)

    async def ask(self, name: str = "") -> str:
        return (await self.models.ready(name)).options.model

    async def ask_in_window(self) -> str:
        """Load what a question of the window has loaded."""
        self.engine.reload_idle()
        await self.engine.wait_until_settled()
        return "" if self.engine.state.report is None else self.engine.state.report.options.model

    async def _options(self, model: Path) -> LoadOptions:
        return LoadOptions(model=str(model))

    async def _default(self) -> LoadOptions:
        return LoadOptions(model=OWN)

    async def _others(self) -> list[Path]:
        return [Path(each) for each in FILES]


async def test_the_windows_model_comes_back_with_its_next_question_however_the_other_ends() -> None:
    desk = Desk()
    assert await desk.ask() == OWN
    assert await desk.ask("a/Big-9B-Q8_0") == OTHER
    assert await desk.ask("gpt-5") == OTHER
    assert await desk.ask("Huge-35B") == SPLIT
    assert await desk.ask_in_window() == OWN
    assert await desk.ask("Huge-35B") == SPLIT
    desk.client.kill()
    await desk.engine.wait_until_settled()
    assert await desk.ask() == SPLIT
    await desk.engine.unload_idle()
    assert await desk.ask() == OWN
    desk.client.load_result = LoadFailure("out_of_ram", "Not enough memory", "It doesn't fit.")
    with pytest.raises(Refused, match="doesn't fit"):
        await desk.ask("Huge-35B")
    desk.client.load_result = None
    assert await desk.ask_in_window() == OWN
    desk.client.load_delay_s = 1000
    request = asyncio.create_task(desk.ask("Huge-35B"))
    while desk.engine.state.load_stage == "":  # noqa: ASYNC110 - the state tells nobody
        await asyncio.sleep(0)
    request.cancel()
    desk.client.load_delay_s = 0
    assert await desk.ask_in_window() == OWN
    await desk.engine.close()


async def test_nothing_is_loaded_where_there_is_an_obstacle_but_the_loaded_model_answers() -> None:
    desk = Desk()
    assert await desk.ask() == OWN
    desk.obstacle = "A game has the graphics card."
    assert await desk.ask("Small-4B") == OWN
    with pytest.raises(Refused, match="A game has") as refused:
        await desk.ask("Huge-35B")
    assert refused.value.status == 503
    assert await desk.ask() == OWN
    await desk.engine.unload_idle()
    with pytest.raises(Refused, match="A game has"):
        await desk.ask()
    await desk.engine.close()


async def test_a_question_of_the_window_lets_the_answer_of_a_client_end_and_takes_its_load_away() -> None:
    desk, answered = Desk(), asyncio.Event()
    desk.engine.until_idle = answered.wait
    await desk.ask()
    await desk.ask("Huge-35B")
    question = asyncio.create_task(desk.ask_in_window())
    client = asyncio.create_task(desk.ask("Huge-35B"))
    for _ in range(20):
        await asyncio.sleep(0)
    assert desk.client.is_loaded()
    assert not question.done()
    answered.set()
    assert await question == OWN
    assert await client == SPLIT
    desk.client.load_delay_s = 1000
    client = asyncio.create_task(desk.ask("a/Big-9B-Q8_0"))
    while desk.engine.state.load_stage == "":  # noqa: ASYNC110 - the state tells nobody
        await asyncio.sleep(0)
    desk.client.load_delay_s = 0
    assert await desk.ask_in_window() == OWN
    with pytest.raises(Refused, match="Another model was loaded"):
        await client
    await desk.engine.close()
