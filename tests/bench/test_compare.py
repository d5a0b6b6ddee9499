"""Comparisons, with the real engine and the demo model."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from qwendesk.bench.bench_runs import BenchRuns
from qwendesk.bench.compare import CompareService
from qwendesk.bench.comparison import Column, ColumnResult, ComparisonState, PromptComparison
from qwendesk.core import paths
from qwendesk.core.chats import ChatSettings
from qwendesk.core.options import LoadOptions
from qwendesk.engine.client import WorkerClient
from qwendesk.engine.protocol import LoadReport
from qwendesk.engines.engine_service import EngineService
from qwendesk.engines.load_decision import decide
from tests.pictures import ShapePicture

DEMO = str(paths.demo_model())
QUESTION = "What is a quant?"
OPTIONS = LoadOptions(model=DEMO, mmproj=str(paths.demo_mmproj()), n_ctx=2048, devices=("none",), n_threads=1)
HOT = {"temperature": "3.0", "top_k": "0", "top_p": "1.0", "max_tokens": "40"}


async def options_for(model: Path) -> LoadOptions:
    return msgspec.structs.replace(OPTIONS, model=str(model))


def column(seed: int = 1, *, thinking: bool = False, model: str = DEMO, **overrides: str) -> Column:
    return Column(model=model, settings=ChatSettings(thinking=thinking, overrides=overrides), seed=seed)


class Desk:
    """The chat's engine with the demo model loaded, and the service that compares."""

    def __init__(self) -> None:
        self.client = WorkerClient()
        self.engine = EngineService(self.client, decide=decide, options_for=options_for)
        self.runs = BenchRuns(self.engine, WorkerClient, decide)
        self.compare = CompareService(
            self.engine,
            self.client,
            self.runs,
        )

    async def ask(self, *columns: Column, prompt: str = QUESTION, files: tuple[str, ...] = ()) -> ComparisonState:
        await self.compare.run(PromptComparison(prompt=prompt, files=files, columns=columns))
        return self.compare.state.value

    async def close(self) -> None:
        await self.engine.close()


@pytest_asyncio.fixture
async def desk() -> AsyncIterator[Desk]:
    desk = Desk()
    assert isinstance(await desk.engine.load(OPTIONS), LoadReport)
    yield desk
    await desk.close()


def texts(results: tuple[ColumnResult, ...]) -> list[str]:
    return [result.text for result in results]


async def test_seeds_are_compared_on_the_loaded_model(desk: Desk) -> None:
    pid = desk.client.worker_pid

    state = await desk.ask(column(1, **HOT), column(2, **HOT), column(1, **HOT))

    first, other, same = state.results
    assert [result.phase for result in state.results] == ["done", "done", "done"]
    assert first.text == same.text != other.text
    assert all(result.stats.ttft_s > 0 and result.stats.decode_tok_s > 0 for result in state.results)
    assert all(result.stats.reused_tokens == 0 for result in state.results)
    assert [result.differences is None for result in state.results] == [True, False, False]
    assert [result.differences.are_none for result in state.results if result.differences] == [False, True]
    assert state.uses_loaded_model
    assert desk.client.worker_pid == pid
    assert not state.is_running


async def test_thinking_on_and_off(desk: Desk) -> None:
    with_thinking, without = (await desk.ask(column(thinking=True), column(thinking=False))).results

    assert with_thinking.reasoning
    assert with_thinking.stats.reasoning_tokens > 0
    assert without.reasoning == ""
    assert without.stop_reason == "eos"
    assert "fewer bits" in without.text


async def test_other_load_options_use_an_engine_of_their_own_and_the_chats_model_comes_back(desk: Desk) -> None:
    longer = msgspec.structs.replace(column(), load_changes={"n_ctx": "1024"})
    pid = desk.client.worker_pid

    state = await desk.ask(column(), longer, column())

    assert [result.phase for result in state.results] == ["done", "done", "done"]
    assert len(set(texts(state.results))) == 1
    assert not state.uses_loaded_model
    await desk.engine.wait_until_settled()
    assert desk.engine.state.report is not None
    assert desk.engine.state.requested == OPTIONS
    assert desk.client.worker_pid != pid


