"""The first start for widgets: its state becomes a signal, intents become coroutines."""

from PySide6.QtCore import QObject, Signal

from qwendesk.hub.queue_state import DownloadItem
from qwendesk.services.models.ranking import Offer
from qwendesk.services.models.starting import Start, StartService
from qwendesk.ui.kit.tasks import Tasks


class StartBridge(QObject):
    """The start service for widgets."""

    changed = Signal()
    """`start` is another one now."""

    def __init__(self, service: StartService, tasks: Tasks, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._service, self._tasks = service, tasks
        self._unsubscribe = service.subscribe(lambda _start: self.changed.emit())

    @property
    def start(self) -> Start:
        return self._service.start

    def look(self) -> None:
        self._tasks.start(self._service.look())

    def look_at_room(self) -> None:
        self._tasks.start(self._service.look_at_room())

    def choose_folder(self, folder: str) -> None:
        self._tasks.start(self._service.choose_folder(folder))

    def download(self, offer: Offer) -> None:
        self._tasks.start(self._service.download(offer))

    def pause(self, item: DownloadItem) -> None:
        self._tasks.start(self._service.pause(item))

    async def close(self) -> None:
        self._unsubscribe()
        await self._service.close()
