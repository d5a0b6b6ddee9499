"""Lets other threads cancel a request, or end its reasoning, while it runs or is interrupted."""

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
        self._interrupted: set[int] = set()
        """Those of them that ran already."""
        self._running: int | None = None
        self._abort: AbortFlag | None = None
        self._timer: threading.Timer | None = None
        self._cancelled: set[int] = set()
        self._answer_now: set[int] = set()

    def expect(self, request_id: int, *, is_interrupted: bool = False) -> None:
        """Record that a request that can be cancelled was queued, perhaps the running one, which is interrupted."""
        with self._lock:
            self._waiting.add(request_id)
            if is_interrupted:
                self._interrupted.add(request_id)

    def forget(self, request_id: int) -> None:
        """Record that the request left the queue without being passed to `running`."""
        with self._lock:
            for each in (self._waiting, self._interrupted, self._cancelled, self._answer_now):
                each.discard(request_id)

    @contextmanager
    def running(self, request_id: int, abort: AbortFlag | None = None) -> Iterator[None]:
        """Mark the request as running in the `with` block. `abort` interrupts a decode that does not return soon."""
        with self._lock:
            self._waiting.discard(request_id)
            self._interrupted.discard(request_id)
            self._running, self._abort = request_id, abort
        try:
            yield
        finally:
            with self._lock:
                self._running, self._abort = None, None
                if request_id not in self._waiting:  # else it goes on later
                    self._cancelled.discard(request_id)
                    self._answer_now.discard(request_id)
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

    @property
    def is_idle(self) -> bool:
        """Whether no request runs."""
        return self._running is None

    def is_cancelled(self, request_id: int) -> bool:
        """Return whether a request that runs or waits should stop."""
        return request_id in self._cancelled

    def take_answer_now(self) -> bool:
        """Return whether the reasoning of the running request should end now, and reset that."""
        if self._running not in self._answer_now:
            return False
        with self._lock:
            self._answer_now.discard(self._running)
        return True

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
        """End the reasoning of the request `target`. Return False if it is neither running nor interrupted."""
        with self._lock:
            if target != self._running and target not in self._interrupted:
                return False
            self._answer_now.add(target)
            return True

    def _abort_running(self, target: int) -> None:
        with self._lock:
            if self._running == target and self._abort is not None:
                self._abort.raise_()
