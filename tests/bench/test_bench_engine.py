"""The worker that measures, with the real engine and the demo model."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import psutil
import pytest
import pytest_asyncio

from qwendesk.bench.bench_engine import BenchEngine, BenchFailure, SpeedRun
from qwendesk.core import paths
from qwendesk.core.benchmarks import SpeedSamples, SpeedTest
from qwendesk.core.failures import LoadFailure
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.messages import text_message
from qwendesk.core.options import LoadOptions
from qwendesk.engine.client import WorkerClient
from qwendesk.engine.protocol import Delta, Generate, LoadReport
from qwendesk.engines.load_decision import decide

OPTIONS = LoadOptions(model=str(paths.demo_model()), n_ctx=2048, n_threads=1, devices=("none",))
QUESTION = "<|im_start|>user\nWhat is VRAM spill?<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"


@pytest_asyncio.fixture
async def engine() -> AsyncIterator[BenchEngine]:
    async with BenchEngine(WorkerClient, decide) as made:
        yield made


async def test_every_test_has_a_speed_for_each_repetition(engine: BenchEngine) -> None:
    tests = (
        SpeedTest(n_prompt=64, repeats=2),
        SpeedTest(n_gen=8, repeats=3),
        SpeedTest(n_prompt=64, depth=512, repeats=2),
        SpeedTest(n_prompt=32, n_gen=4, depth=1024, repeats=1),
    )
    shown: list[float] = []

    run = await engine.run(OPTIONS, tests, shown.append)

    assert isinstance(run, SpeedRun)
    assert run.failure is None
    assert [result.test.name for result in run.results] == ["pp64", "tg8", "pp64 @ d512", "pp32+tg4 @ d1024"]
    assert [len(result.samples.tok_s) for result in run.results] == [2, 3, 2, 1]
    assert all(speed > 0 for result in run.results for speed in result.samples.tok_s)
    assert shown == sorted(shown)
    assert shown[-1] == 1.0


async def answer_of(engine: BenchEngine) -> str:
    options = GenerationOptions(temperature=0, presence_penalty=0, enable_thinking=False)
    stream = engine.client.generate(Generate(messages=(text_message("user", "What is VRAM spill?"),), options=options))
    return "".join([item.text async for item in stream if isinstance(item, Delta)])


async def test_drafts_are_measured_with_a_text(engine: BenchEngine) -> None:
    """The answer stands in the text already, so a look-up finds it."""
    await engine.load(OPTIONS)
    answer = await answer_of(engine)
    test = SpeedTest(text=f"{QUESTION}{answer}<|im_end|>\n{QUESTION}", n_gen=32, repeats=2)

    plain = await engine.run(OPTIONS, (test,))
    drafting = await engine.run(msgspec.structs.replace(OPTIONS, speculative="lookup"), (test,))

    assert isinstance(plain, SpeedRun)
    assert isinstance(drafting, SpeedRun)
    assert plain.results[0].samples.acceptance is None
    samples = drafting.results[0].samples
    assert samples.drafted > 0
    assert samples.acceptance is not None
    assert 0 < samples.acceptance <= 1


async def test_a_test_longer_than_the_context_is_refused_and_the_engine_goes_on(engine: BenchEngine) -> None:
    report = await engine.load(OPTIONS)
    assert isinstance(report, LoadReport)

    failure = await engine.measure(SpeedTest(n_gen=1, depth=report.n_ctx))
    samples = await engine.measure(SpeedTest(n_gen=2, repeats=1))

    assert isinstance(failure, BenchFailure)
    assert str(report.n_ctx) in failure.sentence
    assert isinstance(samples, SpeedSamples)


async def test_a_model_that_cannot_be_loaded_is_a_failure(engine: BenchEngine, tmp_path: Path) -> None:
    run = await engine.run(LoadOptions(model=str(tmp_path / "none.gguf")), (SpeedTest(n_gen=1),))

    assert isinstance(run, LoadFailure)
    assert run.kind == "missing_file"


async def test_an_engine_that_dies_ends_the_run_with_what_was_measured(engine: BenchEngine) -> None:
    killed: list[float] = []

    def kill(fraction: float) -> None:
        if fraction > 0.5 and not killed:
            killed.append(fraction)
            assert isinstance(engine.client, WorkerClient)
            psutil.Process(engine.client.worker_pid).kill()

    run = await engine.run(OPTIONS, (SpeedTest(n_gen=4, repeats=1), SpeedTest(n_gen=32, repeats=50)), kill)

    assert isinstance(run, SpeedRun)
    assert [result.test.name for result in run.results] == ["tg4"]
    assert run.failure is not None
    assert run.failure.sentence


async def test_a_cancelled_measurement_stops_and_the_next_one_is_right(engine: BenchEngine) -> None:
    await engine.load(OPTIONS)
    started = asyncio.Event()
    task = asyncio.create_task(
        engine.measure(SpeedTest(n_prompt=512, depth=512, repeats=1000), lambda _: started.set())
    )
    await started.wait()

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    samples = await engine.measure(SpeedTest(n_prompt=64, n_gen=4, depth=600, repeats=2))

    assert isinstance(samples, SpeedSamples)
    assert len(samples.tok_s) == 2
