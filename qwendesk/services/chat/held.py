"""Pictures of a chat that is never written: they are in memory only, and go with the chat."""

import hashlib
from pathlib import Path

_FOLDER = Path("(in memory)")
"""No such folder is ever made: the paths only name what is held."""


class HeldPictures:
    """Bytes of picture files by a path that stands for them. May be used from any thread."""

    def __init__(self) -> None:
        self._files: dict[Path, bytes] = {}
        self._copies: dict[tuple[str, int], bytes] = {}

    def hold(self, data: bytes, name: str) -> Path:
        """The path by which these bytes go from now on; `name` ends it and need not be unique."""
        path = _FOLDER / hashlib.sha256(data).hexdigest()[:16] / name
        self._files[path] = data
        return path

    def get(self, path: Path) -> bytes | None:
        """The bytes that are held under this path; None for one that stands for a file."""
        return self._files.get(path)

    def copy_of(self, sha256: str, longest_side: int) -> bytes | None:
        """A smaller copy that was made before."""
        return self._copies.get((sha256, longest_side))

    def keep_copy(self, sha256: str, longest_side: int, data: bytes) -> None:
        self._copies[(sha256, longest_side)] = data

    def forget(self) -> None:
        """Another chat is open: nothing is held any more."""
        self._files.clear()
        self._copies.clear()
