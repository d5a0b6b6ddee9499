"""The downloads as the window knows them: added, steered, and followed until the library has them."""

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path

import msgspec

from qwendesk.core import paths
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.file_lock import locked
from qwendesk.core.subscribers import Subscribers
from qwendesk.hub.download_control import Patience
from qwendesk.hub.download_plan import DownloadPlan, is_mmproj, plan_download
from qwendesk.hub.network import offline_trouble
from qwendesk.hub.queue import DownloadQueue
from qwendesk.hub.queue_state import DownloadItem, Kept, QueueTotal
from qwendesk.services.models.network import Connection, NetworkService
from qwendesk.services.models.service import ModelsService

_LOOK_AGAIN_S = 0.25
"""How often running downloads are looked at; what else changes is told at once."""
_PLAN_ANEW = ("changed", "not_found")
"""After these the same bytes cannot be had: what the repository has now is asked."""


class DownloadsState(msgspec.Struct, frozen=True):
    """All downloads in their order, and those that are not done together."""

    items: tuple[DownloadItem, ...] = ()
    total: QueueTotal = QueueTotal(0, 0, 0.0)
    is_offline: bool = False
    """Nothing goes on until the switch is thrown again."""
    is_elsewhere: bool = False
    """Another window of the app had the downloads when this one started; they are shown as they were then."""

    @property
    def unfinished(self) -> tuple[DownloadItem, ...]:
        return tuple(item for item in self.items if item.kept.state != "done")

    def item(self, identity: str) -> DownloadItem | None:
        return next((item for item in self.items if item.kept.id == identity), None)


def downloads_file() -> Path:
    """Where the queue is remembered."""
    return paths.data_folder() / "downloads.json"


