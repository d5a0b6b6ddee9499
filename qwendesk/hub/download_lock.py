"""A lock against a second QwenDesk (or a second download) that writes the same file."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from qwendesk.hub.network import HubTrouble

_ENDING = ".lock"


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds the only right to write `path`. Raises HubTrouble ("locked") when someone else has it.

    The system gives the lock back when the process ends, however it ends.
    """
    lock = path.with_name(path.name + _ENDING)
    descriptor = _take(lock)
    if descriptor is None:
        sentence = f"{path.name} is being downloaded already, perhaps by another window of QwenDesk."
        raise HubTrouble("locked", "Already downloading", sentence)
    try:
        yield
    finally:
        # Windows removes no open file, others must not lose theirs between the closing and the removal.
        if sys.platform != "win32":
            lock.unlink(missing_ok=True)
        os.close(descriptor)
        if sys.platform == "win32":
            with suppress(OSError):
                lock.unlink(missing_ok=True)


def _take(lock: Path) -> int | None:
    while True:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _lock(descriptor)
            if os.fstat(descriptor).st_ino == lock.stat().st_ino:
                return descriptor
        except FileNotFoundError:
            pass  # whoever had it is done and has removed it: the next one is a new file
        except OSError:
            os.close(descriptor)
            return None
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    """Raises OSError when another process, or another descriptor of this one, has it."""
    if sys.platform == "win32":
        import msvcrt  # noqa: PLC0415

        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl  # noqa: PLC0415

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
