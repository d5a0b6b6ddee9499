"""How much of the model's file had to be read from the drive again, because it wasn't in memory."""

import contextlib
from pathlib import Path

_IO = Path("/proc/self/io")


def drive_bytes() -> int:
    """Return the bytes that were read from drives for this process so far; 0 where the system doesn't tell.

    Linux counts the pages of a mapped file, too. Windows and macOS only count what a program reads by itself.
    """
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(_IO.read_text("ascii").partition("read_bytes:")[2].split()[0])
    return 0
