"""Another engine for this window: chosen, fetched or deleted; the model that was loaded comes back on it."""

import asyncio
from collections.abc import Awaitable, Callable

from qwendesk.core.errors import QwenDeskError
from qwendesk.core.options import LoadOptions
from qwendesk.core.subscribers import Subscribers
from qwendesk.engine.state import EngineState, Phase
from qwendesk.services.engine.engines import EnginesService
from qwendesk.services.engine.packs import PacksService
from qwendesk.services.engine.service import EngineService
from qwendesk.services.settings import SettingsService


class EngineSwitch:
    """Joins the choice, the packs and the loaded model. Methods are called on the event loop's thread."""

    def __init__(
        self,
        engines: EnginesService,
        packs: PacksService,
        engine: EngineService,
        settings: SettingsService,
        stop_answer: Callable[[], Awaitable[None]],
    ) -> None:
        """`stop_answer` ends the answer that is being written; what it said so far stays."""
        self._stop_answer = stop_answer
        self._engines, self._packs, self._engine, self._settings = engines, packs, engine, settings
        self._one_change = asyncio.Lock()
        self._waits = 0
        self._subscribers = Subscribers[bool]()
        self._switched = Subscribers[str]()

    @property
    def wanted(self) -> str:
        """Name of the engine that the person chose; "" for the best one that runs."""
        return self._settings.options.engine

    @property
    def is_answering(self) -> bool:
        """Whether a change now would stop an answer."""
        return self._engine.state.phase is Phase.ANSWERING

    @property
    def waits(self) -> bool:
        """Whether a change waits for the end of an answer."""
        return self._waits > 0

    def subscribe(self, callback: Callable[[bool], None]) -> Callable[[], None]:
        """Call `callback` each time `waits` changed. Returns what ends it."""
        return self._subscribers.add(callback)

    def subscribe_switched(self, callback: Callable[[str], None]) -> Callable[[], None]:
        """Call `callback` with its name each time another engine is used from now on. Returns what ends it."""
        return self._switched.add(callback)

    async def use(self, name: str, *, at_once: bool) -> None:
        """Use the engine `name`, or with "" the best; another takes its place if it does not run.

        `at_once` stops a running answer; else the change comes after it. Raises QwenDeskError when the wish could not
        be kept for the next start; it holds until then.
        """
        async with self._one_change:
            not_kept: QwenDeskError | None = None
            try:
                self._settings.change({"engine": name})
            except QwenDeskError as error:
                not_kept = error
            await self._choose(at_once=at_once)
        if not_kept is not None:
            raise not_kept

    async def try_again(self, name: str) -> None:
        """Try one that could not be used; if it runs and is what is wanted, it is used after a running answer."""
        trial = await self._engines.try_again(name)
        if trial is not None and trial.usable and self.wanted in ("", name):
            async with self._one_change:
                await self._choose(at_once=False)

    async def fetch(self, name: str) -> None:
        """Fetch a pack, try its engine, and use it after a running answer if it is the best or the wanted one."""
        state = await self._packs.fetch(name)
        if state.is_here:
            self._engines.forget_crashes(name)
            async with self._one_change:
                await self._choose(at_once=False)
                if self._engines.engines.chosen != name:
                    await self._engines.try_again(name)

    async def fetch_online(self, name: str) -> None:
        """Allow connections again, and fetch a pack. Raises QwenDeskError when that could not be kept."""
        self._settings.change({"offline": False})
        await self.fetch(name)

    async def delete(self, name: str) -> None:
        """Delete a folder of the person's own. Where it is in use, after a running answer; the model is then loaded
        again on another. Raises QwenDeskError."""
        async with self._one_change:
            is_used = self._engines.engines.chosen == name
            if is_used:
                await self._end_of_answer()
            again = await self._end_worker() if is_used else None
            try:
                await self._engines.delete(name)
                if self.wanted == name:
                    self._settings.change({"engine": ""})
            finally:
                self._packs.look()
                if is_used:
                    await self._engines.choose(self.wanted)
                    await self._begin_again(again)

    async def _choose(self, *, at_once: bool) -> None:
        if at_once and self.is_answering:
            await self._stop_answer()
        await self._end_of_answer()
        before = self._engines.environment(), self._engines.engines.chosen
        await self._engines.choose(self.wanted)
        if (self._engines.environment(), self._engines.engines.chosen) != before:
            await self._end_of_answer()  # to a question that came while engines were tried
            await self._begin_again(await self._end_worker())

    async def _end_worker(self) -> LoadOptions | None:
        """Ends it, so that nothing holds the engine's files. Returns what was loaded, or being loaded.

        A model that rests goes on resting.
        """
        state = self._engine.state
        if state.resting is not None:
            await self._engine.rest()
            return None
        is_loading = state.phase in (Phase.STARTING, Phase.LOADING) and state.wanted is not None
        again = self._engine.asked if state.report is not None or is_loading else None
        await self._engine.eject()
        return again

    async def _begin_again(self, options: LoadOptions | None) -> None:
        self._switched.notify(self._engines.engines.chosen)
        if options is not None:
            await self._engine.load(options)

    async def _end_of_answer(self) -> None:
        if not self.is_answering:
            return
        ended = asyncio.Event()

        def on_state(state: EngineState) -> None:
            if state.phase is not Phase.ANSWERING:
                ended.set()

        self._wait(+1)
        unsubscribe = self._engine.subscribe(on_state)
        try:
            await ended.wait()
        finally:
            unsubscribe()
            self._wait(-1)

    def _wait(self, by: int) -> None:
        self._waits += by
        self._subscribers.notify(self.waits)
