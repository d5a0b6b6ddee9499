"""What other threads may ask of the request that runs: to stop, or to end its thought."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from qwendesk.engine.worker.model import AbortFlag

_GRACE_S = 0.06
"""A cancelled answer stops between two tokens; one token that takes longer is aborted after this many seconds."""


class Control:
    """Set by the thread that reads requests, looked at by the thread that serves them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: set[int] = set()
        self._running: int | None = None
        self._abort: AbortFlag | None = None
        self._timer: threading.Timer | None = None
        self._cancelled: set[int] = set()
        self._answer_now = False

    def expect(self, request_id: int) -> None:
        """A request that can be cancelled was put in the queue."""
        with self._lock:
            self._waiting.add(request_id)

    @contextmanager
    def running(self, request_id: int, abort: AbortFlag | None = None) -> Iterator[None]:
        """While the request is served; `abort` interrupts a decode that does not come back soon."""
        with self._lock:
            self._waiting.discard(request_id)
            self._running, self._abort, self._answer_now = request_id, abort, False
        try:
            yield
        finally:
            with self._lock:
                self._running, self._abort = None, None
                self._cancelled.discard(request_id)
                timer, self._timer = self._timer, None
            if timer is not None:
                timer.cancel()
                timer.join()
            if abort is not None:
                abort.lower()

    @property
    def cancelled(self) -> bool:
        """Whether the request that runs should stop."""
        return self._running in self._cancelled

    def take_answer_now(self) -> bool:
        """Whether the thought should end now; asked once."""
        asked, self._answer_now = self._answer_now, False
        return asked

    def cancel(self, target: int) -> bool:
        """Stop `target`; False when it neither runs nor waits."""
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
        """Stop whatever runs."""
        if self._running is not None:
            self.cancel(self._running)

    def answer_now(self, target: int) -> bool:
        """End the thought of `target`; False when it does not run."""
        with self._lock:
            self._answer_now = target == self._running
            return self._answer_now

    def _abort_running(self, target: int) -> None:
        with self._lock:
            if self._running == target and self._abort is not None:
                self._abort.raise_()
