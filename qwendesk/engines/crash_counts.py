"""Counts crashes: of each engine while it starts, on disk, and of the running one within a minute."""

from collections import deque
from pathlib import Path

import msgspec

from qwendesk import __version__
from qwendesk.core.json_file import JsonFile


class _CrashCountsFile(msgspec.Struct, frozen=True):
    """The content of the file. Counts from another version of the app are ignored: it came with other engines."""

    version: str
    """Version of the app that wrote the counts."""
    counts: dict[str, int]


class CrashCounts:
    """Counts from an unusable file or from another version of the app are ignored. Methods block on the disk."""

    def __init__(self, file: Path) -> None:
        self._file = JsonFile(file, _CrashCountsFile, lambda: _CrashCountsFile(__version__, {}), keep_unusable=False)

    def count(self, name: str) -> int:
        return self._read().get(name, 0)

    def set_count(self, name: str, n_crashes: int) -> None:
        self._write({**self._read(), name: n_crashes})

    def forget(self, name: str) -> None:
        counts = self._read()
        if name in counts:
            self._write({key: count for key, count in counts.items() if key != name})

    def _read(self) -> dict[str, int]:
        kept = self._file.read()
        return kept.counts if kept.version == __version__ else {}

    def _write(self, counts: dict[str, int]) -> None:
        self._file.try_write(_CrashCountsFile(__version__, counts))


MOST_RESTARTS = 3
RESTARTS_WITHIN_S = 60


class RestartLimit:
    """Allows three restarts a minute: a worker that crashes at once is not restarted forever."""

    def __init__(self) -> None:
        self._restarts: deque[float] = deque(maxlen=MOST_RESTARTS)

    def allow(self, now: float) -> bool:
        """Count a restart at `now`, in seconds of a monotonic clock; return False if it is one too many."""
        if len(self._restarts) == MOST_RESTARTS and now - self._restarts[0] < RESTARTS_WITHIN_S:
            return False
        self._restarts.append(now)
        return True
