"""Output to the terminal or a pipe, and Ctrl+C."""

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, TextIO

from qwendesk.core.errors import BadOption, QwenDeskError
from qwendesk.core.processes import is_closed_pipe
from qwendesk.core.translation import tr

_DIM, _PLAIN = "\x1b[2m", "\x1b[0m"
# All control characters but tab and newline, because a model's answer must not control the terminal.
_CONTROL_CHARACTERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_LATE_CONTROL_CHARACTERS = re.compile(r"[\x7f-\x9f]")


# How many characters of a bad argument an error message repeats.
_MOST_SHOWN = 60


def check_text(text: str, what: str) -> None:
    """Raise BadOption if `text` contains lone surrogates, which neither the engine nor JSON can encode.

    Python decodes arguments and file names that are not UTF-8 to lone surrogates. `what` starts the sentence.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        shown = text.encode(errors="backslashreplace").decode()[:_MOST_SHOWN]
        raise BadOption(
            tr("Bad argument"),
            tr(
                '{0} isn\'t valid UTF-8: "{1}". Use UTF-8 in your terminal or script, and rename files and folders '
                "whose names aren't UTF-8.",
                what,
                shown,
            ),
        ) from None


class Terminal:
    """Writes results to `out` and notes to `err`."""

    def __init__(self, out: TextIO, err: TextIO) -> None:
        self._out = out
        self._err = err
        self.is_closed = False
        """True once the pipe that reads the results is closed; further output is dropped."""
        self._can_dim = out.isatty() and "NO_COLOR" not in os.environ and _knows_ansi()
        for stream in (out, err):
            reconfigure = getattr(stream, "reconfigure", None)
            if reconfigure is not None:
                # Programs and files expect UTF-8, whatever the terminal's encoding is.
                reconfigure(errors="replace", **({} if stream.isatty() else {"encoding": "utf-8"}))

    def write(self, text: str, *, dimmed: bool = False) -> None:
        """Write part of the result and flush it."""
        text = _without_control_characters(text, self._out)
        self._put(self._out, f"{_DIM}{text}{_PLAIN}" if dimmed and self._can_dim else text)

    def write_json(self, value: Any) -> None:
        text = json.dumps(value, indent=2, ensure_ascii=False)
        # JSON lets these through as they are, and a terminal obeys some of them.
        self._put(self._out, _LATE_CONTROL_CHARACTERS.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n")

    def note(self, text: str) -> None:
        """Write a line that is not part of the result."""
        self._put(self._err, _without_control_characters(text, self._err) + "\n")

    def _put(self, stream: TextIO, text: str) -> None:
        try:
            stream.write(text)
            stream.flush()
        except OSError as error:
            if not is_closed_pipe(error):
                raise
            self.is_closed = self.is_closed or stream is self._out
            # Python flushes the stream at exit and must not fail then.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)


def _without_control_characters(text: str, stream: TextIO) -> str:
    return _CONTROL_CHARACTERS.sub("\N{REPLACEMENT CHARACTER}", text) if stream.isatty() else text


def _knows_ansi() -> bool:
    return sys.platform != "win32" or "WT_SESSION" in os.environ


def open_missing_streams() -> None:
    """Replace standard streams that are None, as in a Windows program without a console, with the null device."""
    nowhere = Path(os.devnull)
    sys.stdin = sys.stdin or nowhere.open(encoding="utf-8")
    sys.stdout = sys.stdout or nowhere.open("w", encoding="utf-8")
    sys.stderr = sys.stderr or sys.stdout


def is_agreed(question: str, terminal: Terminal) -> bool:
    """Ask on the terminal and return whether the user says yes. Raise QwenDeskError if there is no terminal."""
    if not sys.stdin.isatty():
        terminal.note(question)
        raise QwenDeskError(tr("No terminal to ask on"), tr("Add --yes to go on without confirmation."))
    terminal.note(question)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


class Interrupts:
    """Turns the first Ctrl+C into a request to stop; the second one raises KeyboardInterrupt."""

    def __init__(self) -> None:
        self.is_requested = False
        self._stop: Callable[[], object] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._previous_handler: Any = None

    def __enter__(self) -> "Interrupts":
        self._previous_handler = signal.signal(signal.SIGINT, self._on_signal)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        signal.signal(signal.SIGINT, self._previous_handler)

    def on_request(self, stop: Callable[[], object]) -> None:
        """Call `stop` on the running loop when the user presses Ctrl+C."""
        self._stop = stop
        self._loop = asyncio.get_running_loop()

    def stop_is_over(self) -> None:
        """Let the next Ctrl+C raise KeyboardInterrupt: there is nothing left to stop."""
        self._stop = None

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        if self.is_requested or self._loop is None or self._stop is None:
            raise KeyboardInterrupt
        self.is_requested = True
        self._loop.call_soon_threadsafe(self._stop)
