"""DownloadQueue runs downloads in order, a few at a time, saves them, and resumes them after a restart."""

import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from qwendesk.core.json_file import JsonFile
from qwendesk.core.observed import Subscribers
from qwendesk.core.permissions import make_folder
from qwendesk.core.translation import tr
from qwendesk.hub.download import FileProgress, download_file
from qwendesk.hub.download_control import DownloadControl, RetryPolicy, SpeedLimit
from qwendesk.hub.download_part import check_space, discard_part, disk_error, part_of
from qwendesk.hub.model_folders import repo_file
from qwendesk.hub.network import HubError, HubErrorKind
from qwendesk.hub.remote import Hub, RemoteFile

_SPEED_WINDOW_S = 8.0

State = Literal["queued", "running", "paused", "failed", "done"]


class QueueFile(msgspec.Struct, frozen=True):
    """One file of a download and its target."""

    file: RemoteFile
    target: str


class SavedDownload(msgspec.Struct, frozen=True):
    """One download in the saved queue. A running one is saved as queued, so that it resumes after a restart."""

    id: str
    files: tuple[QueueFile, ...]
    state: State = "queued"
    trouble: HubErrorKind | None = None
    sentence: str = ""
    """Reason why the download failed."""

    @property
    def n_bytes(self) -> int:
        return sum(each.file.n_bytes for each in self.files)


class DownloadItem(msgspec.Struct, frozen=True):
    """One download for display, with all shards and the mmproj."""

    saved: SavedDownload
    n_done: int
    """Bytes on disk."""
    phase: Literal["", "checking", "downloading", "waiting"] = ""
    note: str = ""
    bytes_per_s: float = 0.0

    @property
    def seconds_left(self) -> float | None:
        """Estimated seconds left; None if unknown."""
        return (self.saved.n_bytes - self.n_done) / self.bytes_per_s if self.bytes_per_s > 0 else None


class QueueTotal(msgspec.Struct, frozen=True):
    """Sum of all unfinished downloads."""

    n_done: int
    n_bytes: int
    bytes_per_s: float

    @property
    def seconds_left(self) -> float | None:
        return (self.n_bytes - self.n_done) / self.bytes_per_s if self.bytes_per_s > 0 else None


