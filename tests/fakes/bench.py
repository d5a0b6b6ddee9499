"""A scripted engine that can be measured: every test has the speed that the test wrote down."""

import asyncio
from collections.abc import Callable

from qwendesk.core.benchmarks import BenchTest, SpeedSamples, SpeedTest, TextScore, TextTest
from qwendesk.core.failures import EngineExit, LoadFailure
from qwendesk.core.options import DecidedOptions
from qwendesk.engine.protocol import Bench, Benched, BenchProgress, LoadReport, RequestFailed
from tests.fakes.engine import FakeEngineClient


class FakeBenchClient(FakeEngineClient):
    """`measured` has the tests that were asked for, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.measured: list[SpeedTest] = []
        self.scored: list[TextTest] = []
        self.tok_s = 100.0
        self.score = TextScore(n_chunks=1, n_tokens=255, perplexity=10.0, error=0.1)
        """What every text gets."""
        self.speed: Callable[[DecidedOptions, SpeedTest], float] | None = None
        """Returns the speed of a test with the options of the last load, in place of `tok_s`."""
        self.loaded: list[DecidedOptions] = []
        self.failure: RequestFailed | None = None
        """What the next test ends with."""
        self.blocks_at = ""
        """The name of a test that does not end."""
        self.is_blocked = asyncio.Event()

    async def load(self, options: DecidedOptions) -> LoadReport | LoadFailure:
        self.loaded.append(options)
        return await super().load(options)

    async def bench(
        self, test: BenchTest, show: Callable[[BenchProgress], None] | None = None
    ) -> Benched | RequestFailed | EngineExit:
        request = self.record(Bench(test=test))
        if isinstance(test, TextTest):
            self.scored.append(test)
            return self.failure or Benched(id=request.id, result=self.score)
        self.measured.append(test)
        if show is not None:
            show(BenchProgress(id=request.id, done=test.n_timed // 2, total=test.n_timed))
        if test.name == self.blocks_at:
            self.is_blocked.set()
            await asyncio.Event().wait()
        if self.failure is not None:
            return self.failure
        drafted = 30 if test.text and self.report.n_draft_max else 0
        tok_s = self.tok_s if self.speed is None else self.speed(self.loaded[-1], test)
        return Benched(
            id=request.id,
            result=SpeedSamples(tok_s=(tok_s,) * test.repeats, drafted=drafted, accepted=drafted // 2),
        )
