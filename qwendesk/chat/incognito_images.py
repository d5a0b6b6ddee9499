"""Images of an incognito chat, which exist in memory only and are cleared with the chat."""

import hashlib
from pathlib import Path

from qwendesk.core.messages import ImagePart

_FOLDER = Path("(in memory)")
"""This folder is never created. The paths are only names of images."""


class IncognitoImages:
    """Bytes of image files, each stored under a path that serves as its name. Thread-safe."""

    def __init__(self) -> None:
        self._files: dict[Path, bytes] = {}
        self._scaled: dict[tuple[str, int], ImagePart] = {}

    def add(self, data: bytes, name: str) -> ImagePart:
        """Store the content of an image file, and return a part for it whose path ends in `name`."""
        sha256 = hashlib.sha256(data).hexdigest()
        path = _FOLDER / sha256[:16] / name
        self._files[path] = data
        return ImagePart(str(path), sha256)

    def keep(self, image: ImagePart) -> None:
        """Store a part with its bytes under its own path."""
        self._files[Path(image.path)] = image.data

    def get(self, path: Path) -> bytes | None:
        """Return the image stored under this path; None if the path is that of a file."""
        return self._files.get(path)

    def scaled(self, sha256: str, longest_side: int) -> ImagePart | None:
        """Return the stored copy of this size, with its bytes; None if there is none."""
        return self._scaled.get((sha256, longest_side))

    def add_scaled(self, sha256: str, longest_side: int, path: str, data: bytes) -> ImagePart:
        """Store a smaller copy of the image with this hash, and return it as a part with its bytes."""
        copy = ImagePart(path, hashlib.sha256(data).hexdigest(), data=data)
        self._scaled[(sha256, longest_side)] = copy
        return copy

    def clear(self) -> None:
        self._files.clear()
        self._scaled.clear()
