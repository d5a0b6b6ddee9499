"""The meter service for widgets: looks become signals, fixes become coroutines."""

from PySide6.QtCore import QObject, Signal

from qwendesk.services.meters.bars import HistoryPoint, Meters
from qwendesk.services.meters.meters import MeterService
from qwendesk.services.meters.relief import FixId, Relief
from qwendesk.ui.kit.tasks import Tasks


class MeterBridge(QObject):
    """The meter service for widgets."""

    changed = Signal()
    """`meters` or `relief` is another one now."""

    def __init__(self, service: MeterService, tasks: Tasks, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._service, self._tasks = service, tasks
        self._unsubscribe = (
            service.subscribe(lambda _meters: self.changed.emit()),
            service.relief.subscribe(lambda _relief: self.changed.emit()),
        )

    @property
    def meters(self) -> Meters:
        return self._service.meters

    @property
    def relief(self) -> Relief:
        return self._service.relief.relief

    @property
    def history(self) -> tuple[HistoryPoint, ...]:
        return self._service.history

    def start(self) -> None:
        self._service.start()

    def set_visible(self, visible: bool) -> None:
        self._service.set_visible(visible)

    def choose(self, button: str) -> None:
        """What a button of the banner stands for."""
        relief = self._service.relief
        match button:
            case "load_again":
                self._tasks.start(relief.load_again())
            case "stop_waiting":
                relief.stop_waiting()
            case "experts" | "vision" | "both" | "kv" | "context" | "layers" | "eject":
                fix: FixId = button
                self._tasks.start(relief.apply(fix, self.meters))

    async def look(self) -> Meters:
        return await self._service.look()

    async def close(self) -> None:
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        await self._service.close()
