"""Runs long work of the window in short steps between iterations of the event loop."""

import time
from collections.abc import Callable, Iterator

from PySide6.QtCore import QObject, QTimer

# Time for such work in one iteration of the event loop, which stays below 50 ms with the last step and painting.
_STEP_S = 0.008


class StepBudget:
    """Limits the time spent in one iteration of the event loop on work that can also be done in the next one.

    All work with the same budget shares the time, which starts with `begin` or the first call of `is_spent`.
    """

    def __init__(
        self, owner: QObject, limit_s: float = _STEP_S, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self.limit_s, self.clock = limit_s, clock
        self._started: float | None = None
        self._turn = QTimer(owner, singleShot=True, interval=0)
        self._turn.timeout.connect(self._on_next_turn)

    def begin(self) -> None:
        """Start the clock of this iteration, so that work that can't be deferred counts too."""
        if self._started is None:
            self._started = self.clock()
            self._turn.start()

    @property
    def is_spent(self) -> bool:
        """Whether the remaining work should wait for the next iteration."""
        self.begin()
        return self._started is not None and self.clock() - self._started >= self.limit_s

    def _on_next_turn(self) -> None:
        self._started = None


class StepwiseWork(QObject):
    """Runs a generator as far as the budget allows in each iteration of the event loop; to its end without a budget."""

    def __init__(self, parent: QObject, budget: StepBudget | None) -> None:
        super().__init__(parent)
        self._budget = budget
        self._work: Iterator[None] | None = None
        self._next = QTimer(self, singleShot=True, interval=0)
        self._next.timeout.connect(self._step)

    @property
    def is_active(self) -> bool:
        return self._work is not None

    def start(self, work: Callable[[], Iterator[None]]) -> None:
        """Start the generator that `work` returns, which yields where it can be interrupted.

        Do nothing while another one is running.
        """
        if self._work is None:
            self._work = work()
            self._step()

    def start_later(self, work: Callable[[], Iterator[None]]) -> None:
        """Do the same in the next iteration of the event loop."""
        if self._work is None:
            self._work = work()
            self._next.start()

    def finish(self) -> None:
        """Do the remaining work now."""
        work = self._work
        self.stop()
        for _ in work or ():
            pass

    def stop(self) -> None:
        """Discard the remaining work."""
        self._next.stop()
        self._work = None

    def _step(self) -> None:
        while self._work is not None:
            if self._budget is not None and self._budget.is_spent:
                self._next.start()
                return
            work, is_over = self._work, True  # also if it raises, so that it can be started again
            try:
                is_over = next(work, self) is self
            finally:
                if is_over and work is self._work:
                    self._work = None
