"""The terminal as the commands use it: streaming text, dimmed thoughts, Ctrl-C."""

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

_DIM, _PLAIN = "\x1b[2m", "\x1b[0m"
_CONTROL_CHARACTERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""All but tab and newline: a model must not be able to steer the terminal it is shown in."""


class Terminal:
    """Results on `out`, notes for people on `err`."""

    def __init__(self, out: TextIO, err: TextIO) -> None:
        self._out = out
        self._err = err
        self.is_closed = False
        """Nobody reads the results any more (the pipe they went to is closed); what is written is dropped."""
        self._can_dim = out.isatty() and "NO_COLOR" not in os.environ and _knows_ansi()
        for stream in (out, err):
            reconfigure = getattr(stream, "reconfigure", None)
            if reconfigure is not None:
                # Elsewhere than on a terminal the reader is a program or a file, and expects UTF-8.
                reconfigure(errors="replace", **({} if stream.isatty() else {"encoding": "utf-8"}))

    def write(self, text: str, *, dimmed: bool = False) -> None:
        """Part of the result, shown at once."""
        text = _harmless(text, self._out)
        self._put(self._out, f"{_DIM}{text}{_PLAIN}" if dimmed and self._can_dim else text)

    def write_json(self, value: Any) -> None:
        self._put(self._out, json.dumps(value, indent=2, ensure_ascii=False) + "\n")

    def note(self, text: str) -> None:
        """A line that is not part of the result."""
        self._put(self._err, _harmless(text, self._err) + "\n")

    def _put(self, stream: TextIO, text: str) -> None:
        try:
            stream.write(text)
            stream.flush()
        except BrokenPipeError:
            self.is_closed = self.is_closed or stream is self._out
            # What is left in its buffer must go somewhere when Python ends.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)


def _harmless(text: str, stream: TextIO) -> str:
    return _CONTROL_CHARACTERS.sub("\N{REPLACEMENT CHARACTER}", text) if stream.isatty() else text


def _knows_ansi() -> bool:
    return sys.platform != "win32" or "WT_SESSION" in os.environ


def open_missing_streams() -> None:
    """Opens the null device for standard streams that are None: a program of Windows without a console has none."""
    nowhere = Path(os.devnull)
    sys.stdin = sys.stdin or nowhere.open(encoding="utf-8")
    sys.stdout = sys.stdout or nowhere.open("w", encoding="utf-8")
    sys.stderr = sys.stderr or sys.stdout


class Interrupts:
    """Turns the first Ctrl-C into a request to stop; the second one ends the program as usual."""

    def __init__(self) -> None:
        self.asked = False
        self._stop: Callable[[], object] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._before: Any = None

    def __enter__(self) -> "Interrupts":
        self._before = signal.signal(signal.SIGINT, self._on_signal)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        signal.signal(signal.SIGINT, self._before)

    def on_request(self, stop: Callable[[], object]) -> None:
        """Call `stop` on the running loop when Ctrl-C is pressed."""
        self._stop = stop
        self._loop = asyncio.get_running_loop()

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        if self.asked or self._loop is None or self._stop is None:
            raise KeyboardInterrupt
        self.asked = True
        self._loop.call_soon_threadsafe(self._stop)
