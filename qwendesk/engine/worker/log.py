"""The log of llama.cpp: kept in memory for reports; its warnings and errors also go to standard error, for the app.

Install it before the first call into the engine, but after `import llama_cpp`, which installs a callback of its own.
"""

import collections
import ctypes
import sys

import llama_cpp.llama_cpp as C
from llama_cpp import mtmd_cpp

_CONTINUED = 5
"""ggml's log level for text that continues the line before."""
_WARNING = 3
_KEPT_LINES = 4000
_EXPECTED = "find_slot: non-consecutive token position"
"""A harmless warning that is logged for every image, because its tokens share positions under M-RoPE."""


class EngineLog:
    """The last 4,000 whole lines of the engine's log, oldest first."""

    def __init__(self) -> None:
        self._lines: collections.deque[str] = collections.deque(maxlen=_KEPT_LINES)
        self._open = ""
        self._open_level = 0
        self._n_lines = 0
        self._callback = C.llama_log_callback(self._take)

    def install(self) -> None:
        """Receive the logs of ggml, llama.cpp and mtmd."""
        nothing = ctypes.c_void_p(0)
        C.llama_log_set(self._callback, nothing)
        mtmd_cpp.mtmd_log_set(self._callback, nothing)
        mtmd_cpp.mtmd_helper_log_set(self._callback, nothing)

    def mark(self) -> int:
        """Return a position in the log for `since`."""
        return self._n_lines

    def since(self, mark: int) -> tuple[str, ...]:
        """Return the lines after the position `mark`, as far as they are still kept."""
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
