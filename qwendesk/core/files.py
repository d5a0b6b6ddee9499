"""Small files of ours, written so that a crash or power loss leaves the old or the new one, never half of it."""

import os
import threading
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Replaces the file at `path`, making its folder if need be. Raises OSError; nothing is left behind then."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}.new")
    try:
        with fresh.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise


def set_aside(path: Path) -> Path:
    """Gives a file that cannot be used another name, so that a new one can have its own. Returns where it lies now.

    One that was set aside before is replaced. Raises OSError.
    """
    return path.replace(path.with_name(f"{path.name}.unusable"))
