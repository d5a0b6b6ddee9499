"""The download queue as values: what is kept over a restart, and what is shown."""

import logging
import time
from collections import deque
from pathlib import Path
from typing import Literal

import msgspec

from qwendesk.core.files import decode_json, write_whole
from qwendesk.hub.download_part import part_of
from qwendesk.hub.network import Trouble
from qwendesk.hub.remote import RemoteFile

_logger = logging.getLogger(__name__)
_SPEED_WINDOW_S = 8.0

State = Literal["queued", "running", "paused", "failed", "done"]


class QueueFile(msgspec.Struct, frozen=True):
    """One file of a download, and where it goes."""

    file: RemoteFile
    target: str


class Kept(msgspec.Struct, frozen=True):
    """One download as it is remembered. A running one is remembered as queued: it goes on after a restart."""

    id: str
    files: tuple[QueueFile, ...]
    state: State = "queued"
    trouble: Trouble | None = None
    sentence: str = ""
    """Why it failed."""

    @property
    def n_bytes(self) -> int:
        return sum(each.file.n_bytes for each in self.files)


class DownloadItem(msgspec.Struct, frozen=True):
    """One download as it is shown; split sets and the picture file are part of it."""

    kept: Kept
    n_done: int
    """Bytes that are on disk."""
    phase: Literal["", "checking", "downloading", "waiting"] = ""
    note: str = ""
    bytes_per_s: float = 0.0

    @property
    def seconds_left(self) -> float | None:
        """None when it cannot be told."""
        return (self.kept.n_bytes - self.n_done) / self.bytes_per_s if self.bytes_per_s > 0 else None


class QueueTotal(msgspec.Struct, frozen=True):
    """All downloads that are not done, together."""

    n_done: int
    n_bytes: int
    bytes_per_s: float

    @property
    def seconds_left(self) -> float | None:
        return (self.n_bytes - self.n_done) / self.bytes_per_s if self.bytes_per_s > 0 else None


class Speed:
    """Bytes per second over the last seconds."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def see(self, n_bytes: int) -> None:
        """The whole count so far. A smaller one than before begins anew."""
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


def bytes_on_disk(kept: Kept) -> int:
    """What is there of a download, by the sizes of its files."""
    return sum(_bytes_of(each) for each in kept.files)


def is_whole(each: QueueFile) -> bool:
    """Whether a file has its final name and its size; its content is checked when its turn comes."""
    try:
        return Path(each.target).stat().st_size == each.file.n_bytes
    except OSError:
        return False


def read_queue(path: Path) -> tuple[Kept, ...]:
    """The remembered downloads in their order; none when they cannot be read (logged: nothing on disk is lost)."""
    try:
        return decode_json(path.read_bytes(), tuple[Kept, ...])
    except FileNotFoundError:
        return ()
    except (OSError, msgspec.DecodeError) as error:
        _logger.warning("The download queue %s cannot be read: %s", path, error)
        return ()


def write_queue(path: Path, downloads: tuple[Kept, ...]) -> None:
    """Remembers them; what cannot be written is logged, downloads go on."""
    as_kept = [msgspec.structs.replace(each, state="queued") if each.state == "running" else each for each in downloads]
    try:
        write_whole(path, msgspec.json.encode(as_kept))
    except OSError as error:
        _logger.warning("The download queue %s cannot be written: %s", path, error)


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
