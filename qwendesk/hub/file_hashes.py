"""Computes the SHA-256 of large files, with progress, cancelling and a cache."""

import hashlib
import os
import stat
from collections.abc import Callable
from pathlib import Path

import msgspec

from qwendesk.core.files import is_utf8
from qwendesk.core.input_files import open_regular
from qwendesk.core.json_file import JsonFile
from qwendesk.core.links import real_path

# Small enough to stay in the CPU's cache between reading and hashing.
_CHUNK_BYTES = 1024**2
_PROGRESS_BYTES = 64 * 1024**2
_MAX_REMEMBERED = 4096


class HashCancelled(Exception):
    """Hashing was cancelled."""


def hash_file(
    path: Path,
    cancelled: Callable[[], bool] = lambda: False,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> str:
    """Return the SHA-256 of the file at `path` as hex digits.

    `progress` gets the bytes done and the total, every 64 MiB and at the end. Raises HashCancelled once `cancelled`
    returns True, and OSError if the file can't be read.
    """
    digest = hashlib.sha256()
    buffer = memoryview(bytearray(_CHUNK_BYTES))
    done = told = 0
    with open_regular(path) as file:
        total = os.fstat(file.fileno()).st_size
        while n_bytes := file.readinto(buffer):
            if cancelled():
                raise HashCancelled
            digest.update(buffer[:n_bytes])
            done += n_bytes
            if done - told >= _PROGRESS_BYTES:
                told = done
                progress(done, total)
    progress(done, total)
    return digest.hexdigest()


class _HashRecord(msgspec.Struct, frozen=True, array_like=True):
    size: int
    mtime_ns: int
    inode: int
    sha256: str


class HashMemory:
    """Saved hashes of files. A hash is valid while path, size, modification time and inode of its file are the same.

    Use it on one thread at a time. Two programs may share the file of hashes; the one that saves last wins.
    """

    def __init__(self, file: Path) -> None:
        self._file = JsonFile(file, dict[str, _HashRecord], dict, keep_unusable=False)
        self._known = self._file.read()

    def recall(self, path: Path) -> str | None:
        """Return the saved hash of the file at `path`; None if it changed since. Raises OSError."""
        known = self._known.get(str(real_path(path)))
        return known.sha256 if known is not None and known == _state(path, known.sha256) else None

    def remember(self, path: Path, sha256: str, *, before: os.stat_result) -> None:
        """Keep `sha256` for the file at `path` unless it changed since `before`, the start of hashing."""
        state = _state(path, sha256)
        if state != _record(before, sha256):
            return
        name = str(real_path(path))
        self._known.pop(name, None)
        self._known[name] = state
        while len(self._known) > _MAX_REMEMBERED:
            del self._known[next(iter(self._known))]

    def save(self) -> None:
        """Save the hashes. Raises OSError; they are then still known until the app closes.

        Files whose paths are not UTF-8 are not saved and are hashed again the next time.
        """
        lasting = {name: state for name, state in self._known.items() if is_utf8(name)}
        self._file.write(lasting)

    def hash_file(
        self,
        path: Path,
        cancelled: Callable[[], bool] = lambda: False,
        progress: Callable[[int, int], None] = lambda _done, _total: None,
    ) -> str:
        """Return the saved hash; if there is none, compute it with the function `hash_file` and keep it."""
        known = self.recall(path)
        if known is not None:
            return known
        before = path.stat()
        sha256 = hash_file(path, cancelled, progress)
        self.remember(path, sha256, before=before)
        return sha256


def _state(path: Path, sha256: str) -> _HashRecord:
    return _record(path.stat(), sha256)


def _record(status: os.stat_result, sha256: str) -> _HashRecord:
    size = status.st_size if stat.S_ISREG(status.st_mode) else -1
    return _HashRecord(size, status.st_mtime_ns, status.st_ino, sha256)
