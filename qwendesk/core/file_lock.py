"""A lock between processes, and between threads of one: who holds it may write a file, nobody else."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_ENDING = ".lock"


@contextmanager
def locked(path: Path) -> Iterator[bool]:
    """Whether the right to write `path` could be had; if so it is held until the end of the block.

    The system gives it back when the process ends, however it ends. Raises OSError when no lock file can be made.
    """
    lock = path.with_name(path.name + _ENDING)
    descriptor = _taken(lock)
    if descriptor is None:
        yield False
        return
    try:
        yield True
    finally:
        # Windows removes no file that is open; elsewhere it must go before someone else can take it.
        if sys.platform != "win32":
            lock.unlink(missing_ok=True)
        os.close(descriptor)
        if sys.platform == "win32":
            with suppress(OSError):
                lock.unlink(missing_ok=True)


def _taken(lock: Path) -> int | None:
    while True:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
        if not _try_lock(descriptor):
            os.close(descriptor)
            return None
        if _is_still(lock, descriptor):
            return descriptor
        os.close(descriptor)


def _is_still(lock: Path, descriptor: int) -> bool:
    """Not so when the one who had it before removed the file: what was locked then is not what others will lock."""
    try:
        return os.path.samestat(lock.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _try_lock(descriptor: int) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt  # noqa: PLC0415

            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl  # noqa: PLC0415

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
