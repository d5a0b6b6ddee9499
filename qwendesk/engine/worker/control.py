"""Lets other threads cancel the running request, or end its reasoning."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from qwendesk.engine.worker.model import AbortFlag

# A cancelled answer stops between two tokens. A decode that takes longer than this many seconds is aborted.
_GRACE_S = 0.06


class RequestControl:
    """Set by the thread that reads requests, and read by the thread that serves them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: set[int] = set()
        self._running: int | None = None
        self._abort: AbortFlag | None = None
        self._timer: threading.Timer | None = None
        self._cancelled: set[int] = set()
        self._answer_now = False

    def expect(self, request_id: int) -> None:
        """Record that a request that can be cancelled was queued, perhaps the running one for the second time."""
        with self._lock:
            self._waiting.add(request_id)

    def forget(self, request_id: int) -> None:
        """Record that the request left the queue without being passed to `running`."""
        with self._lock:
            self._waiting.discard(request_id)
            self._cancelled.discard(request_id)

    @contextmanager
    def running(self, request_id: int, abort: AbortFlag | None = None) -> Iterator[None]:
        """Mark the request as running in the `with` block. `abort` interrupts a decode that does not return soon."""
        with self._lock:
            self._waiting.discard(request_id)
            self._running, self._abort, self._answer_now = request_id, abort, False
        try:
            yield
        finally:
            with self._lock:
                self._running, self._abort = None, None
                if request_id not in self._waiting:  # it runs again later, and is then cancelled
                    self._cancelled.discard(request_id)
                timer, self._timer = self._timer, None
            if timer is not None:
                timer.cancel()
                timer.join()
            if abort is not None:
                abort.lower()

    @property
    def cancelled(self) -> bool:
        """Whether the running request should stop."""
        return self._running in self._cancelled

    def take_answer_now(self) -> bool:
        """Return whether the reasoning should end now, and reset that."""
        asked, self._answer_now = self._answer_now, False
        return asked

    def cancel(self, target: int) -> bool:
        """Stop the request `target`. Return False if it is neither running nor queued."""
        with self._lock:
            if target != self._running and target not in self._waiting:
                return False
            self._cancelled.add(target)
            if target == self._running and self._abort is not None and self._timer is None:
                self._timer = threading.Timer(_GRACE_S, self._abort_running, (target,))
                self._timer.daemon = True
                self._timer.start()
            return True

    def cancel_running(self) -> None:
        """Stop the running request, if any."""
        if self._running is not None:
            self.cancel(self._running)

    def answer_now(self, target: int) -> bool:
        """End the reasoning of the request `target`. Return False if it is not running."""
        with self._lock:
            self._answer_now = target == self._running
            return self._answer_now

    def _abort_running(self, target: int) -> None:
        with self._lock:
            if self._running == target and self._abort is not None:
                self._abort.raise_()
