"""The engine service for widgets: its state becomes a signal, intents become coroutines."""

from pathlib import Path

import msgspec
from PySide6.QtCore import QObject, QTimer, Signal

from qwendesk.core import paths
from qwendesk.core.options import LoadOptions
from qwendesk.engine.state import EngineState, Phase
from qwendesk.services.engine.safer import Safer
from qwendesk.services.engine.service import EngineService
from qwendesk.ui.bridges.repaint import REPAINT_EVERY_MS
from qwendesk.ui.kit.tasks import Tasks


class EngineBridge(QObject):
    """The engine service for widgets."""

    changed = Signal()
    """`state` is another one now. Progress alone is announced every 30 ms at most."""

    def __init__(self, service: EngineService, tasks: Tasks, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._service = service
        self._tasks = tasks
        self._announced = service.state
        self._safer: Safer | None = None
        self._timer = QTimer(self, singleShot=True, interval=REPAINT_EVERY_MS)
        self._timer.timeout.connect(self._announce)
        self._unsubscribe = service.subscribe(self._on_state)

    @property
    def state(self) -> EngineState:
        return self._service.state

    @property
    def was_asked(self) -> bool:
        """Whether somebody asked for a model yet, be it loaded or not."""
        return self._service.was_asked

    @property
    def safer(self) -> Safer | None:
        """After a failed load, once it is known: what asks less of this PC. `changed` tells of it."""
        return self._safer

    def load_safer(self) -> None:
        """Try what `safer` says; nothing without it."""
        if self._safer is not None:
            self.load(self._safer.options)

    def load(self, options: LoadOptions) -> None:
        self._tasks.start(self._service.load(options))

    def load_demo(self) -> None:
        self.load(LoadOptions(model=str(paths.demo_model()), mmproj=str(paths.demo_mmproj())))

    def load_model(self, path: str) -> None:
        """Load a file the person chose, with everything else decided by the app."""
        self._tasks.start(self._service.load_file(Path(path)))

    def load_mmproj(self, path: str) -> None:
        """Load the present model again with this file for pictures, "auto" decided anew; nothing without a model."""
        asked = self._service.asked
        if asked is not None:
            self.load(msgspec.structs.replace(asked, mmproj=path))

    def restart(self) -> None:
        """Load again what was asked for last, "auto" decided anew, or the demo."""
        asked = self._service.asked
        if asked is None:
            self.load_demo()
        else:
            self.load(asked)

    def cancel_load(self) -> None:
        self._tasks.start(self._service.cancel_load())

    def eject(self) -> None:
        self._tasks.start(self._service.eject())

    async def close(self) -> None:
        """End the engine for good."""
        self._unsubscribe()
        self._timer.stop()
        await self._service.close()

    def _on_state(self, state: EngineState) -> None:
        before, self._announced = self._announced, state
        if state.failure is not before.failure:
            self._safer = None
            if state.failure is not None and state.failure.kind != "cancelled":
                self._tasks.start(self._find_safer(state))
        only_progress = state.phase is before.phase is Phase.LOADING
        if not only_progress:
            self._announce()
        elif not self._timer.isActive():
            self._timer.start()

    async def _find_safer(self, state: EngineState) -> None:
        step = await self._service.safer()
        if self.state.failure is state.failure and step is not None:
            self._safer = step
            self._announce()

    def _announce(self) -> None:
        self._timer.stop()
        self.changed.emit()
