"""SHA-256 of large files: cancellable, with progress, and remembered."""

import hashlib
import os
import stat
from collections.abc import Callable
from pathlib import Path

import msgspec

from qwendesk.core.files import decode_json, write_whole

_CHUNK_BYTES = 1024**2
"""Small enough to stay in the processor's cache between reading and hashing."""
_PROGRESS_BYTES = 64 * 1024**2
_MAX_REMEMBERED = 4096


class HashCancelled(Exception):
    """The hashing was asked to stop."""


def hash_file(
    path: Path,
    cancelled: Callable[[], bool] = lambda: False,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> str:
    """The SHA-256 of the file at `path`, in hexadecimal.

    `progress` gets bytes done and bytes in all, every 64 MiB and at the end. Raises HashCancelled as soon as
    `cancelled` says so, and OSError when the file cannot be read.
    """
    digest = hashlib.sha256()
    buffer = memoryview(bytearray(_CHUNK_BYTES))
    done = told = 0
    with path.open("rb", buffering=0) as file:
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


class _Remembered(msgspec.Struct, frozen=True, array_like=True):
    size: int
    mtime_ns: int
    inode: int
    sha256: str


class HashMemory:
    """Hashes of files that have not changed since: the same path, size, modification time and inode.

    Used from one thread at a time; two programs may share the file, and the one that saves last wins.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._known = _read(file)

    def recall(self, path: Path) -> str | None:
        """The hash of the file at `path` if it was hashed as it is now. Raises OSError."""
        known = self._known.get(str(path.resolve()))
        return known.sha256 if known is not None and known == _state(path, known.sha256) else None

    def remember(self, path: Path, sha256: str, *, before: os.stat_result) -> None:
        """Keeps `sha256` for the file at `path`, unless it changed since `before`, when the hashing began."""
        state = _state(path, sha256)
        if state != _of(before, sha256):
            return
        name = str(path.resolve())
        self._known.pop(name, None)
        self._known[name] = state
        while len(self._known) > _MAX_REMEMBERED:
            del self._known[next(iter(self._known))]

    def save(self) -> None:
        """Raises OSError; what was remembered is then only lost for the next start."""
        write_whole(self._file, msgspec.json.encode(self._known))

    def hash_file(
        self,
        path: Path,
        cancelled: Callable[[], bool] = lambda: False,
        progress: Callable[[int, int], None] = lambda _done, _total: None,
    ) -> str:
        """As the function `hash_file`, or at once when the file is remembered."""
        known = self.recall(path)
        if known is not None:
            return known
        before = path.stat()
        sha256 = hash_file(path, cancelled, progress)
        self.remember(path, sha256, before=before)
        return sha256


def _read(file: Path) -> dict[str, _Remembered]:
    """Nothing is remembered when the file is missing or damaged: hashing again costs only time."""
    try:
        return decode_json(file.read_bytes(), dict[str, _Remembered])
    except (OSError, msgspec.DecodeError):
        return {}


def _state(path: Path, sha256: str) -> _Remembered:
    return _of(path.stat(), sha256)


def _of(status: os.stat_result, sha256: str) -> _Remembered:
    size = status.st_size if stat.S_ISREG(status.st_mode) else -1
    return _Remembered(size, status.st_mtime_ns, status.st_ino, sha256)
