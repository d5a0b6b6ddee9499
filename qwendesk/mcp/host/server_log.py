"""ServerLog: the last lines of a server's standard error."""

import collections
import os
import threading
import time
from typing import TextIO

_MOST_LINES, _LONGEST_LINE = 20, 500
_PAUSE_S = 0.05
"""After each 64 KiB, so that a server that writes without end waits instead of taking a processor."""


class ServerLog:
    """Reads what is written to `file` on a thread."""

    def __init__(self) -> None:
        self._reading, writing = os.pipe()
        self.file: TextIO = os.fdopen(writing, "w", encoding="utf-8")
        """The server's standard error."""
        self._lines: collections.deque[str] = collections.deque(maxlen=_MOST_LINES)
        threading.Thread(target=self._read, name="server log", daemon=True).start()

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(self._lines)

    def _read(self) -> None:
        rest = b""
        while chunk := os.read(self._reading, 64 * 1024):
            *lines, rest = (rest + chunk).split(b"\n")
            self._lines.extend(line for line in map(_shown, lines[-_MOST_LINES:]) if line)
            rest = rest[:_LONGEST_LINE]
            if len(chunk) == 64 * 1024:
                time.sleep(_PAUSE_S)


def _shown(line: bytes) -> str:
    """Return a line without control characters."""
    text = line[:_LONGEST_LINE].decode("utf-8", "replace").rstrip()
    return "".join(character for character in text if character.isprintable())
