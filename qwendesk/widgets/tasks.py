"""Runs coroutines that are started from Qt slots: keeps references, reports failures, and cancels them on closing."""

import asyncio
import logging
import weakref
from collections.abc import Callable, Coroutine
from typing import Any, cast

from PySide6.QtCore import QCoreApplication, QObject, Signal

from qwendesk.core.errors import QwenDeskError
from qwendesk.core.translation import tr

_logger = logging.getLogger(__name__)


# Property of the QApplication that holds a weak reference to the Tasks of its window.
_PROPERTY = "qwendesk_tasks"


def window_tasks() -> "Tasks":
    """Return the Tasks of the window.

    Call this when a widget is built, like `app_theme()`. Raises RuntimeError if there is no Tasks yet.
    """
    app = QCoreApplication.instance()
    reference = app.property(_PROPERTY) if app is not None else None
    tasks = reference() if reference is not None else None
    if tasks is None:
        raise RuntimeError("Make a Tasks before the first widget.")
    return cast("Tasks", tasks)


class Tasks(QObject):
    """Owns the running coroutines of one window. `window_tasks()` returns the last instance that was created."""

    refused = Signal(str)
    """A request was refused; carries the sentence to show."""
    failed = Signal(str, str)
    """An unexpected error; carries the title and sentence to show. Details are in the log."""

    def __init__(self) -> None:
        super().__init__()
        self._running: set[asyncio.Task[Any]] = set()
        app = QCoreApplication.instance()
        if app is not None:
            app.setProperty(_PROPERTY, weakref.ref(self))

    @property
    def can_start(self) -> bool:
        """Whether the event loop runs. It doesn't yet while the window is built, when widgets are shown too."""
        return asyncio._get_running_loop() is not None

    def start(self, work: Coroutine[Any, Any, Any], owner: QObject | None = None) -> asyncio.Task[Any]:
        """Run `work`. It is cancelled when `owner`, the widget that needs it, is destroyed."""
        task = asyncio.get_running_loop().create_task(work)
        if owner is not None:
            connection = owner.destroyed.connect(lambda _owner: task.cancel())
            task.add_done_callback(lambda _task: QObject.disconnect(connection))
        self.own(task)
        return task

    def own(self, task: asyncio.Task[Any]) -> None:
        """Report the failure of a task that was started elsewhere, and cancel it on closing."""
        self._running.add(task)
        task.add_done_callback(self._on_done)

    def run(self, intent: Callable[[], object]) -> None:
        """Call `intent` at once. A QwenDeskError is reported like that of a coroutine."""
        try:
            intent()
        except QwenDeskError as error:
            self.refused.emit(error.sentence)

    async def close(self) -> None:
        """Cancel all running coroutines and wait until they have ended."""
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
