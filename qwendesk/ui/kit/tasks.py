"""Coroutines started from Qt slots: kept alive, reported when they fail, ended with the window."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from PySide6.QtCore import QObject, Signal

from qwendesk.core.errors import QwenDeskError
from qwendesk.ui.kit.text import tr

_logger = logging.getLogger(__name__)


class Tasks(QObject):
    """Owns the running coroutines of one window."""

    refused = Signal(str)
    """A request that cannot be served as it stands: a sentence for people."""
    failed = Signal(str, str)
    """Something broke: title and sentence for people; the log has the rest."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._running: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, Any], owner: QObject | None = None) -> asyncio.Task[Any]:
        """Run `work`; it is cancelled when `owner`, the widget it works for, is destroyed."""
        task = asyncio.get_running_loop().create_task(work)
        if owner is not None:
            owner.destroyed.connect(lambda _owner: task.cancel())
        self._running.add(task)
        task.add_done_callback(self._on_done)
        return task

    def run(self, intent: Callable[[], object]) -> None:
        """Do at once what needs no waiting; a request that cannot be served is reported like a coroutine's."""
        try:
            intent()
        except QwenDeskError as error:
            self.refused.emit(error.sentence)

    async def close(self) -> None:
        """Cancel what still runs and wait until it ended."""
        running = [task for task in self._running if task is not asyncio.current_task()]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def _on_done(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if task.cancelled():
            return
        error = task.exception()
        if isinstance(error, QwenDeskError):
            self.refused.emit(error.sentence)
        elif error is not None:
            _logger.error("A task of the window failed", exc_info=error)
            self.failed.emit(tr("Something went wrong"), f"{type(error).__name__}: {error}")
