"""Stops running downloads, limits their speed and decides how often they are tried again."""

from __future__ import annotations

import socket
import sys
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from qwendesk.core.translation import tr
from qwendesk.hub.network import HubError

if TYPE_CHECKING:
    import httpx2


class RetryPolicy(msgspec.Struct, frozen=True):
    """How often and how long a download is tried again."""

    tries: int = 8
    """Maximum number of failures in a row without any progress."""
    first_wait_s: float = 1.0
    longest_wait_s: float = 60.0
    longest_asked_s: float = 600.0
    """Longest wait that a server may ask for; beyond it the download fails."""

    def wait_s(self, failures: int) -> float:
        """Return the seconds to wait after this many failures in a row."""
        return min(self.first_wait_s * 2.0 ** (failures - 1), self.longest_wait_s)


class SpeedLimit:
    """Limits the bytes per second of all downloads together; 0 is no limit. Thread-safe."""

    def __init__(self, bytes_per_s: int = 0) -> None:
        self._lock = threading.Lock()
        self._bytes_per_s = bytes_per_s
        self._free_at = 0.0

    def set(self, bytes_per_s: int) -> None:
        with self._lock:
            self._bytes_per_s, self._free_at = bytes_per_s, 0.0

    def delay_for(self, n_bytes: int) -> float:
        """Return the seconds to wait before the next bytes are read."""
        with self._lock:
            if self._bytes_per_s <= 0:
                return 0.0
            now = time.monotonic()
            self._free_at = max(self._free_at, now) + n_bytes / self._bytes_per_s
            return self._free_at - now


class DownloadControl:
    """Stops one download at once, even while it waits for the network."""

    def __init__(self, limit: SpeedLimit | None = None) -> None:
        self.limit = limit or SpeedLimit()
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None

    def stop(self) -> None:
        self._stop.set()
        with self._lock:
            if self._socket is not None:
                _disconnect(self._socket)

    @property
    def is_stopped(self) -> bool:
        return self._stop.is_set()

    def check(self) -> None:
        """Raise HubError ("stopped") once `stop` was called."""
        if self._stop.is_set():
            raise HubError("stopped", tr("Stopped"), tr("The download was stopped. You can resume it later."))

    def wait(self, seconds: float) -> None:
        self._stop.wait(seconds)
        self.check()

    def watch(self, answer: httpx2.Response) -> None:
        """From now on, close the connection of `answer` too when `stop` is called."""
        stream = answer.extensions.get("network_stream")
        found = stream.get_extra_info("socket") if stream is not None else None
        with self._lock:
            self._socket = found if isinstance(found, socket.socket) else None
        self.check()

    def unwatch(self) -> None:
        with self._lock:
            self._socket = None


def _disconnect(connection: socket.socket) -> None:
    """End the connection, so that a thread that waits for it goes on at once."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
        # There `shutdown` wakes no thread. Elsewhere a closed number could soon mean another file.
        if sys.platform == "win32":
            socket.close(connection.detach())
