"""The worker's way to the app: events as lines on a private copy of what was standard output."""

import os
import sys
import threading

from qwendesk.engine.protocol import Event, encode_line


class Channel:
    """Sends whole lines from any thread. When the app is gone, so is the worker."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lock = threading.Lock()

    @classmethod
    def take_over_stdout(cls) -> "Channel":
        """Keep standard output for events, and point descriptor 1 at standard error for everybody else."""
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
                    os._exit(0)  # nobody reads: the app has ended without a word

    def close(self) -> None:
        os.close(self._descriptor)
