"""Frees the memory when nobody has asked anything for a while. The next question loads the model again."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from qwendesk.core.app_options import AppOptions
from qwendesk.engine.state import EngineState, Phase
from qwendesk.services.engine.service import EngineService
from qwendesk.services.settings import SettingsService


class Cancellable(Protocol):
    def cancel(self) -> None: ...


Later = Callable[[float, Callable[[], None]], Cancellable]
"""Calls after so many seconds, unless it is cancelled."""


def _on_loop(seconds: float, call: Callable[[], None]) -> Cancellable:
    return asyncio.get_running_loop().call_later(seconds, call)


class IdleEject:
    """Ejects the model `eject_after_min` after it was loaded or answered last."""

    def __init__(self, engine: EngineService, settings: SettingsService, later: Later | None = None) -> None:
        self._engine, self._settings = engine, settings
        self._later = later or _on_loop
        self._phase = engine.state.phase
        self._minutes = settings.options.eject_after_min
        self._waiting: Cancellable | None = None
        self._ejecting: asyncio.Task[None] | None = None
        self._endings = (engine.subscribe(self._on_engine), settings.subscribe(self._on_options))
        self._begin()

    async def close(self) -> None:
        for end in self._endings:
            end()
        self._stop()
        if self._ejecting is not None:
            await self._ejecting

    def eject(self) -> None:
        """The time is over: ejects the model, unless it is busy."""
        self._stop()
        if self._engine.state.phase is Phase.READY:
            self._ejecting = asyncio.get_running_loop().create_task(self._engine.rest())

    def _on_engine(self, state: EngineState) -> None:
        if state.phase is not self._phase:
            self._phase = state.phase
            self._begin()

    def _on_options(self, options: AppOptions) -> None:
        if options.eject_after_min != self._minutes:
            self._minutes = options.eject_after_min
            self._begin()

    def _begin(self) -> None:
        """Wait from now on, if there is something to eject and nothing is being done."""
        self._stop()
        if self._minutes and self._phase is Phase.READY:
            self._waiting = self._later(self._minutes * 60.0, self.eject)

    def _stop(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
