"""What steers running downloads from another thread: stop, and the speed limit they share."""

import socket
import threading
import time
from contextlib import suppress

import httpx2
import msgspec

from qwendesk.hub.network import HubTrouble


class Patience(msgspec.Struct, frozen=True):
    """How long a download goes on trying, in seconds."""

    tries: int = 8
    """Failures in a row, with no byte between them."""
    first_wait_s: float = 1.0
    longest_wait_s: float = 60.0
    longest_asked_s: float = 600.0
    """A server that asks for a longer wait is reported instead."""

    def wait_s(self, failures: int) -> float:
        """Before the next try, after so many failures in a row."""
        return min(self.first_wait_s * 2.0 ** (failures - 1), self.longest_wait_s)


class SpeedLimit:
    """Bytes per second for all downloads together; 0 is no limit. For any thread."""

    def __init__(self, bytes_per_s: int = 0) -> None:
        self._lock = threading.Lock()
        self._bytes_per_s = bytes_per_s
        self._free_at = 0.0

    def set(self, bytes_per_s: int) -> None:
        with self._lock:
            self._bytes_per_s, self._free_at = bytes_per_s, 0.0

    def delay_for(self, n_bytes: int) -> float:
        """How long, in seconds, to wait before the next bytes are taken."""
        with self._lock:
            if self._bytes_per_s <= 0:
                return 0.0
            now = time.monotonic()
            self._free_at = max(self._free_at, now) + n_bytes / self._bytes_per_s
            return self._free_at - now


class Control:
    """Stops one download at once, also while it waits for the network."""

    def __init__(self, limit: SpeedLimit | None = None) -> None:
        self.limit = limit or SpeedLimit()
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None

    def stop(self) -> None:
        self._stop.set()
        with self._lock:
            if self._socket is not None:
                with suppress(OSError):
                    self._socket.shutdown(socket.SHUT_RDWR)

    @property
    def is_stopped(self) -> bool:
        return self._stop.is_set()

    def check(self) -> None:
        """Raises HubTrouble ("stopped") once `stop` was called."""
        if self._stop.is_set():
            raise HubTrouble("stopped", "Stopped", "The download was stopped. What is there stays for later.")

    def wait(self, seconds: float) -> None:
        self._stop.wait(seconds)
        self.check()

    def watch(self, answer: httpx2.Response) -> None:
        """From now on a stop also ends this answer's connection."""
        stream = answer.extensions.get("network_stream")
        found = stream.get_extra_info("socket") if stream is not None else None
        with self._lock:
            self._socket = found if isinstance(found, socket.socket) else None
        self.check()

    def unwatch(self) -> None:
        with self._lock:
            self._socket = None
