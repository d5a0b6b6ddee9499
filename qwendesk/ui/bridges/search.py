"""The search service for widgets: its state becomes a signal, intents become coroutines."""

from PySide6.QtCore import QObject, Signal

from qwendesk.hub.remote import Sort
from qwendesk.services.models.search import SearchService, SearchState
from qwendesk.ui.kit.tasks import Tasks


class SearchBridge(QObject):
    """The search service for widgets."""

    changed = Signal()
    """`state` is another one now."""

    def __init__(self, service: SearchService, tasks: Tasks, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._service, self._tasks = service, tasks
        self._unsubscribe = service.subscribe(lambda _state: self.changed.emit())

    @property
    def state(self) -> SearchState:
        return self._service.state

    def search(self, query: str, sort: Sort) -> None:
        self._tasks.start(self._service.search(query, sort))

    def open(self, repo: str) -> None:
        self._tasks.start(self._service.open(repo))

    def close_repo(self) -> None:
        self._service.close_repo()

    def close(self) -> None:
        self._unsubscribe()
