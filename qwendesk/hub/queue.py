"""The download queue: some at a time, in order, paused and resumed, and as it was after a restart."""

import threading
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from qwendesk.core.subscribers import Subscribers
from qwendesk.hub.download import FileProgress, download_file
from qwendesk.hub.download_control import Control, Patience, SpeedLimit
from qwendesk.hub.download_part import check_space, discard_part, disk_trouble
from qwendesk.hub.folders import repo_file
from qwendesk.hub.network import HubTrouble
from qwendesk.hub.queue_state import (
    DownloadItem,
    Kept,
    QueueFile,
    QueueTotal,
    Speed,
    State,
    bytes_on_disk,
    is_whole,
    read_queue,
    write_queue,
)
from qwendesk.hub.remote import Hub, RemoteFile


class _Run:
    """A download while its thread runs."""

    def __init__(self, kept: Kept, limit: SpeedLimit) -> None:
        self.control = Control(limit)
        self.speed = Speed()
        self.item = DownloadItem(kept, bytes_on_disk(kept))
        self.discard = False
        """Cancelled: what is there is removed when the thread has let go of it."""
        self.thread: threading.Thread | None = None


class DownloadQueue:
    """Owns the downloads. Its methods are quick and for any thread; one that is not listed any more is passed over.

    Subscribers are called with an item's id ("" for the order), on whatever thread the change happened.
    """

    def __init__(
        self, state_file: Path, hub: Callable[[], Hub], *, at_once: int = 2, patience: Patience | None = None
    ) -> None:
        """Remembers the downloads of `state_file`; `start` begins. `hub` is asked anew for each download."""
        self._state_file, self._hub, self._at_once = state_file, hub, at_once
        self._patience = patience or Patience()
        self._lock = threading.RLock()
        self._order: list[Kept] = list(read_queue(state_file))
        self._runs: dict[str, _Run] = {}
        self._is_started = False
        self._subscribers = Subscribers[str]()
        self.limit = SpeedLimit()

    def subscribe(self, callback: Callable[[str], None]) -> Callable[[], None]:
        return self._subscribers.add(callback)

    @property
    def items(self) -> tuple[DownloadItem, ...]:
        with self._lock:
            return tuple(self._item(kept) for kept in self._order)

    @property
    def total(self) -> QueueTotal:
        items = [item for item in self.items if item.kept.state != "done"]
        n_done, n_bytes = sum(item.n_done for item in items), sum(item.kept.n_bytes for item in items)
        return QueueTotal(n_done, n_bytes, sum(item.bytes_per_s for item in items))

    def start(self) -> None:
        """Begin, and go on with whatever is queued."""
        self._is_started = True
        self._fill()

    def hold(self) -> None:
        """Stops all without waiting for their end; they are queued until `start`."""
        with self._lock:
            self._is_started = False
            runs = list(self._runs.values())
        for run in runs:
            run.control.stop()

    def reconnect(self) -> None:
        """Lets what runs begin anew where it is, with the Hub as it is to be reached now."""
        with self._lock:
            runs = list(self._runs.values())
        for run in runs:
            run.control.stop()

    def add(self, files: Sequence[RemoteFile], models_folder: Path) -> str:
        """Queues `files` as one download; its id. A download of the same first file is resumed instead.

        Raises QwenDeskError for a name that cannot be a file's name here.
        """
        wanted = tuple(QueueFile(file, str(repo_file(models_folder, file.repo, file.path))) for file in files)
        with self._lock:
            same = [kept for kept in self._order if kept.files[0].target == wanted[0].target]
            is_same = bool(same) and (same[0].files == wanted or same[0].id in self._runs) and same[0].state != "done"
            if not is_same:
                self._order = [kept for kept in self._order if kept not in same]
                self._order.append(Kept(uuid.uuid4().hex, wanted))
            added = same[0].id if is_same else self._order[-1].id
        if is_same:
            self.resume(added)
            return added
        self._changed("")
        self._fill()
        return added

    def pause(self, identity: str) -> None:
        """What is there stays; other downloads take its place."""
        with self._lock:
            if self._state_of(identity) not in ("queued", "running"):
                return
            self._set(identity, state="paused")
            self._stop(identity)
        self._changed(identity)
        self._fill()

    def resume(self, identity: str) -> None:
        """Also tries again what failed."""
        with self._lock:
            if self._state_of(identity) not in ("paused", "failed"):
                return
            self._set(identity, state="queued", trouble=None, sentence="")
        self._changed(identity)
        self._fill()

    def cancel(self, identity: str) -> None:
        """Takes it off the list, and removes what is unfinished. Finished files stay."""
        with self._lock:
            if self._state_of(identity) is None:
                return
            kept = self._kept(identity)
            self._order.remove(kept)
            run = self._runs.get(identity)
            if run is not None:
                run.discard = True
                run.control.stop()
            elif kept.state != "done":
                _discard(kept)
        self._changed("")
        self._fill()

    def move(self, identity: str, place: int) -> None:
        """To the `place` in the order, from 0. What runs goes on."""
        with self._lock:
            if self._state_of(identity) is None:
                return
            kept = self._kept(identity)
            self._order.remove(kept)
            self._order.insert(place, kept)
        self._changed("")

    def close(self) -> None:
        """Stops all; returns when nothing is written any more. They go on at the next start."""
        with self._lock:
            self._is_started = False
            runs = list(self._runs.values())
            for run in runs:
                run.control.stop()
        for run in runs:
            if run.thread is not None:
                run.thread.join()

    def _fill(self) -> None:
        """Begins queued downloads while there is room."""
        begun: list[_Run] = []
        with self._lock:
            for kept in tuple(self._order):
                # One that was paused and resumed keeps its place until its old thread has ended, and two that share
                # a picture file take turns.
                is_free = kept.state == "queued" and not self._is_in_use(kept)
                if not self._is_started or len(self._runs) >= self._at_once or not is_free:
                    continue
                running = self._set(kept.id, state="running")
                run = self._runs[kept.id] = _Run(running, self.limit)
                run.thread = threading.Thread(target=self._run, args=(run,), name=f"download {kept.id}", daemon=True)
                begun.append(run)
                run.thread.start()
        for run in begun:
            self._changed(run.item.kept.id)

    def _is_in_use(self, kept: Kept) -> bool:
        """Whether what is missing of `kept` is being fetched by another one, or `kept` itself still runs."""
        missing = {each.target for each in kept.files if not is_whole(each)}
        return kept.id in self._runs or any(
            missing & {each.target for each in run.item.kept.files} for run in self._runs.values()
        )

    def _run(self, run: _Run) -> None:
        # Stays when something unforeseen is raised, which the thread then reports.
        trouble: HubTrouble | None = HubTrouble("stopped", "Broken off", "The download broke off. Try again.")
        try:
            self._download(run)
            trouble = None
        except HubTrouble as stopped_by:
            trouble = stopped_by
        except OSError as error:
            trouble = disk_trouble(error, Path(run.item.kept.files[0].target), run.item.kept.n_bytes)
        finally:
            self._ended(run, trouble)

    def _ended(self, run: _Run, trouble: HubTrouble | None) -> None:
        identity = run.item.kept.id
        with self._lock:
            if run.discard:
                _discard(run.item.kept)
            del self._runs[identity]
            if self._state_of(identity) == "running":
                self._settle(run, trouble)
        self._changed(identity)
        self._fill()

    def _settle(self, run: _Run, trouble: HubTrouble | None) -> None:
        identity = run.item.kept.id
        if trouble is None:
            self._set(identity, state="done")
        elif run.control.is_stopped:
            self._set(identity, state="queued")
        else:
            self._set(identity, state="failed", trouble=trouble.kind, sentence=trouble.sentence)

    def _download(self, run: _Run) -> None:
        kept = run.item.kept
        first = Path(kept.files[0].target)
        first.parent.mkdir(parents=True, exist_ok=True)
        check_space(first, kept.n_bytes - bytes_on_disk(kept))
        hub, before = self._hub(), 0
        for each in kept.files:

            def report(progress: FileProgress, before: int = before) -> None:
                self._report(run, progress, before)

            download_file(hub, each.file, Path(each.target), report, run.control, self._patience)
            before += each.file.n_bytes

    def _report(self, run: _Run, progress: FileProgress, before: int) -> None:
        n_done = before + progress.n_bytes
        with self._lock:
            if progress.phase == "downloading":
                run.speed.see(n_done)
            was = run.item
            run.item = DownloadItem(was.kept, n_done, progress.phase, progress.note, run.speed.bytes_per_s)
        if progress.phase != was.phase:
            self._subscribers.notify(was.kept.id)

    def _item(self, kept: Kept) -> DownloadItem:
        run = self._runs.get(kept.id)
        if run is None or kept.state != "running":
            return DownloadItem(kept, kept.n_bytes if kept.state == "done" else bytes_on_disk(kept))
        return msgspec.structs.replace(run.item, kept=kept, bytes_per_s=run.speed.bytes_per_s)

    def _state_of(self, identity: str) -> State | None:
        """None when it is not listed."""
        return next((kept.state for kept in self._order if kept.id == identity), None)

    def _kept(self, identity: str) -> Kept:
        return next(kept for kept in self._order if kept.id == identity)

    def _set(self, identity: str, **changes: object) -> Kept:
        kept = self._kept(identity)
        changed = msgspec.structs.replace(kept, **changes)
        self._order[self._order.index(kept)] = changed
        return changed

    def _stop(self, identity: str) -> None:
        run = self._runs.get(identity)
        if run is not None:
            run.control.stop()

    def _changed(self, identity: str) -> None:
        with self._lock:
            write_queue(self._state_file, tuple(self._order))
        self._subscribers.notify(identity)


def _discard(kept: Kept) -> None:
    for each in kept.files:
        discard_part(Path(each.target))
