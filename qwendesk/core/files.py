"""Small files of ours: written so that a crash or power loss leaves the old or the new one, and read with care."""

import os
import sys
import threading
from pathlib import Path
from time import sleep
from typing import TypeVar

import msgspec

T = TypeVar("T")

_LOCKS_OPEN_FILES = sys.platform == "win32"
"""Only Windows refuses to rename, replace or delete what somebody has open."""
_USER_MAPPED_FILE = 1224
"""What Windows says of a file whose content is mapped into memory, as a loaded model's is."""
_PAUSE_S = 0.1
_PATIENCE_S = 0.5
"""Short, because small files are written on the window's thread; what runs on another may wait longer."""


def write_whole(path: Path, content: bytes) -> None:
    """Replaces the file at `path`, making its folder if need be. Raises OSError; nothing is left behind then."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}.new")
    try:
        with fresh.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        replace(fresh, path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise


def replace(source: Path, target: Path, patience_s: float = _PATIENCE_S) -> Path:
    """Gives a file or folder another name, in place of a file that has it. Returns `target`. Raises OSError.

    On Windows, where a virus scanner or an indexer often opens what was just written, it is tried for `patience_s`.
    """
    for _ in range(round(patience_s / _PAUSE_S)):
        try:
            return source.replace(target)
        except OSError as error:
            if not is_in_use(error, target):
                raise
            sleep(_PAUSE_S)
    return source.replace(target)


def is_in_use(error: OSError, path: Path) -> bool:
    """Whether a refusal of the system may mean that some program has the file at `path` open.

    Never so but on Windows, nor for a file that is read-only.
    """
    is_mapped = getattr(error, "winerror", None) == _USER_MAPPED_FILE
    is_locked = isinstance(error, PermissionError) and (not path.exists() or os.access(path, os.W_OK))
    return _LOCKS_OPEN_FILES and (is_mapped or is_locked)


def set_aside(path: Path) -> Path:
    """Gives a file that cannot be used another name, so that a new one can have its own. Returns where it lies now.

    One that was set aside before is replaced. Raises OSError.
    """
    return replace(path, path.with_name(f"{path.name}.unusable"))


def decode_json(content: bytes | bytearray, kind: type[T]) -> T:
    """The value of that kind that `content` holds. Raises msgspec.DecodeError, whatever is wrong with it.

    msgspec's own decoder has an exception each for bytes that are no UTF-8 and for what is nested too deeply.
    """
    try:
        return msgspec.json.decode(content, type=kind)
    except (UnicodeDecodeError, RecursionError) as error:
        raise msgspec.DecodeError(str(error)) from error
