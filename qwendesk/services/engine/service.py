"""The engine the user wants: one loaded model, kept alive.

Owns the EngineState. Loading decides what was left to "auto", by the file's header and the memory that is free now.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from qwendesk.core.failures import EngineDeath, LoadFailure
from qwendesk.core.options import LoadOptions
from qwendesk.core.subscribers import Subscribers
from qwendesk.engine.contract import EngineClient
from qwendesk.engine.failures import cancelled_load, classify_load
from qwendesk.engine.protocol import Devices, LoadReport, Welcome
from qwendesk.engine.state import EngineNews, EngineState, LoadAsked, LoadFailed, Rested, WorkerEnded, reduce
from qwendesk.services.engine.beside import mmproj_beside
from qwendesk.services.engine.deciding import decide as decide_by_header
from qwendesk.services.engine.deciding import facts_for
from qwendesk.services.engine.restarts import RestartLimit
from qwendesk.services.engine.safer import Safer, safer

Decide = Callable[[LoadOptions, Devices], LoadOptions | LoadFailure]
"""Replaces every "auto" by a value, or says why it cannot; called on another thread, because it reads files."""


OptionsFor = Callable[[Path], Awaitable[LoadOptions]]
"""How a chosen model file is loaded."""


async def with_neighbour(model: Path) -> LoadOptions:
    """With the picture file that lies beside it."""
    mmproj = await asyncio.to_thread(mmproj_beside, model)
    return LoadOptions(model=str(model), mmproj=str(mmproj or ""))


class EngineService:
    """Loads, ejects and restarts. All methods are called on the event loop's thread."""

    def __init__(self, client: EngineClient, *, decide: Decide = decide_by_header) -> None:
        self._client = client
        self._decide = decide
        self.options_for: OptionsFor = with_neighbour
        """The window puts one here that knows the library, repaired templates and profiles."""
        self._state = EngineState()
        self._subscribers = Subscribers[EngineState]()
        self._restarts = RestartLimit()
        self._wanted: LoadOptions | None = None
        """What a dead engine loads again; None while loading, and when nothing is wanted."""
        self._asked_with: LoadOptions | None = None
        self._decided: LoadOptions | None = None
        self._asked = 0
        """Grows with every load, cancel and eject; a load whose number is not the latest gives up."""
        self._one_load = asyncio.Lock()
        self._loads = 0
        self._settled = asyncio.Event()
        self._settled.set()
        self._own_load: asyncio.Task[LoadReport | LoadFailure] | None = None
        """After a death, or for a question to a model that rested."""
        self._unsubscribe = client.subscribe(self._on_news)

    @property
    def state(self) -> EngineState:
        return self._state

    async def safer(self) -> Safer | None:
        """After a failed load: the next configuration that asks less of this PC; None when there is none to offer."""
        state = self._state
        if state.failure is None or state.wanted is None:
            return None
        if state.failure.kind == "engine_died" and self._decided is None:
            return None  # before the model was even looked at: no option helps
        options = self._decided or state.wanted
        facts = await asyncio.to_thread(facts_for, options)
        model = None if isinstance(facts, LoadFailure) else facts[0]
        n_layers = model.block_count - model.nextn_layers if model is not None else 0
        n_experts = model.expert_count if model is not None else 0
        return safer(options, state.failure, n_layers, n_experts)

    @property
    def was_asked(self) -> bool:
        """Whether somebody asked for a model yet, be it loaded or not."""
        return self._asked > 0

    @property
    def asked(self) -> LoadOptions | None:
        """What the present load was asked with: its "auto" not decided yet, unlike `state.wanted`."""
        return self._asked_with

    def subscribe(self, callback: Callable[[EngineState], None]) -> Callable[[], None]:
        """Call `callback` with each new state. Returns what ends it."""
        return self._subscribers.add(callback)

    async def load(self, options: LoadOptions) -> LoadReport | LoadFailure:
        """Load a model in a fresh worker. A load that still runs is cancelled first."""
        self._asked += 1
        ticket = self._asked
        self._wanted = None
        self._loads += 1
        self._settled.clear()
        try:
            if self._one_load.locked():
                await self._client.cancel_load()
            async with self._one_load:
                return await self._load(ticket, options)
        finally:
            self._loads -= 1
            if self._loads == 0:
                self._settled.set()

    async def load_file(self, model: Path) -> LoadReport | LoadFailure:
        """Load a chosen model file as `options_for` says, everything else decided here."""
        return await self.load(await self.options_for(model))

    async def probe(self) -> Devices | EngineDeath:
        """The compute devices, asked of the engine when no load runs; starts a worker if none does."""
        async with self._one_load:
            return await self._client.probe()

    async def cancel_load(self) -> None:
        """Stop the load that runs, if one does; its `load` returns a failure of kind "cancelled"."""
        if self._loads:
            self._asked += 1
            await self._client.cancel_load()

    async def eject(self) -> None:
        """Unload the model by ending the worker: all its memory is free afterwards."""
        self._apply(Rested(None))
        self._wanted = None
        await self.cancel_load()
        await self._client.unload()

    async def rest(self) -> None:
        """Unload the model as `eject` does, until the next question: `wake` loads it again. One that rests goes on
        resting; no worker is left."""
        if self._state.report is not None:
            self._apply(Rested(self._asked_with))
            self._wanted = None
        if self._state.resting is not None:
            await self._client.unload()

    def wake(self) -> bool:
        """Begin to load a model that rests, if one does, as it was asked for; `settled` tells when that has ended."""
        if self._state.resting is None:
            return False
        self._load_by_itself(self._state.resting)
        return True

    async def settled(self) -> None:
        """Wait until nothing is being loaded or restarted."""
        await self._settled.wait()

    async def close(self) -> None:
        """End everything, for good."""
        self._wanted = None
        self._asked += 1
        if self._own_load is not None:
            self._own_load.cancel()
            await asyncio.gather(self._own_load, return_exceptions=True)
        self._settled.set()
        await self._client.close()
        self._unsubscribe()

    async def _load(self, ticket: int, options: LoadOptions) -> LoadReport | LoadFailure:
        if ticket != self._asked:
            return cancelled_load()
        if self._state.report is not None:
            await self._client.unload()
        self._asked_with = options
        self._apply(LoadAsked(options))
        result = await self._try_load(ticket, options)
        if isinstance(result, LoadFailure):
            if ticket != self._asked:
                result = cancelled_load()
            if self._state.failure is None:
                self._apply(LoadFailed(result))
            # What a failed load left behind in the worker's memory goes with the worker.
            await self._client.unload()
        elif ticket == self._asked:
            self._wanted = options
        return result

    async def _try_load(self, ticket: int, options: LoadOptions) -> LoadReport | LoadFailure:
        self._decided = None
        devices = await self._client.probe()
        if isinstance(devices, EngineDeath):
            return classify_load(devices, options)
        decided = await asyncio.to_thread(self._decide, options, devices)
        if isinstance(decided, LoadFailure):
            return decided
        if ticket != self._asked:
            return cancelled_load()
        self._decided = decided
        return await self._client.load(decided)

    def _on_news(self, news: EngineNews) -> None:
        if isinstance(news, WorkerEnded) and news.death is not None and self._wanted is not None:
            news = self._restart_after(news.death, self._wanted)
        self._apply(news)

    def _restart_after(self, death: EngineDeath, wanted: LoadOptions) -> WorkerEnded:
        """Starts again unless that happened too often. Returns the news as people should hear it."""
        if self._restarts.allow(asyncio.get_running_loop().time()):
            self._load_by_itself(wanted)
            return WorkerEnded(death)
        self._wanted = None
        sentence = (
            f"{death.sentence} It ended {self._restarts.most + 1} times within {self._restarts.window_s:.0f} s, so it "
            "was not started again: load the model once more to try, or choose other settings."
        )
        return WorkerEnded(msgspec.structs.replace(death, sentence=sentence))

    def _load_by_itself(self, options: LoadOptions) -> None:
        """Nobody waits for the load, and whoever asks for `settled` from now on waits for its end."""
        self._settled.clear()
        self._own_load = asyncio.create_task(self.load(options))

    def _apply(self, news: EngineNews) -> None:
        state = reduce(self._state, news)
        if isinstance(news, Welcome) and self._loads and state.wanted is not None:
            # The worker is there but the load goes on: nobody should see an idle engine in between.
            state = reduce(state, LoadAsked(state.wanted))
        if state != self._state:
            self._state = state
            self._subscribers.notify(state)
