"""A lock between processes and between threads, whose holder alone may write a file."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from qwendesk.core import paths


@contextmanager
def locked(path: Path, timeout_s: float = 0.0) -> Iterator[bool]:
    """Lock `path` until the end of the block; yield False if it is still locked elsewhere after `timeout_s`.

    The lock is a file next to `path` with ".lock" added to its name. The system releases it when the process ends,
    even if it crashes. Raises OSError if the lock file cannot be created.
    """
    # The lock is not thread-local because the block may end on another thread than it began on.
    mode = 0o600 if paths.is_own(path) else 0o644
    lock = FileLock(path.with_name(f"{path.name}.lock"), mode=mode, timeout=timeout_s, thread_local=False)
    try:
        lock.acquire()
    except Timeout:
        yield False
        return
    try:
        yield True
    finally:
        # filelock deletes its file on Windows only. Elsewhere we delete it while it is still locked. A process that
        # has already opened the deleted file notices this and creates a new one.
        if sys.platform != "win32":
            Path(lock.lock_file).unlink(missing_ok=True)
        lock.release()
