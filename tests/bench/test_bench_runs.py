"""One measurement at a time: the chat's model makes room and comes back."""

import asyncio

import pytest

from qwendesk.bench.bench_engine import BenchEngine, BenchFailure
from qwendesk.bench.bench_runs import BenchRuns
from qwendesk.core.options import LoadOptions
from qwendesk.engine.protocol import Generate
from qwendesk.engine.state import Phase
from qwendesk.engines.engine_service import EngineService
from tests.fakes.bench import FakeBenchClient
from tests.fakes.engine import FakeEngineClient, ScriptedAnswer, decide_by_default

MODEL = LoadOptions(model="/models/one.gguf")


class Bench:
    """A chat's engine and the runs beside it."""

    def __init__(self) -> None:
        self.chat_client, self.bench_client = FakeEngineClient(), FakeBenchClient()
        self.engine = EngineService(self.chat_client, decide=decide_by_default, check=decide_by_default)
        self.runs = BenchRuns(self.engine, lambda: self.bench_client, decide_by_default)

    async def close(self) -> None:
        await self.engine.close()


async def test_the_chat_s_model_is_unloaded_meanwhile_and_loaded_again() -> None:
    bench = Bench()
    await bench.engine.load(MODEL)
    seen: list[tuple[Phase, str]] = []

    async def work(engine: BenchEngine) -> str:
        await engine.load(MODEL)
        seen.append((bench.engine.state.phase, bench.runs.running.value))
        return "done"

    result = await bench.runs.run("speed", work)
    await bench.engine.wait_until_settled()

    assert result == "done"
    assert seen == [(Phase.OFF, "speed")]
    assert bench.bench_client.closed
    assert bench.engine.state.phase is Phase.READY
    assert bench.runs.running.value == ""
    await bench.close()


async def test_a_second_measurement_is_refused_while_one_runs() -> None:
    bench = Bench()
    began = asyncio.Event()

    async def work(_engine: BenchEngine) -> None:
        began.set()
        await asyncio.Event().wait()

    first = asyncio.create_task(bench.runs.run("speed", work))
    await began.wait()
    second = await bench.runs.run("tune", work)
    bench.runs.stop()
    stopped = await first

    assert isinstance(second, BenchFailure)
    assert "Another measurement" in second.sentence
    assert isinstance(stopped, BenchFailure)
    assert "You stopped" in stopped.sentence
    assert bench.bench_client.closed
    await bench.close()


async def test_a_question_that_loads_the_model_again_ends_the_measurement() -> None:
    bench = Bench()
    await bench.engine.load(MODEL)
    began = asyncio.Event()

    async def work(_engine: BenchEngine) -> None:
        began.set()
        await asyncio.Event().wait()

    run = asyncio.create_task(bench.runs.run("speed", work))
    await began.wait()
    bench.engine.reload_idle()
    result = await run
    await bench.engine.wait_until_settled()

    assert isinstance(result, BenchFailure)
    assert "loaded again" in result.sentence
    assert bench.engine.state.phase is Phase.READY
    await bench.close()


async def test_nothing_is_measured_while_an_answer_is_generated() -> None:
    bench = Bench()
    await bench.engine.load(MODEL)
    bench.chat_client.answers = [ScriptedAnswer(text="long " * 50)]
    stream = bench.chat_client.generate(Generate(messages=()))
    await anext(aiter(stream))
    assert bench.engine.state.phase is Phase.ANSWERING

    async def work(_engine: BenchEngine) -> None:
        raise AssertionError("an answer is being generated")

    result = await bench.runs.run("speed", work)

    assert isinstance(result, BenchFailure)
    assert bench.engine.state.report is not None
    await bench.close()


async def test_an_error_of_a_measurement_is_raised_and_the_model_comes_back() -> None:
    bench = Bench()
    await bench.engine.load(MODEL)

    async def work(_engine: BenchEngine) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await bench.runs.run("speed", work)
    await bench.engine.wait_until_settled()

    assert bench.engine.state.phase is Phase.READY
    assert bench.runs.running.value == ""
    await bench.close()
