"""Gets the CUDA engine that fits the NVIDIA cards of this PC, if the user allows it (ADR 024)."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from qwendesk.core.engine_manifest import EnginePack
from qwendesk.core.observed import Observed
from qwendesk.engines.engine_choice import EngineChoiceService
from qwendesk.engines.engine_switch import EngineSwitch
from qwendesk.engines.pack_fit import best_cuda
from qwendesk.engines.packs import PacksService, PackState
from qwendesk.engines.trial import EngineTrial
from qwendesk.hardware.snapshot import GpuReading
from qwendesk.settings.service import SettingsService

Wish = Literal["ask", "automatic", "never"]


class GpuEngineState(msgspec.Struct, frozen=True):
    """Notices for the user. At most one is set."""

    offered: EnginePack | None = None
    """May be downloaded if the user wants it."""
    ready: EngineTrial | None = None
    """Was downloaded, answers, and is used from the next start."""
    failed: EngineTrial | None = None
    """Doesn't run here, although card and driver allow it."""
    wrong: PackState | None = None
    """Was downloaded, but isn't the engine. It isn't downloaded again automatically."""


def wish_of(option: Wish, set_up_engine: str) -> Wish:
    """Return what the user wants. `set_up_engine` is the ENGINE with which run.cmd started the app, or "".

    run.cmd has said what is downloaded and how to avoid it. The option of the settings comes first.
    """
    if option != "ask" or not set_up_engine:
        return option
    return "automatic" if set_up_engine.lower() in ("auto", "cuda") else "never"


class GpuEngine:
    """Owns the state. Call its methods on the event loop's thread."""

    def __init__(
        self,
        engines: EngineChoiceService,
        packs: PacksService,
        switch: EngineSwitch,
        settings: SettingsService,
        set_up_engine: str,
    ) -> None:
        self._engines, self._packs, self._switch, self._settings = engines, packs, switch, settings
        self._set_up_engine = set_up_engine
        self._is_metered = False
        self.state = Observed(GpuEngineState())

    def set_metered(self, is_metered: bool) -> None:
        """Set whether the connection is metered. Nothing is downloaded automatically on such a connection."""
        self._is_metered = is_metered

    async def begin(self, gpus: Sequence[GpuReading]) -> None:
        """Get or offer the engine for these cards. Call this once, when the app has chosen an engine."""
        engines, options = self._engines.engines, self._settings.options
        packs = [state.pack for state in self._packs.states if state.pack.backend == "cuda"]
        # A folder whose files are gone is not filled again by itself: a virus scanner would empty it at each start.
        failed = next(
            (
                each
                for each in engines.trials
                if (each.backend == "cuda" and each.crashed)
                or (each.engine is None and any(each.name == pack.name for pack in packs))
            ),
            None,
        )
        if failed is not None:
            self.state.set(GpuEngineState(failed=failed))
            return
        pack = best_cuda(packs, gpus)
        has_cuda = any(state.is_installed and state.pack in packs for state in self._packs.states) or (
            engines.current is not None and engines.current.backend == "cuda"
        )
        if pack is None or has_cuda or options.engine:
            return
        wish = wish_of(options.gpu_engine, self._set_up_engine)
        if wish == "ask" and engines.current is not None and engines.current.has_gpu:
            # While no engine uses the card, the first start and the Engine page offer it.
            self.state.set(GpuEngineState(offered=pack))
        elif wish == "automatic" and not options.offline and not self._is_metered:
            await self._fetch(pack)

    async def accept(self) -> None:
        """Download the offered engine, and from now on each that fits after an update."""
        pack = self.state.value.offered
        if pack is not None:
            self._settings.change({"gpu_engine": "automatic"})
            await self._fetch(pack)

    def refuse(self) -> None:
        """Never offer an engine again."""
        self._settings.change({"gpu_engine": "never"})
        self.state.set(GpuEngineState())

    async def _fetch(self, pack: EnginePack) -> None:
        """Download the engine. If that fails, the Engine page says why, and the next start goes on."""
        self.state.set(GpuEngineState())
        trial = await self._switch.fetch_pack(pack.name)
        wrong = next((state for state in self._packs.states if state.pack == pack and state.is_wrong), None)
        if wrong is not None:
            self._settings.change({"gpu_engine": "never"})
            self.state.set(GpuEngineState(wrong=wrong))
        elif trial is not None:
            self.state.set(GpuEngineState(ready=trial) if trial.usable else GpuEngineState(failed=trial))
