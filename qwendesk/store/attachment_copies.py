"""Copies of attached files, each made on its own thread.

Reading from a network drive that doesn't answer can block for minutes or forever. No copy is therefore made inside a
transaction or on a thread that anything waits for. The threads are daemon threads, which don't keep the process alive.
"""

import hashlib
import logging
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

from qwendesk.core.files import file_stamp
from qwendesk.core.input_files import open_regular
from qwendesk.core.messages import ImagePart
from qwendesk.core.permissions import make_folder
from qwendesk.core.safe_open import create_own

_logger = logging.getLogger(__name__)


class AttachmentCopies:
    """Runs copies and knows those in progress by the hash of the file. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[str, Future[Path | None]] = {}
        self._moved_s = time.monotonic()

    @property
    def idle_s(self) -> float:
        """Seconds since any copy last made progress. The number keeps growing if all remaining copies hang."""
        return time.monotonic() - self._moved_s

    def start(self, sha256: str, work: Callable[[], Path | None]) -> Future[Path | None]:
        """Run `work`, which may call `copy`, on its own thread, and return a future of its result.

        If work for the same hash is already running, return the future of that work instead.
        """
        with self._lock:
            running = self._running.get(sha256)
            if running is not None:
                return running
            done = self._running[sha256] = Future()
            # A future that is marked as running can't be cancelled by one of several callers.
            done.set_running_or_notify_cancel()
            self._moved_s = time.monotonic()
        threading.Thread(target=self._run, args=(sha256, work, done), name="attachment-copy", daemon=True).start()
        return done

    def copy(self, image: ImagePart, target: Path) -> bool:
        """Copy the image's file to `target`, and return whether it is still the file that was hashed.

        Blocks, perhaps forever. If the file can't be read, log the error and return False. Raises OSError if `target`
        can't be written.
        """
        try:
            source = open_regular(Path(image.path))
        except OSError as error:
            _log_unread(error)
            return False
        digest = hashlib.sha256() if image.file_stamp is None else None
        with source:
            stamp_before = file_stamp(os.fstat(source.fileno()))
            make_folder(target.parent)
            with create_own(target) as file:
                while True:
                    try:
                        piece = source.read(1 << 20)
                    except OSError as error:
                        _log_unread(error)
                        return False
                    if not piece:
                        break
                    file.write(piece)
                    if digest is not None:
                        digest.update(piece)
                    self._moved_s = time.monotonic()
                file.flush()
                os.fsync(file.fileno())
            stamp_after = file_stamp(os.fstat(source.fileno()))
        if digest is not None:
            return digest.hexdigest() == image.sha256
        return stamp_before == stamp_after == image.file_stamp

    def _run(self, sha256: str, work: Callable[[], Path | None], done: Future[Path | None]) -> None:
        place: Path | None = None
        failure: BaseException | None = None
        try:
            place = work()
        except BaseException as error:  # noqa: BLE001 - it goes to whoever waits for the copy
            failure = error
        with self._lock:
            del self._running[sha256]
        if failure is None:
            done.set_result(place)
        else:
            done.set_exception(failure)


def _log_unread(error: OSError) -> None:
    """Log the error without the file's name, which may be private."""
    _logger.warning("An attached file could not be read: %s", error.strerror)
