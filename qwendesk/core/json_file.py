"""JsonFile: a small JSON file of the app that holds one value, written on another thread if need be."""

import asyncio
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Generic, Literal, TypeVar

import msgspec

from qwendesk.core.errors import QwenDeskError
from qwendesk.core.files import read_whole, set_aside, write_whole
from qwendesk.core.json_decoding import decode_json

_logger = logging.getLogger(__name__)

T = TypeVar("T")


class NewerFormat(QwenDeskError):
    """A newer version of the app has written the file, so it must not be changed."""


@dataclass(frozen=True)
class StoredValue(Generic[T]):
    """The result of `JsonFile.load`."""

    value: T
    problem: Literal["", "unusable", "newer"] = ""
    """Reason why `value` is the default although the file exists; "" if the file was read or does not exist."""
    reason: str = ""
    """The error message of the system or the decoder for an unusable file."""
    renamed_to: Path | None = None
    """The new path of an unusable file that was renamed."""

    @property
    def is_locked(self) -> bool:
        """Whether the file is still there and must not be replaced."""
        return bool(self.problem) and self.renamed_to is None


class JsonFile(Generic[T]):
    """One value in one file. Its methods block while they access the disk.

    A file that can't be read or decoded is logged and renamed with the ending ".unusable", so that a new one can be
    written and nothing is lost.
    """

    def __init__(
        self,
        path: Path,
        kind: type[T],
        default: Callable[[], T],
        *,
        decode: Callable[[bytes], T] | None = None,
        keep_unusable: bool = True,
    ) -> None:
        """`decode` may raise msgspec.DecodeError or QwenDeskError.

        With `keep_unusable=False`, for content that is easily recreated, an unusable file is not renamed; the next
        write replaces it.
        """
        self.path = path
        self._default = default
        self._decode = decode or partial(decode_json, kind=kind)
        self._keep_unusable = keep_unusable

    def read(self) -> T:
        """Return the stored value; the default if there is no usable file."""
        return self.load().value

    def load(self) -> StoredValue[T]:
        """Return the stored value, or the default and why the file cannot be used."""
        try:
            return StoredValue(self._decode(read_whole(self.path)))
        except FileNotFoundError:
            return StoredValue(self._default())
        except NewerFormat as error:
            _logger.warning("%s is left as it is: %s", self.path, error.sentence)
            return StoredValue(self._default(), "newer", error.sentence)
        except (OSError, msgspec.DecodeError, QwenDeskError) as error:
            _logger.warning("%s cannot be used: %s", self.path, error)
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return StoredValue(self._default(), "unusable", reason, self._set_aside() if self._keep_unusable else None)

    def encode(self, value: T) -> bytes:
        return msgspec.json.format(msgspec.json.encode(value), indent=2)

    def write(self, value: T) -> None:
        """Replace the whole file. Raises OSError."""
        self.write_encoded(self.encode(value))

    def write_encoded(self, content: bytes) -> None:
        """Write what `encode` returned. Raises OSError."""
        write_whole(self.path, content)

    def try_write(self, value: T) -> None:
        """Write `value`; log the error if that fails."""
        try:
            self.write(value)
        except OSError as error:
            _logger.warning("%s could not be written: %s", self.path, error.strerror or error)

    def _set_aside(self) -> Path | None:
        try:
            return set_aside(self.path)
        except OSError as error:
            _logger.warning("%s could not be renamed: %s", self.path, error)
            return None


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
        _logger.warning("%s could not be written: %s", self._file.path, error.strerror or error)
        self._failed(error)