class TransferRate:
    """Measures bytes per second over the last seconds."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def add_total(self, n_bytes: int) -> None:
        """Record the bytes so far. A smaller number than the last one restarts the measurement."""
        now = time.monotonic()
        if self._seen and n_bytes < self._seen[-1][1]:
            self._seen.clear()
        self._seen.append((now, n_bytes))
        while now - self._seen[0][0] > _SPEED_WINDOW_S:
            self._seen.popleft()

    @property
    def bytes_per_s(self) -> float:
        if len(self._seen) < 2:
            return 0.0
        (since, first), (_, last) = self._seen[0], self._seen[-1]
        return (last - first) / max(time.monotonic() - since, 0.001)


def bytes_on_disk(saved: SavedDownload) -> int:
    """Return how many bytes of a download are on disk, from the sizes of its files."""
    return sum(_bytes_of(each) for each in saved.files)


def is_whole(each: QueueFile) -> bool:
    """Return True if a file has its final name and size. The download itself checks the content."""
    try:
        return Path(each.target).stat().st_size == each.file.n_bytes
    except OSError:
        return False


def read_queue(path: Path) -> tuple[SavedDownload, ...]:
    """Return the saved downloads in their order."""
    return _file(path).read()


def write_queue(path: Path, downloads: tuple[SavedDownload, ...]) -> None:
    """Save the downloads. A disk error is logged, and downloads continue."""
    saved = (msgspec.structs.replace(each, state="queued") if each.state == "running" else each for each in downloads)
    _file(path).try_write(tuple(saved))


def _file(path: Path) -> JsonFile[tuple[SavedDownload, ...]]:
    return JsonFile(path, tuple[SavedDownload, ...], tuple)


def _bytes_of(each: QueueFile) -> int:
    target = Path(each.target)
    part = part_of(target)
    # A target of another size is an older version that is being replaced.
    for path, is_final in ((part, False), (target, True)):
        try:
            n_bytes = path.stat().st_size
        except OSError:
            continue
        if not is_final or n_bytes == each.file.n_bytes:
            return min(n_bytes, each.file.n_bytes)
    return 0


class _RunningDownload:
    """A download while its thread runs."""

    def __init__(self, saved: SavedDownload, limit: SpeedLimit) -> None:
        self.control = DownloadControl(limit)
        self.speed = TransferRate()
        self.item = DownloadItem(saved, bytes_on_disk(saved))
        self.discard = False
        """Whether it was cancelled: its partial files are deleted when the thread has ended."""
        self.thread: threading.Thread | None = None


# Downloads that run at once.
_AT_ONCE = 2


class DownloadQueue:
    """Owns the downloads. Methods return quickly, may be called on any thread, and ignore an unknown id.

    Subscribers get a download's id, or "" if the order changed, on the thread of the change.
    """

    def __init__(self, state_file: Path, hub: Callable[[], Hub], *, retry_policy: RetryPolicy | None) -> None:
        """Read the downloads from `state_file`. Call `start` to run them. `hub` is called for each download."""
        self._state_file, self._hub = state_file, hub
        self._retry_policy = retry_policy or RetryPolicy()
        self._lock = threading.RLock()
        self._order: list[SavedDownload] = list(read_queue(state_file))
        self._runs: dict[str, _RunningDownload] = {}
        self._is_started = False
        self._subscribers = Subscribers[str]()
        self.limit = SpeedLimit()

    def subscribe(self, callback: Callable[[str], None]) -> Callable[[], None]:
        return self._subscribers.add(callback)

    @property
    def items(self) -> tuple[DownloadItem, ...]:
        with self._lock:
            return tuple(self._item(saved) for saved in self._order)

    @property
    def total(self) -> QueueTotal:
        items = [item for item in self.items if item.saved.state != "done"]
        n_done, n_bytes = sum(item.n_done for item in items), sum(item.saved.n_bytes for item in items)
        return QueueTotal(n_done, n_bytes, sum(item.bytes_per_s for item in items))

    def start(self) -> None:
        """Run the queued downloads."""
        self._is_started = True
        self._fill()

    def hold(self) -> None:
        """Stop all downloads without waiting for their threads. They stay queued until `start`."""
        with self._lock:
            self._is_started = False
            runs = list(self._runs.values())
        for run in runs:
            run.control.stop()

    def reconnect(self) -> None:
        """Restart the running downloads with a new Hub. They resume where they are."""
        with self._lock:
            runs = list(self._runs.values())
        for run in runs:
            run.control.stop()

    def add(self, files: Sequence[RemoteFile], models_folder: Path) -> str:
        """Queue `files` as one download and return its id.

        If there is a download of the same first file, resume that one instead. Raises QwenDeskError for a name that
        isn't possible as a file name.
        """
        wanted = tuple(QueueFile(file, str(repo_file(models_folder, file.repo, file.path))) for file in files)
        with self._lock:
            same = [saved for saved in self._order if saved.files[0].target == wanted[0].target]
            is_same = bool(same) and (same[0].files == wanted or same[0].id in self._runs) and same[0].state != "done"
            if not is_same:
                self._order = [saved for saved in self._order if saved not in same]
                self._order.append(SavedDownload(uuid.uuid4().hex, wanted))
            added = same[0].id if is_same else self._order[-1].id
        if is_same:
            self.resume(added)
            return added
        self._changed("")
        self._fill()
        return added

    def pause(self, identity: str) -> None:
        """Pause a download and keep its bytes; others run in its place."""
        with self._lock:
            if self._state_of(identity) not in ("queued", "running"):
                return
            self._set(identity, state="paused")
            self._stop(identity)
        self._changed(identity)
        self._fill()

    def resume(self, identity: str) -> None:
        """Resume a download, or try a failed one again."""
        with self._lock:
            if self._state_of(identity) not in ("paused", "failed"):
                return
            self._set(identity, state="queued", trouble=None, sentence="")
        self._changed(identity)
        self._fill()

    def cancel(self, identity: str) -> None:
        """Remove a download and delete its partial files. Finished files stay."""
        with self._lock:
            if self._state_of(identity) is None:
                return
            saved = self._saved(identity)
            self._order.remove(saved)
            run = self._runs.get(identity)
            if run is not None:
                run.discard = True
                run.control.stop()
            elif saved.state != "done":
                _discard(saved)
        self._changed("")
        self._fill()

    def move(self, identity: str, place: int) -> None:
        """Move a download to `place` in the order, counted from 0. Running downloads continue."""
        with self._lock:
            if self._state_of(identity) is None:
                return
            saved = self._saved(identity)
            self._order.remove(saved)
            self._order.insert(place, saved)
        self._changed("")

    def close(self) -> None:
        """Stop all downloads and wait for their threads. They resume at the next start of the app."""
        with self._lock:
            self._is_started = False
            runs = list(self._runs.values())
            for run in runs:
                run.control.stop()
        for run in runs:
            if run.thread is not None:
                run.thread.join()

    def _fill(self) -> None:
        """Run queued downloads up to the limit."""
        begun: list[_RunningDownload] = []
        with self._lock:
            for saved in tuple(self._order):
                # A download that was paused and resumed waits until its old thread has ended, and two that share an
                # mmproj run one after the other.
                is_free = saved.state == "queued" and not self._is_in_use(saved)
                if not self._is_started or len(self._runs) >= _AT_ONCE or not is_free:
                    continue
                running = self._set(saved.id, state="running")
                run = self._runs[saved.id] = _RunningDownload(running, self.limit)
                run.thread = threading.Thread(target=self._run, args=(run,), name=f"download {saved.id}", daemon=True)
                begun.append(run)
                run.thread.start()
        for run in begun:
            self._changed(run.item.saved.id)

    def _is_in_use(self, saved: SavedDownload) -> bool:
        """Return True if another download fetches one of its missing files, or its own thread still runs."""
        missing = {each.target for each in saved.files if not is_whole(each)}
        return saved.id in self._runs or any(
            missing & {each.target for each in run.item.saved.files} for run in self._runs.values()
        )

    def _run(self, run: _RunningDownload) -> None:
        # This failure is reported if an unexpected exception ends the thread.
        failure: HubError | None = HubError("stopped", tr("Failed"), tr("The download failed unexpectedly. Try again."))
        try:
            self._download(run)
            failure = None
        except HubError as stopped_by:
            failure = stopped_by
        except OSError as error:
            failure = disk_error(error, Path(run.item.saved.files[0].target), run.item.saved.n_bytes)
        finally:
            self._ended(run, failure)

    def _ended(self, run: _RunningDownload, failure: HubError | None) -> None:
        identity = run.item.saved.id
        with self._lock:
            if run.discard:
                _discard(run.item.saved)
            del self._runs[identity]
            if self._state_of(identity) == "running":
                self._settle(run, failure)
        self._changed(identity)
        self._fill()

    def _settle(self, run: _RunningDownload, failure: HubError | None) -> None:
        identity = run.item.saved.id
        if failure is None:
            self._set(identity, state="done")
        elif run.control.is_stopped:
            self._set(identity, state="queued")
        else:
            self._set(identity, state="failed", trouble=failure.kind, sentence=failure.sentence)

    def _download(self, run: _RunningDownload) -> None:
        saved = run.item.saved
        first = Path(saved.files[0].target)
        make_folder(first.parent)
        check_space(first, saved.n_bytes - bytes_on_disk(saved))
        hub, before = self._hub(), 0
        for each in saved.files:

            def report(progress: FileProgress, before: int = before) -> None:
                self._report(run, progress, before)

            download_file(hub, each.file, Path(each.target), report, run.control, self._retry_policy)
            before += each.file.n_bytes

    def _report(self, run: _RunningDownload, progress: FileProgress, before: int) -> None:
        n_done = before + progress.n_bytes
        with self._lock:
            if progress.phase == "downloading":
                run.speed.add_total(n_done)
            was = run.item
            run.item = DownloadItem(was.saved, n_done, progress.phase, progress.note, run.speed.bytes_per_s)
        if progress.phase != was.phase:
            self._subscribers.notify(was.saved.id)

    def _item(self, saved: SavedDownload) -> DownloadItem:
        run = self._runs.get(saved.id)
        if run is None or saved.state != "running":
            return DownloadItem(saved, saved.n_bytes if saved.state == "done" else bytes_on_disk(saved))
        return msgspec.structs.replace(run.item, saved=saved, bytes_per_s=run.speed.bytes_per_s)

    def _state_of(self, identity: str) -> State | None:
        """Return the state of a download; None if the id is unknown."""
        return next((saved.state for saved in self._order if saved.id == identity), None)

    def _saved(self, identity: str) -> SavedDownload:
        return next(saved for saved in self._order if saved.id == identity)

    def _set(self, identity: str, **changes: object) -> SavedDownload:
        saved = self._saved(identity)
        changed = msgspec.structs.replace(saved, **changes)
        self._order[self._order.index(saved)] = changed
        return changed

    def _stop(self, identity: str) -> None:
        run = self._runs.get(identity)
        if run is not None:
            run.control.stop()

    def _changed(self, identity: str) -> None:
        with self._lock:
            write_queue(self._state_file, tuple(self._order))
        self._subscribers.notify(identity)


def _discard(saved: SavedDownload) -> None:
    for each in saved.files:
        discard_part(Path(each.target))
