"""Where the app's errors go: a log file of this user, and a notice in the window."""

import asyncio
import logging
import signal
import sys
from collections.abc import Callable
from io import TextIOWrapper
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from qwendesk.core.paths import log_folder
from qwendesk.core.permissions import make_folder, touch
from qwendesk.core.translation import tr

if TYPE_CHECKING:
    from qwendesk.app.window.main_window import MainWindow

_logger = logging.getLogger(__name__)


def log_to_file() -> None:
    """Write warnings and errors of all loggers to a log file that never contains message texts."""
    try:
        make_folder(log_folder())
        handler: logging.Handler = LogFile(log_folder() / "window.log", encoding="utf-8", delay=True)
    except OSError:
        handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])


def report_errors(window: "MainWindow", stop: Callable[[], None]) -> Callable[[], None]:
    """Show uncaught exceptions in the window, and call `stop` on SIGINT or SIGTERM. Return a function to undo this."""
    loop = asyncio.get_running_loop()
    previous_hook = sys.excepthook

    def report(error: BaseException) -> None:
        _logger.error("Uncaught exception", exc_info=error)
        window.report(tr("Something went wrong"), f"{type(error).__name__}: {error}")

    def hook(_kind: type[BaseException], error: BaseException, _trace: TracebackType | None) -> None:
        if isinstance(error, KeyboardInterrupt):
            stop()
        else:
            report(error)

    def on_loop_error(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        report(context.get("exception") or RuntimeError(context["message"]))

    sys.excepthook = hook
    loop.set_exception_handler(on_loop_error)
    signals = (signal.SIGINT, signal.SIGTERM) if sys.platform != "win32" else ()
    for number in signals:
        loop.add_signal_handler(number, stop)

    def restore() -> None:
        sys.excepthook = previous_hook
        loop.set_exception_handler(None)
        for number in signals:
            loop.remove_signal_handler(number)

    return restore


class LogFile(logging.FileHandler):
    """A log file that only this user can read."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line. logging itself would let the errors of opening the file end the app."""
        try:
            super().emit(record)
        except OSError:
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name is logging's
        """Print the line where there is a console, without a traceback: the disk is full, or the folder read-only."""
        if sys.stderr is not None:
            print(self.format(record), file=sys.stderr)

    def _open(self) -> TextIOWrapper:
        touch(Path(self.baseFilename))
        return super()._open()
