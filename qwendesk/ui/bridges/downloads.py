"""The downloads for widgets: their state becomes a signal, intents become coroutines."""

from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import msgspec
from PySide6.QtCore import QObject, Signal

from qwendesk.core.errors import QwenDeskError
from qwendesk.hub.network import HubTrouble, Trouble
from qwendesk.hub.queue_state import DownloadItem
from qwendesk.services.models.downloads import DownloadsService, DownloadsState
from qwendesk.services.models.network import NetworkService
from qwendesk.ui.kit.tasks import Tasks


class Refusal(msgspec.Struct, frozen=True):
    """Why something could not be queued or tried again."""

    name: str
    title: str
    sentence: str
    trouble: Trouble | None = None
    page: str = ""
    """Address of the repository."""


class DownloadsBridge(QObject):
    """The downloads for widgets."""

    changed = Signal()
    """`state` is another one now; a few times a second while something runs."""
    refused = Signal(object)
    """A Refusal."""
    finished = Signal(str)
    """Path of the model's first file, once the library has it."""

    def __init__(
        self, service: DownloadsService, network: NetworkService, tasks: Tasks, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._service, self._network, self._tasks = service, network, tasks
        self._endings = (service.subscribe(self._on_state), service.subscribe_finished(self._on_finished))

    @property
    def state(self) -> DownloadsState:
        return self._service.state

    def download(self, repo: str, path: str, *, with_mmproj: bool = True, models_folder: str = "") -> None:
        """Queue `path` of `repo` with all its parts; into the first models folder unless another is named."""
        folder = Path(models_folder) if models_folder else None
        work = self._service.add(repo, path, with_mmproj=with_mmproj, models_folder=folder)
        self._start(work, repo, path)

    def pause(self, identity: str) -> None:
        self._steer(identity, self._service.pause(identity))

    def resume(self, identity: str) -> None:
        """Also tries again what failed."""
        self._steer(identity, self._service.resume(identity))

    def cancel(self, identity: str) -> None:
        """Unfinished files are removed; finished ones stay."""
        self._steer(identity, self._service.cancel(identity))

    def move(self, identity: str, step: int) -> None:
        """`step` -1: one place earlier; 1: later. Nothing at the end of the list."""
        order = [item.kept.id for item in self.state.items]
        place = order.index(identity) + step if identity in order else -1
        if 0 <= place < len(order):
            self._steer(identity, self._service.move(identity, place))

    def pause_all(self) -> None:
        self._tasks.start(self._service.pause_all())

    def resume_all(self) -> None:
        self._tasks.start(self._service.resume_all())

    def clear_done(self) -> None:
        self._tasks.start(self._service.clear_done())

    def page_of(self, repo: str) -> str:
        """Address of the repository for a browser."""
        return f"{self._network.connection.endpoint}/{repo}"

    def close(self) -> None:
        """No news any more."""
        for end in self._endings:
            end()

    def _steer(self, identity: str, work: Coroutine[Any, Any, Any]) -> None:
        item = self.state.item(identity)
        first = item.kept.files[0].file if item is not None else None
        self._start(work, first.repo if first else "", first.path if first else "")

    def _start(self, work: Coroutine[Any, Any, Any], repo: str, path: str) -> None:
        self._tasks.start(self._told(work, repo, path))

    async def _told(self, work: Coroutine[Any, Any, Any], repo: str, path: str) -> None:
        try:
            await work
        except QwenDeskError as error:
            trouble = error.kind if isinstance(error, HubTrouble) else None
            name = path.rsplit("/", 1)[-1] or repo
            self.refused.emit(Refusal(name, error.title, error.sentence, trouble, self.page_of(repo)))

    def _on_state(self, _state: DownloadsState) -> None:
        self.changed.emit()

    def _on_finished(self, item: DownloadItem) -> None:
        self.finished.emit(item.kept.files[0].target)
