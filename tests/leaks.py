"""Notices what a test leaves behind: processes, threads, and exceptions that nobody handled."""

import gc
import logging
import sys
import threading
import traceback
from types import TracebackType

import psutil

_PATIENCE_S = 30.0
"""How long an ending process or thread may take to be gone. Waited only when there is one."""
_KILLED_S = 30.0
"""How long a killed process may take to be gone, which no test shortens: on a busy machine it is no matter of 0.1 s."""
_TIME_LIMIT = "pytest_timeout "
"""How the thread is named that ends a test on Windows, which has no alarm signal. It runs while fixtures are torn down.
"""
_LOOP_LOGGERS = ("asyncio", "qasync")
"""Where event loops report an exception that no one awaited, or one raised in a callback."""
_STARTS = frozenset(
    {"subprocess.Popen", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.startfile", "os.system"}
)
"""Python's own events that mean another process. Qt starts some without one: they are found at a module's end."""


class _Starts:
    """Whether a process may have been started since the last listing: listing all takes long, most tests start none."""

    def __init__(self) -> None:
        self.seen = False
        sys.addaudithook(self._notice)

    def _notice(self, event: str, _arguments: tuple[object, ...]) -> None:
        if event in _STARTS:
            self.seen = True


_starts = _Starts()


class Known:
    """The processes and threads that nobody is blamed for: at first those that run when it is made."""

    def __init__(self) -> None:
        self.processes: set[psutil.Process] = set()
        self.threads: set[threading.Thread] = set()
        self.add_running()

    def add_running(self) -> None:
        """Add everything that runs now."""
        _starts.seen = False
        self.processes |= _children()
        self.threads |= set(threading.enumerate())

    def add_new(self) -> None:
        """As `add_running`, without listing processes where Python started none since the last listing."""
        if _starts.seen:
            self.add_running()
        self.threads |= set(threading.enumerate())

    def add(self, now: "Known", before: "Known") -> None:
        """Add what came between two others."""
        self.processes |= now.processes - before.processes
        self.threads |= now.threads - before.threads


def _children() -> set[psutil.Process]:
    return set(psutil.Process().children(recursive=True))


class _ErrorRecords(logging.Handler):
    """Keeps what was logged as an error."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append(logging.Formatter("%(name)s: %(message)s").format(record))


class Watch:
    """Starts to watch when made; `problems()` stops it and says what was left behind, one entry each."""

    def __init__(self, known: Known | None = None) -> None:
        """`known` is given where many watches follow each other, and spares each of them a listing of processes."""
        self._known = known or Known()
        self._exceptions: list[str] = []
        self._hook_before = sys.excepthook
        # PySide hands an exception in a slot or in an overridden event handler to sys.excepthook and goes on.
        sys.excepthook = self._unhandled
        self._records = _ErrorRecords()
        for name in _LOOP_LOGGERS:
            logging.getLogger(name).addHandler(self._records)

    def problems(self, *, list_processes: bool = False) -> list[str]:
        """Also ends the processes it reports, so that one test's leak does not fail the next one.

        Processes are listed if Python started one, or if asked for.
        """
        # A task that failed and was never awaited reports itself when it is collected: make that now, not during
        # another test.
        gc.collect()
        sys.excepthook = self._hook_before
        for name in _LOOP_LOGGERS:
            logging.getLogger(name).removeHandler(self._records)
        return [
            *(f"process: {line}" for line in self._leaked_processes(is_sure=list_processes)),
            *(f"thread: {name}" for name in self._leaked_threads()),
            *(f"unhandled exception: {text}" for text in self._exceptions),
            *(f"event loop: {text}" for text in self._records.found),
        ]

    def _unhandled(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        self._exceptions.append("".join(traceback.format_exception(kind, error, trace)))

    def _leaked_processes(self, *, is_sure: bool) -> list[str]:
        if not is_sure and not _starts.seen:
            return []
        _starts.seen = False
        started = _children() - self._known.processes
        _, alive = psutil.wait_procs(list(started), timeout=_PATIENCE_S)
        lines = [_described(process) for process in alive]
        for process in alive:
            process.kill()
        psutil.wait_procs(alive, timeout=_KILLED_S)
        return lines

    def _leaked_threads(self) -> list[str]:
        known = self._known.threads
        started = [
            thread
            for thread in threading.enumerate()
            if thread not in known and not thread.daemon and not thread.name.startswith(_TIME_LIMIT)
        ]
        for thread in started:
            thread.join(_PATIENCE_S)
        return [thread.name for thread in started if thread.is_alive()]


def _described(process: psutil.Process) -> str:
    with process.oneshot():
        try:
            return f"{process.pid} {' '.join(process.cmdline()) or process.name()}"
        except psutil.NoSuchProcess:
            return f"{process.pid} (it ended while it was looked at)"
