"""A scripted engine that can be measured: every test has the speed that the test wrote down."""

import asyncio
from collections.abc import Callable

from qwendesk.core.benchmarks import SpeedSamples, SpeedTest
from qwendesk.core.failures import EngineExit
from qwendesk.engine.protocol import Bench, Benched, BenchProgress, RequestFailed
from tests.fakes.engine import FakeEngineClient


class FakeBenchClient(FakeEngineClient):
    """`measured` has the tests that were asked for, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.measured: list[SpeedTest] = []
        self.tok_s = 100.0
        self.failure: RequestFailed | None = None
        """What the next test ends with."""
        self.blocks_at = ""
        """The name of a test that does not end."""
        self.is_blocked = asyncio.Event()

    async def bench(
        self, test: SpeedTest, show: Callable[[BenchProgress], None] | None = None
    ) -> Benched | RequestFailed | EngineExit:
        request = Bench(id=self._take_id(), test=test)
        self.requests.append(request)
        self.measured.append(test)
        if show is not None:
            show(BenchProgress(id=request.id, done=test.n_timed // 2, total=test.n_timed))
        if test.name == self.blocks_at:
            self.is_blocked.set()
            await asyncio.Event().wait()
        if self.failure is not None:
            return self.failure
        drafted = 30 if test.text and self.report.n_draft_max else 0
        return Benched(
            id=request.id,
            result=SpeedSamples(tok_s=(self.tok_s,) * test.repeats, drafted=drafted, accepted=drafted // 2),
        )
