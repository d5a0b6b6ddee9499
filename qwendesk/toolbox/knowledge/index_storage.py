"""Where the indexes of folders lie, and how much they may take: those that were not used for long go first."""

import contextlib
import hashlib
import os
import time
from pathlib import Path
from typing import Final

from qwendesk.core.units import GIB
from qwendesk.toolbox.knowledge.index_file import delete_index

FOLDER: Final = "folder-index"
"""Name of their folder in the app's cache."""
BUDGET_BYTES: Final = 2 * GIB
_MOST_AGE_S: Final = 60 * 24 * 3600.0
_IN_USE_S: Final = 3600.0
"""An index that was used this recently may be that of the open chat."""
_ENDING = ".db"


def path_of(place: Path, folder: Path) -> Path:
    """Return the path of a folder's index, and note that it is used now. Blocks."""
    name = hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:32]
    path = place / f"{name}{_ENDING}"
    with contextlib.suppress(OSError):  # there is none yet
        os.utime(path)
    return path


def make_room(place: Path, budget_bytes: int = BUDGET_BYTES, now_s: float | None = None) -> None:
    """Delete indexes that were not used for two months, and the oldest ones while all together exceed the budget.

    What another process uses is kept where the system does not allow to delete it. Blocks.
    """
    now_s = time.time() if now_s is None else now_s
    found: list[tuple[float, int, Path]] = []
    with contextlib.suppress(OSError):
        for path in place.iterdir():
            if path.suffix == _ENDING:
                with contextlib.suppress(OSError):
                    state = path.stat()
                    found.append((state.st_mtime, state.st_size, path))
    left_bytes = sum(size_bytes for _, size_bytes, _ in found)
    for used_s, size_bytes, path in sorted(found):
        age_s = now_s - used_s
        if age_s > _MOST_AGE_S or (left_bytes > budget_bytes and age_s > _IN_USE_S):
            with contextlib.suppress(OSError):
                delete_index(path)
                left_bytes -= size_bytes
