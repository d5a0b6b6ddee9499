"""A worker of its own for measurements: it loads a model as the planner decides, and measures it."""

import asyncio
from collections.abc import Callable
from types import TracebackType

import msgspec

from qwendesk.core.benchmarks import BenchResult, BenchTest, SpeedSamples, SpeedTest, TextScore, TextTest
from qwendesk.core.devices import DeviceInfo
from qwendesk.core.failures import EngineExit, LoadFailure
from qwendesk.core.model_titles import model_title
from qwendesk.core.options import LoadOptions
from qwendesk.core.served_model import is_served
from qwendesk.core.translation import tr
from qwendesk.engine.contract import BenchClient
from qwendesk.engine.load_failures import classify_load
from qwendesk.engine.protocol import Benched, BenchProgress, LoadReport, RequestFailed
from qwendesk.engines.load_decision import Decide
from qwendesk.engines.load_decision import decide as decide_by_header

# Takes how much of a test is done, from 0 to 1.
ShowFraction = Callable[[float], None]


class BenchFailure(msgspec.Struct, frozen=True):
    """Why a test could not be measured, in words for users."""

    title: str
    sentence: str


class BenchEngine:
    """Loads models one after the other in its own worker, so that the chat's engine stays as it is.

    The memory that another engine uses counts as taken. Cancelling a task that waits for a method stops what it does.
    """

    def __init__(self, make_client: Callable[[], BenchClient], decide: Decide = decide_by_header) -> None:
        """`decide` is the planner: what it refuses is not loaded, so nothing spills."""
        self._client = make_client()
        self._decide = decide
        self.report: LoadReport | None = None
        """Of the last model that was loaded; None before the first."""
        self.devices: tuple[DeviceInfo, ...] = ()
        """The engine's devices, with the memory that was free before the last load."""
        self.version = ""
        """Of llama-cpp-python; "" before the first load."""

    async def __aenter__(self) -> "BenchEngine":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def client(self) -> BenchClient:
        return self._client

    async def load(self, options: LoadOptions, decide: Decide | None = None) -> LoadReport | LoadFailure:
        """Load a model in a fresh worker, with every "auto" decided for the memory that is free without it.

        `decide` replaces the planner for this load.
        """
        if is_served(options.model):
            return LoadFailure(
                "other",
                tr("Not on this PC"),
                tr(
                    "{0} runs on a server, which can't load it for this. Compare it only by sampling, or choose a "
                    "model on this PC.",
                    model_title(options.model),
                ),
            )
        await self._client.unload()
        welcome = await self._client.start()
        if isinstance(welcome, EngineExit):
            return classify_load(welcome, options)
        devices = await self._client.probe()
        if isinstance(devices, EngineExit):
            return classify_load(devices, options)
        self.version, self.devices = welcome.package_version, devices.devices
        decided = await asyncio.to_thread(decide or self._decide, options, devices)
        result = decided if isinstance(decided, LoadFailure) else await self._client.load(decided)
        if not isinstance(result, LoadFailure):
            self.report = result
        return result

    async def measure(self, test: SpeedTest, show: ShowFraction | None = None) -> SpeedSamples | BenchFailure:
        """Measure the loaded model with one test."""
        result = await self._bench(test, show)
        assert isinstance(result, SpeedSamples | BenchFailure), result
        return result

    async def score(self, test: TextTest, show: ShowFraction | None = None) -> TextScore | BenchFailure:
        """Find how well the loaded model predicts a text."""
        result = await self._bench(test, show)
        assert isinstance(result, TextScore | BenchFailure), result
        return result

    async def _bench(self, test: BenchTest, show: ShowFraction | None) -> BenchResult | BenchFailure:
        def show_progress(progress: BenchProgress) -> None:
            if show is not None and progress.total:
                show(progress.done / progress.total)

        answer = await self._client.bench(test, show_progress)
        if isinstance(answer, Benched):
            return answer.result
        if isinstance(answer, RequestFailed):
            return BenchFailure(answer.title, answer.sentence)
        return BenchFailure(tr("The engine stopped"), answer.sentence)

    async def close(self) -> None:
        """Stop the worker. The engine cannot be used afterwards."""
        await self._client.close()
