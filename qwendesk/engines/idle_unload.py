"""Idle unload: frees the memory when no question came for a while. The next question loads the model again.

A model on a server takes no memory here, so it stays.
"""

import asyncio
from collections.abc import Callable

from qwendesk.core.app_options import AppOptions
from qwendesk.engine.state import EngineState, Phase
from qwendesk.engines.engine_service import EngineService
from qwendesk.settings.service import SettingsService

# Calls a function after a number of seconds. Returns what cancels the call.
CallLater = Callable[[float, Callable[[], None]], Callable[[], None]]


def call_later_on_loop(seconds: float, call: Callable[[], None]) -> Callable[[], None]:
    return asyncio.get_running_loop().call_later(seconds, call).cancel


class IdleUnload:
    """Unloads the model `eject_after_min` minutes after it was loaded or last answered."""

    def __init__(
        self, engine: EngineService, settings: SettingsService, call_later: CallLater = call_later_on_loop
    ) -> None:
        self._engine, self._settings = engine, settings
        self._call_later = call_later
        self._phase = engine.state.phase
        self._minutes = settings.options.eject_after_min
        self._cancel_timer: Callable[[], None] | None = None
        self._unload_task: asyncio.Task[None] | None = None
        self._subscriptions = (engine.observed.subscribe(self._on_engine), settings.subscribe(self._on_options))
        self._restart_timer()

    async def close(self) -> None:
        for unsubscribe in self._subscriptions:
            unsubscribe()
        self._stop_timer()
        if self._unload_task is not None:
            await self._unload_task

    def eject(self) -> None:
        """Unload the model, unless it is busy. Called when the time is up."""
        self._stop_timer()
        if self._engine.state.phase is Phase.READY and self._engine.state.local_report is not None:
            self._unload_task = asyncio.get_running_loop().create_task(self._engine.unload_idle())

    def _on_engine(self, state: EngineState) -> None:
        if state.phase is not self._phase:
            self._phase = state.phase
            self._restart_timer()

    def _on_options(self, options: AppOptions) -> None:
        if options.eject_after_min != self._minutes:
            self._minutes = options.eject_after_min
            self._restart_timer()

    def _restart_timer(self) -> None:
        """Restart the countdown if a model is loaded and idle; else stop it."""
        self._stop_timer()
        if self._minutes and self._phase is Phase.READY:
            self._cancel_timer = self._call_later(self._minutes * 60.0, self.eject)

    def _stop_timer(self) -> None:
        if self._cancel_timer is not None:
            self._cancel_timer()
            self._cancel_timer = None
