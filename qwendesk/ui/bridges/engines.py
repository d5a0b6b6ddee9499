"""The engines of this PC for widgets: what is known becomes a signal, intents become coroutines."""

from PySide6.QtCore import QObject, QTimer, Signal

from qwendesk.services.engine.engines import Engines, EnginesService
from qwendesk.services.engine.packs import PacksService, PackState
from qwendesk.services.engine.switching import EngineSwitch
from qwendesk.ui.bridges.repaint import REPAINT_EVERY_MS
from qwendesk.ui.kit.tasks import Tasks


class EnginesBridge(QObject):
    """Engines, packs and the choice between them."""

    changed = Signal()
    """Something is another now. Progress alone is announced every 30 ms at most."""
    switched = Signal()
    """Another engine is used from now on."""
    folder_ready = Signal(str)
    """Path of the folder that was asked for; it exists."""

    def __init__(
        self,
        engines: EnginesService,
        packs: PacksService,
        switch: EngineSwitch,
        tasks: Tasks,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._engines, self._packs, self._switch, self._tasks = engines, packs, switch, tasks
        self._before = packs.states
        self._timer = QTimer(self, singleShot=True, interval=REPAINT_EVERY_MS)
        self._timer.timeout.connect(self.changed)
        self._endings = (
            engines.subscribe(lambda _news: self.changed.emit()),
            packs.subscribe(self._on_packs),
            switch.subscribe(lambda _waits: self.changed.emit()),
            switch.subscribe_switched(lambda _name: self.switched.emit()),
        )

    @property
    def engines(self) -> Engines:
        return self._engines.engines

    @property
    def packs(self) -> tuple[PackState, ...]:
        return self._packs.states

    @property
    def wanted(self) -> str:
        """Name of the engine that the person chose; "" for the best one that runs."""
        return self._switch.wanted

    @property
    def is_answering(self) -> bool:
        """Whether a change at once would stop an answer."""
        return self._switch.is_answering

    @property
    def waits(self) -> bool:
        """Whether a change waits for the end of an answer."""
        return self._switch.waits

    def use(self, name: str, *, at_once: bool) -> None:
        self._tasks.start(self._switch.use(name, at_once=at_once))

    def try_again(self, name: str) -> None:
        self._tasks.start(self._switch.try_again(name))

    def delete(self, name: str) -> None:
        self._tasks.start(self._switch.delete(name))

    def get(self, name: str) -> None:
        """Fetch a pack, or go on with it."""
        self._tasks.start(self._switch.fetch(name))

    def get_online(self, name: str) -> None:
        """Allow connections again, and fetch a pack."""
        self._tasks.start(self._switch.fetch_online(name))

    def pause(self, name: str) -> None:
        self._packs.cancel(name)

    def discard(self, name: str) -> None:
        self._tasks.start(self._packs.discard(name))

    def open_folder(self) -> None:
        """Make the person's own folder of engines; `folder_ready` tells when it is there."""
        self._tasks.start(self._open_folder())

    async def _open_folder(self) -> None:
        self.folder_ready.emit(str(await self._engines.make_own_place()))

    async def close(self) -> None:
        """No news any more, and nothing is fetched."""
        for end in self._endings:
            end()
        self._timer.stop()
        await self._packs.close()

    def _on_packs(self, states: tuple[PackState, ...]) -> None:
        def without_progress(of: tuple[PackState, ...]) -> list[tuple[object, ...]]:
            return [(each.is_here, each.is_running, each.phase, each.problem) for each in of]

        is_progress = without_progress(states) == without_progress(self._before)
        self._before = states
        if not is_progress:
            self._timer.stop()
            self.changed.emit()
        elif not self._timer.isActive():
            self._timer.start()