async def test_a_picture_goes_to_every_column(desk: Desk, tmp_path: Path) -> None:
    picture = tmp_path / "circle.png"
    ShapePicture("red", "circle").draw().save(picture)

    state = await desk.ask(column(), column(), prompt="What is in this picture?", files=(str(picture),))

    assert ["red circle" in text for text in texts(state.results)] == [True, True]


async def test_a_seed_left_to_chance_is_drawn_and_shown(desk: Desk) -> None:
    state = await desk.ask(column(-1, **HOT), column(-1, **HOT))

    assert state.comparison is not None
    seeds = [each.seed for each in state.comparison.columns]
    again = await desk.ask(*(column(seed, **HOT) for seed in seeds))
    assert min(seeds) >= 0
    assert texts(again.results) == texts(state.results)


@pytest.mark.parametrize(
    ("comparison", "word"),
    [
        (PromptComparison(prompt=" ", columns=(column(), column())), "prompt"),
        (PromptComparison(prompt="Hi", columns=(column(), column(temperature="hot"))), "temperature"),
        (PromptComparison(prompt="Hi", files=("/nowhere/none.png",), columns=(column(), column())), "none.png"),
    ],
)
async def test_what_cannot_be_asked_is_said_in_a_sentence(desk: Desk, comparison: PromptComparison, word: str) -> None:
    await desk.compare.run(comparison)

    state = desk.compare.state.value
    assert word in state.failure
    assert not state.is_running
    assert {result.phase for result in state.results} == {"stopped"}


async def test_no_other_model_answers_for_the_one_that_was_loaded(desk: Desk) -> None:
    loads: list[asyncio.Task[object]] = []

    def load_another(state: ComparisonState) -> None:
        if state.is_running and state.results[0].text and not loads:
            loads.append(asyncio.ensure_future(desk.engine.load(msgspec.structs.replace(OPTIONS, n_ctx=1024))))

    desk.compare.state.subscribe(load_another)

    state = await desk.ask(column(**HOT | {"max_tokens": "400"}), column())

    assert state.results[0].phase in ("failed", "stopped")
    assert state.results[1].phase == "failed"
    assert "isn't loaded any more" in state.results[1].failure
    await loads[0]


async def test_the_chats_model_comes_back_after_a_stop(desk: Desk) -> None:
    def stop_at_first_text(state: ComparisonState) -> None:
        if state.is_running and state.results[0].text:
            desk.compare.stop()

    desk.compare.state.subscribe(stop_at_first_text)
    longer = msgspec.structs.replace(column(**HOT | {"max_tokens": "900"}), load_changes={"n_ctx": "1024"})

    state = await desk.ask(longer, column())

    assert [result.phase for result in state.results] == ["stopped", "stopped"]
    assert state.failure == ""
    await desk.engine.wait_until_settled()
    assert desk.engine.state.report is not None


async def test_the_columns_after_a_crash_are_answered(desk: Desk) -> None:
    """The engine of its own dies with the first column, so it is started again for the second."""
    clients: list[WorkerClient] = []

    def make() -> WorkerClient:
        clients.append(WorkerClient())
        return clients[-1]

    desk.runs = BenchRuns(desk.engine, make, decide)
    desk.compare._runs = desk.runs
    killed = asyncio.Event()

    def kill_at_first_text(state: ComparisonState) -> None:
        if state.results and state.results[0].text and not killed.is_set():
            killed.set()
            worker = clients[0]._worker
            assert worker is not None
            worker.kill("killed by the test")

    desk.compare.state.subscribe(kill_at_first_text)
    changed = {"n_ctx": "1024"}
    columns = [msgspec.structs.replace(column(), load_changes=changed) for _ in range(2)]

    state = await desk.ask(*columns)

    assert [result.phase for result in state.results] == ["failed", "done"]
    await desk.engine.wait_until_settled()
