"""Notices what a test leaves behind: processes, threads, and exceptions that nobody handled."""

import gc
import logging
import sys
import threading
import traceback
from types import TracebackType

import psutil

_PATIENCE_S = 5.0
"""How long an ending process or thread may take to be gone. Waited only when there is one."""
_LOOP_LOGGERS = ("asyncio", "qasync")
"""Where event loops report an exception that no one awaited, or one raised in a callback."""


class _ErrorRecords(logging.Handler):
    """Keeps what was logged as an error."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append(logging.Formatter("%(name)s: %(message)s").format(record))


class Watch:
    """Starts to watch when made; `problems()` stops it and says what was left behind, one entry each."""

    def __init__(self) -> None:
        self._children = set(psutil.Process().children(recursive=True))
        self._threads = set(threading.enumerate())
        self._exceptions: list[str] = []
        self._hook_before = sys.excepthook
        # PySide hands an exception in a slot or in an overridden event handler to sys.excepthook and goes on.
        sys.excepthook = self._unhandled
        self._records = _ErrorRecords()
        for name in _LOOP_LOGGERS:
            logging.getLogger(name).addHandler(self._records)

    def problems(self) -> list[str]:
        """Also ends the processes it reports, so that one test's leak does not fail the next one."""
        # A task that failed and was never awaited reports itself when it is collected: make that now, not during
        # another test.
        gc.collect()
        sys.excepthook = self._hook_before
        for name in _LOOP_LOGGERS:
            logging.getLogger(name).removeHandler(self._records)
        return [
            *(f"process: {line}" for line in self._leaked_processes()),
            *(f"thread: {name}" for name in self._leaked_threads()),
            *(f"unhandled exception: {text}" for text in self._exceptions),
            *(f"event loop: {text}" for text in self._records.found),
        ]

    def _unhandled(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        self._exceptions.append("".join(traceback.format_exception(kind, error, trace)))

    def _leaked_processes(self) -> list[str]:
        started = set(psutil.Process().children(recursive=True)) - self._children
        _, alive = psutil.wait_procs(list(started), timeout=_PATIENCE_S)
        lines = [_described(process) for process in alive]
        for process in alive:
            process.kill()
        psutil.wait_procs(alive, timeout=_PATIENCE_S)
        return lines

    def _leaked_threads(self) -> list[str]:
        started = [thread for thread in threading.enumerate() if thread not in self._threads and not thread.daemon]
        for thread in started:
            thread.join(_PATIENCE_S)
        return [thread.name for thread in started if thread.is_alive()]


def _described(process: psutil.Process) -> str:
    with process.oneshot():
        try:
            return f"{process.pid} {' '.join(process.cmdline()) or process.name()}"
        except psutil.NoSuchProcess:
            return f"{process.pid} (it ended while it was looked at)"
