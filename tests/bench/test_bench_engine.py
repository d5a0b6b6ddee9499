"""The worker that measures, with the real engine and the demo model."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import psutil
import pytest
import pytest_asyncio

from qwendesk.bench.bench_engine import BenchEngine, BenchFailure
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
    await engine.load(OPTIONS)

    measured = [await engine.measure(test, shown.append) for test in tests]

    speeds = [samples.tok_s for samples in measured if isinstance(samples, SpeedSamples)]
    assert [len(each) for each in speeds] == [2, 3, 2, 1]
    assert all(speed > 0 for each in speeds for speed in each)
    assert shown.count(1.0) == len(tests)


async def answer_of(engine: BenchEngine) -> str:
    options = GenerationOptions(temperature=0, presence_penalty=0, enable_thinking=False)
    stream = engine.client.generate(Generate(messages=(text_message("user", "What is VRAM spill?"),), options=options))
    return "".join([item.text async for item in stream if isinstance(item, Delta)])


async def test_drafts_are_measured_with_a_text(engine: BenchEngine) -> None:
    """The answer stands in the text already, so a look-up finds it."""
    await engine.load(OPTIONS)
    answer = await answer_of(engine)
    test = SpeedTest(text=f"{QUESTION}{answer}<|im_end|>\n{QUESTION}", n_gen=32, repeats=2)

    plain = await engine.measure(test)
    await engine.load(msgspec.structs.replace(OPTIONS, speculative="lookup"))
    drafting = await engine.measure(test)

    assert isinstance(plain, SpeedSamples)
    assert isinstance(drafting, SpeedSamples)
    assert plain.acceptance is None
    assert drafting.drafted > 0
    assert drafting.acceptance is not None
    assert 0 < drafting.acceptance <= 1


async def test_a_test_longer_than_the_context_is_refused_and_the_engine_goes_on(engine: BenchEngine) -> None:
    report = await engine.load(OPTIONS)
    assert isinstance(report, LoadReport)

    failure = await engine.measure(SpeedTest(n_gen=1, depth=report.n_ctx))
    samples = await engine.measure(SpeedTest(n_gen=2, repeats=1))

    assert isinstance(failure, BenchFailure)
    assert str(report.n_ctx) in failure.sentence
    assert isinstance(samples, SpeedSamples)


async def test_a_model_that_cannot_be_loaded_is_a_failure(engine: BenchEngine, tmp_path: Path) -> None:
    result = await engine.load(LoadOptions(model=str(tmp_path / "none.gguf")))

    assert isinstance(result, LoadFailure)
    assert result.kind == "missing_file"


async def test_an_engine_that_dies_is_a_failure(engine: BenchEngine) -> None:
    def kill(_fraction: float) -> None:
        assert isinstance(engine.client, WorkerClient)
        # Progress of before may come after its end.
        with contextlib.suppress(psutil.NoSuchProcess):
            if engine.client.worker_pid is not None:
                psutil.Process(engine.client.worker_pid).kill()

    await engine.load(OPTIONS)

    failure = await engine.measure(SpeedTest(n_gen=32, repeats=50), kill)

    assert isinstance(failure, BenchFailure)
    assert failure.sentence


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
