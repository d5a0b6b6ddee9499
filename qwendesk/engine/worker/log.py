"""llama.cpp's own log: kept in memory for reports, and written to standard error for the app to see.

It must be installed before the first call into the engine, and again after `import llama_cpp`, whose
package installs a callback of its own.
"""

import collections
import ctypes
import sys

import llama_cpp.llama_cpp as C
from llama_cpp import mtmd_cpp

_CONTINUED = 5
"""ggml's log level for "the rest of the line before"."""
_WARNING = 3
_KEPT_LINES = 4000
_EXPECTED = "find_slot: non-consecutive token position"
"""Said for every picture: under M-RoPE its tokens share positions."""


class EngineLog:
    """Whole lines of the engine's log, oldest first, the last 4,000 of them."""

    def __init__(self) -> None:
        self._lines: collections.deque[str] = collections.deque(maxlen=_KEPT_LINES)
        self._open = ""
        self._open_level = 0
        self._n_lines = 0
        self._callback = C.llama_log_callback(self._take)

    def install(self) -> None:
        """Route the logs of ggml, llama.cpp and mtmd here."""
        nothing = ctypes.c_void_p(0)
        C.llama_log_set(self._callback, nothing)
        mtmd_cpp.mtmd_log_set(self._callback, nothing)
        mtmd_cpp.mtmd_helper_log_set(self._callback, nothing)

    def mark(self) -> int:
        """A place in the log to read from later."""
        return self._n_lines

    def since(self, mark: int) -> tuple[str, ...]:
        """The lines written after `mark` (those still kept)."""
        wanted = self._n_lines - mark
        return tuple(self._lines)[-wanted:] if wanted > 0 else ()

    def _take(self, level: int, text: bytes, _user_data: object) -> None:
        if level != _CONTINUED:
            self._open_level = level
        self._open += text.decode("utf-8", "replace")
        *whole, self._open = self._open.split("\n")
        for line in whole:
            self._lines.append(line)
            self._n_lines += 1
            if self._open_level >= _WARNING and not line.startswith(_EXPECTED):
                print(line, file=sys.stderr, flush=True)
