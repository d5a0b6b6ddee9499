"""The engine's self-test for widgets: runs on a worker of its own, so the loaded model stays where it is."""

from collections.abc import Awaitable, Callable

from PySide6.QtCore import QObject, Signal

from qwendesk.services.engine.testing import Diagnosis
from qwendesk.ui.kit.tasks import Tasks


class TestingBridge(QObject):
    """Runs one test at a time."""

    __test__ = False
    """Not a test of ours, whatever its name begins with."""
    changed = Signal()
    """`running` or `diagnosis` is another one now."""

    def __init__(self, examine: Callable[[], Awaitable[Diagnosis]], tasks: Tasks) -> None:
        super().__init__()
        self._examine, self._tasks = examine, tasks
        self._running = False
        self._diagnosis: Diagnosis | None = None

    @property
    def running(self) -> bool:
        return self._running

    @property
    def diagnosis(self) -> Diagnosis | None:
        """The last test's; None before the first."""
        return self._diagnosis

    def run(self) -> None:
        if not self._running:
            self._running = True
            self.changed.emit()
            self._tasks.start(self._run())

    async def _run(self) -> None:
        try:
            self._diagnosis = await self._examine()
        finally:
            self._running = False
            self.changed.emit()
