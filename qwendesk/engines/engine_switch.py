"""Chooses, downloads and deletes engines in the window, and loads the model again after a change."""

import asyncio
from collections.abc import Awaitable, Callable

from qwendesk.core.engine_manifest import EngineFolder
from qwendesk.core.observed import Observed, Subscribers
from qwendesk.core.options import LoadOptions
from qwendesk.engine.state import EngineState, Phase
from qwendesk.engines.engine_choice import EngineChoiceService
from qwendesk.engines.engine_service import EngineService
from qwendesk.engines.pack_file import PackFile
from qwendesk.engines.pack_installer import Examine, PackInstaller
from qwendesk.engines.packs import PacksService
from qwendesk.engines.trial import EngineTrial
from qwendesk.settings.service import SettingsService


class EngineSwitch:
    """Coordinates the chosen engine, the packs and the loaded model. Call its methods on the event loop's thread."""

    def __init__(
        self,
        engines: EngineChoiceService,
        packs: PacksService,
        engine: EngineService,
        settings: SettingsService,
        stop_answer: Callable[[], Awaitable[None]],
        installer: PackInstaller,
    ) -> None:
        """`stop_answer` stops the answer in progress and keeps its text."""
        self._stop_answer, self._installer = stop_answer, installer
        self._engines, self._packs, self._engine, self._settings = engines, packs, engine, settings
        self._change_lock = asyncio.Lock()
        self._n_waiting = 0
        self.is_waiting = Observed(False)
        """Whether a change is waiting for the end of an answer."""
        self.adding = Observed("")
        """Name of the engine that is being added from a file; "" if none is."""
        self._switched = Subscribers[str]()

    @property
    def wanted(self) -> str:
        """Name of the engine that the user chose; "" for the best one that runs."""
        return self._settings.options.engine

    @property
    def is_answering(self) -> bool:
        """Whether a change now would stop an answer."""
        return self._engine.state.phase is Phase.ANSWERING

    def subscribe_switched(self, callback: Callable[[str], None]) -> Callable[[], None]:
        """Call `callback` with the engine's name after each change, until the returned function is called."""
        return self._switched.add(callback)

    async def use(self, name: str, *, at_once: bool) -> None:
        """Use the engine `name`, or the best one if it is "" or does not run.

        `at_once` stops an answer in progress; otherwise the change waits for its end.
        """
        async with self._change_lock:
            self._settings.change({"engine": name})
            await self._choose(at_once=at_once)

    async def try_again(self, name: str) -> None:
        """Try an engine that could not be used.

        If it runs and the user chose it or the best one, choose again after an answer in progress.
        """
        before = self._engines.engines.find(name)
        is_set_aside = before is not None and before.is_set_aside
        trial = await (self._engines.prove(name) if is_set_aside else self._engines.try_again(name))
        if trial is not None and trial.usable and self.wanted in ("", name):
            async with self._change_lock:
                await self._choose(at_once=False)

    async def install_pack(self, name: str) -> None:
        """Download a pack and have its engine answer a question.

        Use it after an answer in progress if the user chose it, or if it is the best one and the user chose none.
        """
        if await self.fetch_pack(name) is not None:
            async with self._change_lock:
                await self._choose(at_once=False)

    async def fetch_pack(self, name: str) -> EngineTrial | None:
        """Download a pack and have its engine answer a question, but don't use it. Return None if it can't be had."""
        state = await self._packs.install(name)
        return await self._engines.prove(name) if state.is_installed else None

    async def install_pack_online(self, name: str) -> None:
        """Turn the offline setting off, then download a pack."""
        self._settings.change({"offline": False})
        await self.install_pack(name)

    async def add_pack_file(self, pack: PackFile, examine: Examine | None = None) -> None:
        """Unpack a pack, try its engine, and keep it if it runs. Raises BadPack otherwise.

        `examine` may raise BadPack for an engine that runs.

        Use it after an answer in progress if the user chose it, or if it is the best one and the user chose none. If
        it replaces the engine in use, the model is loaded again.
        """
        name = pack.manifest.name
        async with self._change_lock:
            self.adding.set(name)
            try:
                async with self._installer.unpacked(pack) as engine:
                    if examine is not None:
                        await examine(engine)
                    await self._put_in_place(engine)
            finally:
                self.adding.set("")
                self._packs.refresh()
            await self._choose(at_once=False)
            if self._engines.engines.chosen != name:
                await self._engines.try_again(name)

    async def delete(self, name: str) -> None:
        """Delete an engine in the user's own folder. Raises QwenDeskError if that fails.

        If the engine is in use, wait for the end of an answer, and load the model again with another engine. An engine
        for CUDA is not downloaded again automatically.
        """
        async with self._change_lock:
            is_used = self._engines.engines.chosen == name
            trial = self._engines.engines.find(name)
            if is_used:
                await self._wait_for_answer()
            to_reload = await self._stop_worker() if is_used else None
            try:
                await self._engines.delete(name)
                if self.wanted == name:
                    self._settings.change({"engine": ""})
                if trial is not None and trial.backend == "cuda":
                    self._settings.change({"gpu_engine": "never"})
            finally:
                self._packs.refresh()
                if is_used:
                    await self._engines.choose(self.wanted)
                    await self._announce_and_reload(to_reload)

    async def _put_in_place(self, engine: EngineFolder) -> None:
        """Give an unpacked engine its place. If it replaces the engine in use, load the model again with it."""
        if self._engines.engines.chosen != engine.name:
            await self._installer.put_in_place(engine)
            return
        await self._wait_for_answer()
        to_reload = await self._stop_worker()
        try:
            await self._installer.put_in_place(engine)
        finally:
            await self._engines.choose(self.wanted)
            await self._announce_and_reload(to_reload)

    async def _choose(self, *, at_once: bool) -> None:
        if at_once and self.is_answering:
            await self._stop_answer()
        await self._wait_for_answer()
        before = self._engines.environment(), self._engines.engines.chosen
        await self._engines.choose(self.wanted)
        if (self._engines.environment(), self._engines.engines.chosen) != before:
            await self._wait_for_answer()  # the user may have asked a question while engines were tried
            await self._announce_and_reload(await self._stop_worker())

    async def _stop_worker(self) -> LoadOptions | None:
        """Stop the worker, so that it doesn't keep the engine's files open. Return the options to load again.

        Return None if no model was loaded or being loaded. A model after an idle unload stays remembered.
        """
        state = self._engine.state
        if state.idle_unloaded is not None:
            await self._engine.unload_idle()
            return None
        is_loading = state.phase in (Phase.STARTING, Phase.LOADING) and state.requested is not None
        to_reload = state.requested if state.report is not None or is_loading else None
        await self._engine.eject()
        return to_reload

    async def _announce_and_reload(self, options: LoadOptions | None) -> None:
        self._switched.notify(self._engines.engines.chosen)
        if options is not None:
            await self._engine.load(options)

    async def _wait_for_answer(self) -> None:
        if not self.is_answering:
            return
        ended = asyncio.Event()

        def on_state(state: EngineState) -> None:
            if state.phase is not Phase.ANSWERING:
                ended.set()

        self._count_waiting(+1)
        unsubscribe = self._engine.observed.subscribe(on_state)
        try:
            await ended.wait()
        finally:
            unsubscribe()
            self._count_waiting(-1)

    def _count_waiting(self, by: int) -> None:
        self._n_waiting += by
        self.is_waiting.set(self._n_waiting > 0)
