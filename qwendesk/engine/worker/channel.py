"""Sends events from the worker to the app, as lines on a private copy of the original standard output."""

import os
import sys
import threading

from qwendesk.engine.protocol import Event
from qwendesk.engine.protocol_lines import encode_line


class Channel:
    """Sends whole lines; thread-safe. The worker exits when the app is gone."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()

    @classmethod
    def take_over_stdout(cls) -> "Channel":
        """Reserve standard output for events, and redirect descriptor 1 to standard error for all other code."""
        sys.stdout.flush()
        private = os.dup(1)
        os.dup2(2, 1)
        if sys.platform == "win32":
            import msvcrt

            msvcrt.setmode(private, os.O_BINARY)
        return cls(private)

    def send(self, event: Event) -> None:
        line = memoryview(encode_line(event))
        with self._lock:
            while line:
                try:
                    line = line[os.write(self._descriptor, line) :]
                except OSError:
                    os._exit(0)  # nobody reads the pipe: the app has exited without a Shutdown

    def close(self) -> None:
        os.close(self._descriptor)
