"""One measurement at a time, on a PC whose memory no chat's model takes."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from qwendesk.bench.bench_engine import BenchEngine, BenchFailure
from qwendesk.core.observed import Observed
from qwendesk.core.options import LoadOptions
from qwendesk.core.served_model import is_served
from qwendesk.core.translation import tr
from qwendesk.engine.client import WorkerClient
from qwendesk.engine.contract import BenchClient
from qwendesk.engine.state import EngineState, Phase
from qwendesk.engines.engine_service import EngineService
from qwendesk.engines.load_decision import Decide
from qwendesk.engines.load_decision import decide as decide_by_header

ResultT = TypeVar("ResultT")


class BenchRuns:
    """Runs one measurement at a time. The chat's model is unloaded for it, and loaded again when it has ended.

    Questions come first: a model that is loaded meanwhile ends the measurement.
    """

    def __init__(
        self,
        engine: EngineService | None = None,
        make_client: Callable[[], BenchClient] = WorkerClient,
        decide: Decide = decide_by_header,
        running: Observed[str] | None = None,
    ) -> None:
        """`engine` is the chat's; None on the command line, where there is no chat."""
        self._engine, self._make_client, self._decide = engine, make_client, decide
        self.running = running or Observed("")
        """The name of the measurement that runs; "" while none does."""
        self._work: asyncio.Task[object] | None = None
        self._why_stopped = ""

    async def run(self, name: str, work: Callable[[BenchEngine], Awaitable[ResultT]]) -> ResultT | BenchFailure:
        """Run `work` with an engine of its own. Return its result, or why there is none.

        What was measured before a stop is for `work` itself to keep.
        """

        async def measure() -> ResultT:
            async with BenchEngine(self._make_client, self._decide) as engine:
                return await work(engine)

        return await self.run_alone(name, measure)

    async def run_alone(self, name: str, work: Callable[[], Awaitable[ResultT]]) -> ResultT | BenchFailure:
        """Run `work`, which starts the engines that it needs. Return its result, or why there is none."""
        refused = self._refusal()
        if refused is not None:
            return refused
        self.running.set(name)
        self._why_stopped = ""
        engine = self._engine
        was_loaded = engine is not None and engine.state.report is not None
        task = self._work = asyncio.ensure_future(self._measure(work))
        try:
            result = await task
        except asyncio.CancelledError:
            if not self._why_stopped:
                raise
            return BenchFailure(tr("Stopped"), self._why_stopped)
        else:
            return result
        finally:
            self._work = None
            self.running.set("")
            if engine is not None and was_loaded and (self._why_stopped or not task.cancelled()):
                engine.reload_idle()

    def stop(self) -> None:
        """Stop the measurement that runs, if any. Its `run` returns as soon as its engine has exited."""
        self._stop(tr("You stopped the measurement."))

    async def _measure(self, work: Callable[[], Awaitable[ResultT]]) -> ResultT:
        if self._engine is None:
            return await work()
        await self._engine.unload_idle()
        unsubscribe = self._engine.subscribe(self._on_chat_engine)
        try:
            return await work()
        finally:
            unsubscribe()

    def _refusal(self) -> BenchFailure | None:
        if self.running.value:
            return BenchFailure(tr("Busy"), tr("Another measurement is running. Wait for its end, or stop it."))
        state = self._engine.state if self._engine is not None else EngineState()
        if state.phase is Phase.ANSWERING:
            return BenchFailure(tr("Busy"), tr("An answer is being generated. Wait for its end, or stop it."))
        if state.is_loading:
            return BenchFailure(tr("Busy"), tr("A model is being loaded. Wait until it is ready."))
        return None

    def _on_chat_engine(self, state: EngineState) -> None:
        if state.is_loading or state.report is not None:
            self._stop(tr("The chat's model was loaded again, so the measurement was stopped."))

    def _stop(self, why: str) -> None:
        if self._work is not None and not self._work.done() and not self._why_stopped:
            self._why_stopped = why
            self._work.cancel()


def chosen_model(state: EngineState) -> LoadOptions | None:
    """Return the model that is chosen at the top of the window; None if there is none."""
    return state.idle_unloaded or state.requested


def chosen_file(state: EngineState) -> LoadOptions | None:
    """Return the chosen model if it can be measured; None for one on a server, which loads nothing for tests."""
    chosen = chosen_model(state)
    return chosen if chosen is None or not is_served(chosen.model) else None
