"""Work on other threads, so that a slow disk never blocks the window: calls that can be stopped, and small files."""

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from qwendesk.core.json_file import JsonFile

_logger = logging.getLogger(__name__)

T = TypeVar("T")


async def run_in_thread(run: Callable[[Callable[[], bool]], T]) -> T:
    """Call `run` on another thread with a function that says whether to stop. If this is cancelled, wait for its end.

    A task that doesn't wait would leave files half written while the next one begins with them.
    """
    stop = threading.Event()
    thread = asyncio.create_task(asyncio.to_thread(run, stop.is_set))
    try:
        return await asyncio.shield(thread)
    except asyncio.CancelledError:
        stop.set()
        await asyncio.gather(thread, return_exceptions=True)
        raise


class BackgroundWriter(Generic[T]):
    """Writes the values of one JsonFile. Methods are called on the event loop's thread.

    The last value always reaches the file: a value whose writing hasn't begun is replaced by a later one, and no two
    are written at the same time.
    """

    def __init__(self, file: JsonFile[T], failed: Callable[[OSError], None] = lambda _error: None) -> None:
        """`failed` is called on the event loop's thread if a write fails; the failure is also logged."""
        self._file, self._failed = file, failed
        self._unwritten: bytes | None = None
        self._writing: asyncio.Task[None] | None = None
        self._one_writer = threading.Lock()

    def write(self, value: T) -> None:
        """Encode `value` now and write it soon, or at once if no event loop is running, as in a command."""
        self._unwritten = self._file.encode(value)
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self.flush()
            return
        if self._writing is None:
            self._writing = loop.create_task(self._write_all())

    def flush(self) -> None:
        """Write any unwritten value before returning. Blocks, so call it only when the process ends."""
        try:
            self._write()
        except OSError as error:
            self._on_failed(error)

    async def close(self) -> None:
        """Wait until everything has been written or has failed."""
        if self._writing is not None:
            await asyncio.wait([self._writing])

    def _write(self) -> None:
        with self._one_writer:
            content, self._unwritten = self._unwritten, None
            if content is not None:
                self._file.write_encoded(content)

    async def _write_all(self) -> None:
        try:
            while self._unwritten is not None:
                try:
                    await asyncio.to_thread(self._write)
                except OSError as error:
                    self._on_failed(error)
        finally:
            self._writing = None

    def _on_failed(self, error: OSError) -> None:
        _logger.warning("%s could not be written: %s", self._file.path, error)
        self._failed(error)
