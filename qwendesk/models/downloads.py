"""The downloads of the window: adding, pausing, resuming, and following them until the library has them."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import msgspec

from qwendesk.core import paths
from qwendesk.core.errors import FailureGuard, QwenDeskError
from qwendesk.core.file_names import is_mmproj_name
from qwendesk.core.files import locked
from qwendesk.core.observed import Observed, Subscribers
from qwendesk.core.permissions import make_folder
from qwendesk.core.translation import tr
from qwendesk.hub.download_control import RetryPolicy
from qwendesk.hub.download_plan import DownloadPlan, plan_download
from qwendesk.hub.download_queue import DownloadItem, DownloadQueue, QueueTotal, SavedDownload
from qwendesk.hub.network import offline_error
from qwendesk.models.library_service import LibraryService
from qwendesk.models.network import NetworkOptions, NetworkService

_logger = logging.getLogger(__name__)

# How often the progress of running downloads is read. Other changes are announced at once.
_POLL_S = 0.25
# Failures after which the same file isn't available any more; the repository is asked for its replacement.
_PLAN_ANEW = ("changed", "not_found")

# Stores the SHA-256 of files, so that they need not be read to verify them.
RememberHashes = Callable[[Sequence[tuple[Path, str]]], Awaitable[None]]


class DownloadsState(msgspec.Struct, frozen=True):
    """All downloads in their order."""

    items: tuple[DownloadItem, ...] = ()
    total: QueueTotal = QueueTotal(0, 0, 0.0)
    """Of the unfinished downloads."""
    is_offline: bool = False
    is_elsewhere: bool = False
    """Another window of the app runs the downloads. `items` are as they were when this window started."""

    @property
    def unfinished(self) -> tuple[DownloadItem, ...]:
        return tuple(item for item in self.items if item.saved.state != "done")

    def item(self, identity: str) -> DownloadItem | None:
        return next((item for item in self.items if item.saved.id == identity), None)


def downloads_file() -> Path:
    """Return the file that the queue is saved in."""
    return paths.data_folder() / "downloads.json"


class DownloadsService:
    """Owns the download queue of one window. Call its methods on the event loop's thread; they never block it."""

    def __init__(
        self,
        network: NetworkService,
        library: LibraryService,
        *,
        state_file: Path | None = None,
        retry_policy: RetryPolicy | None = None,
        remember_hashes: RememberHashes | None = None,
    ) -> None:
        """`remember_hashes` is given the hashes that were computed during a download."""
        self._network, self._library, self._remember_hashes = network, library, remember_hashes
        self._state_file = state_file or downloads_file()
        self._queue = DownloadQueue(self._state_file, network.hub, retry_policy=retry_policy)
        self._lock = contextlib.ExitStack()
        self._is_elsewhere = False
        self._unwritable = ""
        """Why the list of downloads can't be saved; "" if it can."""
        self.state = Observed(DownloadsState(is_offline=network.connection.is_offline))
        self._finished = Subscribers[DownloadItem]()
        self._changed = asyncio.Event()
        self._follower: asyncio.Task[None] | None = None
        self._connection = network.connection
        self._unsubscribes: list[Callable[[], None]] = []

    def subscribe_finished(self, callback: Callable[[DownloadItem], None]) -> Callable[[], None]:
        """Call `callback` with each finished download once the library has it; return a function that ends this."""
        return self._finished.add(callback)

    def start(self) -> None:
        """Resume the downloads of the last session, unless the app is offline or another window runs them.

        Where the list of downloads can't be saved, none runs, and the rest of the app goes on.
        """
        try:
            make_folder(self._state_file.parent)
            self._is_elsewhere = not self._lock.enter_context(locked(self._state_file))
        except OSError as error:
            self._unwritable = error.strerror or str(error)
        loop = asyncio.get_running_loop()

        def on_change(_identity: str) -> None:
            # From a download's thread; none runs after `close`, which waits for them.
            loop.call_soon_threadsafe(self._changed.set)

        self._unsubscribes = [self._queue.subscribe(on_change)]
        self._follower = loop.create_task(self._follow())

    async def close(self) -> None:
        """Stop all downloads; they resume at the next start."""
        if self._follower is not None:
            self._follower.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._follower
        for unsubscribe in self._unsubscribes:
            unsubscribe()
        await asyncio.to_thread(self._queue.close)
        self._lock.close()

    async def plan(self, repo: str, path: str, *, with_mmproj: bool = True) -> DownloadPlan:
        """Return what a download would contain: all shards, and the vision projector. Raises HubError."""
        if self._connection.is_offline:
            raise offline_error()
        return await asyncio.to_thread(
            lambda: plan_download(self._network.hub(), repo, path, with_mmproj=with_mmproj),
        )

    async def add(self, repo: str, path: str, *, with_mmproj: bool = True, models_folder: Path | None = None) -> str:
        """Queue `path` of `repo` as one download into `models_folder`, by default the first; return the download's id.

        Raises HubError if the Hub doesn't list the file (offline, gated, denied, not found, ...), QwenDeskError if
        another window runs the downloads.
        """
        self._check_runs_here()
        plan = await self.plan(repo, path, with_mmproj=with_mmproj)
        folder = models_folder or Path(self._library.folders.models[0])
        return await asyncio.to_thread(self._queue.add, plan.files, folder)

    async def pause(self, identity: str) -> None:
        self._check_runs_here()
        await asyncio.to_thread(self._queue.pause, identity)

    async def resume(self, identity: str) -> None:
        """Resume a paused download, or retry a failed one.

        A file that has changed on the Hub is replaced by the present one. Raises HubError if it isn't there any more.
        """
        self._check_runs_here()
        item = self.state.value.item(identity)
        if item is not None and item.saved.trouble in _PLAN_ANEW:
            await self._replace(item.saved)
        else:
            await asyncio.to_thread(self._queue.resume, identity)

    async def cancel(self, identity: str) -> None:
        """Remove the download from the list, and delete its unfinished files."""
        self._check_runs_here()
        await asyncio.to_thread(self._queue.cancel, identity)

    async def move(self, identity: str, step: int) -> None:
        """Move the download `step` places later in the order (earlier if negative), if there are so many."""
        self._check_runs_here()
        order = [item.saved.id for item in self.state.value.items]
        place = order.index(identity) + step if identity in order else -1
        if 0 <= place < len(order):
            await asyncio.to_thread(self._queue.move, identity, place)

    async def clear_done(self) -> None:
        """Remove finished downloads from the list and keep their files."""
        for item in self.state.value.items:
            if item.saved.state == "done":
                await self.cancel(item.saved.id)

    async def pause_all(self) -> None:
        for item in self.state.value.items:
            await self.pause(item.saved.id)

    async def resume_all(self) -> None:
        for item in self.state.value.items:
            if item.saved.state == "paused":
                await self.resume(item.saved.id)

    @property
    def _runs_here(self) -> bool:
        return not self._is_elsewhere and not self._unwritable

    def _check_runs_here(self) -> None:
        if self._unwritable:
            sentence = tr(
                "Downloads can't run, because QwenDesk can't write to {0}: {1}. Make it writable and restart QwenDesk.",
                self._state_file.parent,
                self._unwritable,
            )
            raise QwenDeskError(tr("Downloads can't run"), sentence)
        if self._is_elsewhere:
            sentence = tr(
                "Another QwenDesk window runs the downloads. Use that window, or close it and restart this one."
            )
            raise QwenDeskError(tr("Downloads run in another window"), sentence)

    async def _replace(self, kept: SavedDownload) -> None:
        first = kept.files[0]
        with_mmproj = any(is_mmproj_name(each.file.path) for each in kept.files[1:])
        plan = await self.plan(first.file.repo, first.file.path, with_mmproj=with_mmproj)

        # It takes the place of the download of the same file, in one go: none is lost if the caller is cancelled.
        await asyncio.to_thread(self._queue.add, plan.files, _models_folder(kept))

    def _on_connection(self, connection: NetworkOptions) -> None:
        before, self._connection = self._connection, connection
        self._queue.limit.set(connection.limit_bytes_per_s)
        if connection.is_offline:
            self._queue.hold()
        elif before.is_offline and self._runs_here:
            self._queue.start()
        elif msgspec.structs.replace(connection, limit_bytes_per_s=before.limit_bytes_per_s) != before:
            self._queue.reconnect()
        self._changed.set()

    async def _follow(self) -> None:
        """Run the queue, and update the state after every change, and a few times a second while a download runs."""
        # The queue runs only once its first state is known: a download that finished earlier would be announced as
        # finished, or one that finishes at once would not.
        await self._read_queue()
        self._connection = self._network.connection
        self._unsubscribes.append(self._network.connections.subscribe(self._on_connection))
        self._queue.limit.set(self._connection.limit_bytes_per_s)
        if not self._connection.is_offline and self._runs_here:
            self._queue.start()
        guard = FailureGuard(_logger, "The downloads couldn't be followed")
        while True:
            is_moving = any(item.saved.state == "running" for item in self.state.value.items)
            with contextlib.suppress(TimeoutError):
                # Not wait_for: it ignores a cancellation that comes together with what it waits for.
                async with asyncio.timeout(_POLL_S if is_moving else None):
                    await self._changed.wait()
            self._changed.clear()
            before = self.state.value
            with guard:
                await self._read_queue()
                finished = _finished_between(before, self.state.value)
                if finished:
                    await self._announce_finished(finished)

    async def _read_queue(self) -> None:
        items, total = await asyncio.to_thread(lambda: (self._queue.items, self._queue.total))
        self.state.set(DownloadsState(items, total, self._connection.is_offline, self._is_elsewhere))

    async def _announce_finished(self, items: list[DownloadItem]) -> None:
        await self._library.refresh()
        if self._remember_hashes is not None:
            await self._remember_hashes([hashed for item in items for hashed in _hashes(item)])
        for item in items:
            self._finished.notify(item)


def _finished_between(before: DownloadsState, after: DownloadsState) -> list[DownloadItem]:
    was_done = {item.saved.id for item in before.items if item.saved.state == "done"}
    return [item for item in after.items if item.saved.state == "done" and item.saved.id not in was_done]


def _hashes(item: DownloadItem) -> list[tuple[Path, str]]:
    return [(Path(each.target), each.file.sha256 or "") for each in item.saved.files]


def _models_folder(kept: SavedDownload) -> Path:
    """Return the models folder of the download: its target without the names of repository and file."""
    first = kept.files[0]
    depth = len(first.file.repo.split("/")) + len(first.file.path.split("/"))
    return Path(first.target).parents[depth - 1]
