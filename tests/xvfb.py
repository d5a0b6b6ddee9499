"""An X server without a screen, for the tests that open a real window."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def running_xvfb(width: int, height: int) -> Iterator[str]:
    """Starts Xvfb on a free display, gives its name (":5"), and ends it. Fails with a sentence if it is missing."""
    program = shutil.which("Xvfb")
    if program is None:
        raise FileNotFoundError("Xvfb is not installed; `make test` installs it on Debian, or says how")
    read_end, write_end = os.pipe()
    # With -displayfd the server picks a free number itself, and writes it once it accepts connections.
    command = [program, "-displayfd", str(write_end), "-screen", "0", f"{width}x{height}x24", "-nolisten", "tcp"]
    server = subprocess.Popen(command, pass_fds=(write_end,), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.close(write_end)
    try:
        with os.fdopen(read_end) as pipe:
            number = pipe.readline().strip()
        if not number:
            raise RuntimeError(f"Xvfb ended at once with exit code {server.wait()}")
        yield f":{number}"
    finally:
        server.terminate()
        try:
            server.wait(60)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