class DownloadsService:
    """Owns the download queue of one window. Methods are called on the event loop's thread and never block it."""

    def __init__(
        self,
        network: NetworkService,
        models: ModelsService,
        *,
        state_file: Path | None = None,
        patience: Patience | None = None,
    ) -> None:
        self._network, self._models = network, models
        self._state_file = state_file or downloads_file()
        self._queue = DownloadQueue(self._state_file, network.hub, patience=patience)
        self._lock = contextlib.ExitStack()
        self._is_elsewhere = False
        self._state = DownloadsState(is_offline=network.connection.is_offline)
        self._subscribers = Subscribers[DownloadsState]()
        self._finished = Subscribers[DownloadItem]()
        self._changed = asyncio.Event()
        self._follower: asyncio.Task[None] | None = None
        self._connection = network.connection
        self._endings: list[Callable[[], None]] = []

    @property
    def state(self) -> DownloadsState:
        """As it was when last looked at; empty before `start`."""
        return self._state

    def subscribe(self, callback: Callable[[DownloadsState], None]) -> Callable[[], None]:
        """Call `callback` with the state each time it changed. Returns what ends it."""
        return self._subscribers.add(callback)

    def subscribe_finished(self, callback: Callable[[DownloadItem], None]) -> Callable[[], None]:
        """Call `callback` with each download that got done, once the library has it. Returns what ends it."""
        return self._finished.add(callback)

    def start(self) -> None:
        """Go on with what was there at the last end, unless offline or another window does it."""
        self._state_file.parent.mkdir(parents=True, exist_ok=True)
        self._is_elsewhere = not self._lock.enter_context(locked(self._state_file))
        loop = asyncio.get_running_loop()

        def on_change(_identity: str) -> None:
            # From a download's thread; none runs after `close`, which waits for them.
            loop.call_soon_threadsafe(self._changed.set)

        self._endings = [self._queue.subscribe(on_change), self._network.subscribe(self._on_connection)]
        self._queue.limit.set(self._connection.limit_bytes_per_s)
        self._follower = loop.create_task(self._follow())
        if not self._connection.is_offline and not self._is_elsewhere:
            self._queue.start()

    async def close(self) -> None:
        """Stops all; returns when nothing is written any more. They go on at the next start."""
        for end in self._endings:
            end()
        await asyncio.to_thread(self._queue.close)
        self._lock.close()
        if self._follower is not None:
            self._follower.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._follower

    async def plan(self, repo: str, path: str, *, with_mmproj: bool = True) -> DownloadPlan:
        """What a download would bring: all parts, and the matching picture file. Raises HubTrouble."""
        if self._connection.is_offline:
            raise offline_trouble()
        return await asyncio.to_thread(
            lambda: plan_download(self._network.hub(), repo, path, with_mmproj=with_mmproj),
        )

    async def add(self, repo: str, path: str, *, with_mmproj: bool = True, models_folder: Path | None = None) -> str:
        """Queue `path` of `repo` as one download into the first models folder or the one named; its id.

        Raises HubTrouble when the Hub does not say what it has (offline, gated, denied, not found, ...), QwenDeskError
        when another window has the downloads.
        """
        self._refuse_elsewhere()
        plan = await self.plan(repo, path, with_mmproj=with_mmproj)
        folder = models_folder or Path(self._models.folders.models[0])
        return await asyncio.to_thread(self._queue.add, plan.files, folder)

    async def pause(self, identity: str) -> None:
        self._refuse_elsewhere()
        await asyncio.to_thread(self._queue.pause, identity)

    async def resume(self, identity: str) -> None:
        """Go on with what was paused, or try again what failed.

        What the Hub has changed or moved is looked up anew; raises HubTrouble when it is not there any more.
        """
        self._refuse_elsewhere()
        item = self._state.item(identity)
        if item is not None and item.kept.trouble in _PLAN_ANEW:
            await self._replace(item.kept)
        else:
            await asyncio.to_thread(self._queue.resume, identity)

    async def cancel(self, identity: str) -> None:
        """Take it off the list and remove what is unfinished. Finished files stay."""
        self._refuse_elsewhere()
        await asyncio.to_thread(self._queue.cancel, identity)

    async def move(self, identity: str, place: int) -> None:
        """To the `place` in the order, from 0."""
        self._refuse_elsewhere()
        await asyncio.to_thread(self._queue.move, identity, place)

    async def clear_done(self) -> None:
        """Take finished downloads off the list. Their files stay."""
        for item in self._state.items:
            if item.kept.state == "done":
                await self.cancel(item.kept.id)

    async def pause_all(self) -> None:
        for item in self._state.items:
            await self.pause(item.kept.id)

    async def resume_all(self) -> None:
        for item in self._state.items:
            if item.kept.state == "paused":
                await self.resume(item.kept.id)

    def _refuse_elsewhere(self) -> None:
        if self._is_elsewhere:
            sentence = (
                "Another window of QwenDesk has the downloads. Use that one, or close it and start this one again."
            )
            raise QwenDeskError("Downloads are in another window", sentence)

    async def _replace(self, kept: Kept) -> None:
        first = kept.files[0]
        with_mmproj = any(is_mmproj(each.file) for each in kept.files[1:])
        plan = await self.plan(first.file.repo, first.file.path, with_mmproj=with_mmproj)
        await self.cancel(kept.id)
        await asyncio.to_thread(self._queue.add, plan.files, _models_folder(kept))

    def _on_connection(self, connection: Connection) -> None:
        before, self._connection = self._connection, connection
        self._queue.limit.set(connection.limit_bytes_per_s)
        if connection.is_offline:
            self._queue.hold()
        elif before.is_offline and not self._is_elsewhere:
            self._queue.start()
        elif msgspec.structs.replace(connection, limit_bytes_per_s=before.limit_bytes_per_s) != before:
            self._queue.reconnect()
        self._changed.set()

    async def _follow(self) -> None:
        """Tells of every change, and a few times a second while something runs."""
        is_first = True
        while True:
            self._changed.clear()
            items, total = await asyncio.to_thread(lambda: (self._queue.items, self._queue.total))
            state = DownloadsState(items, total, self._connection.is_offline, self._is_elsewhere)
            before, self._state = self._state, state
            if state != before:
                self._subscribers.notify(state)
            finished = [] if is_first else _finished_between(before, state)
            is_first = False
            if finished:
                await self._tell_finished(finished)
            is_moving = any(item.kept.state == "running" for item in items)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), _LOOK_AGAIN_S if is_moving else None)

    async def _tell_finished(self, items: list[DownloadItem]) -> None:
        await self._models.refresh()
        for item in items:
            self._finished.notify(item)


def _finished_between(before: DownloadsState, after: DownloadsState) -> list[DownloadItem]:
    was_done = {item.kept.id for item in before.items if item.kept.state == "done"}
    return [item for item in after.items if item.kept.state == "done" and item.kept.id not in was_done]


def _models_folder(kept: Kept) -> Path:
    """The folder that the download goes below: the target without the names of repository and file."""
    first = kept.files[0]
    depth = len(first.file.repo.split("/")) + len(first.file.path.split("/"))
    return Path(first.target).parents[depth - 1]
