"""Values of the download queue: the saved downloads, and the items shown in the window."""

import time
from collections import deque
from pathlib import Path
from typing import Literal

import msgspec

from qwendesk.core.json_file import JsonFile
from qwendesk.hub.download_part import part_of
from qwendesk.hub.network import HubErrorKind
from qwendesk.hub.remote import RemoteFile

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
    """Why the download failed."""

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
