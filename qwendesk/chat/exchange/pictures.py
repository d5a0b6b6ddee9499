"""The pictures of exported and imported chats."""

import base64
import hashlib
from pathlib import Path

from qwendesk.chat.exchange.values import MAX_PICTURE_BYTES
from qwendesk.core.input_files import read_bounded
from qwendesk.core.messages import ImagePart


class ImportedPictures:
    """The pictures of an import, as files named by their hash in `folder`, from where the store copies them.

    The caller deletes the folder afterwards.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._paths: dict[str, str] = {}

    def add(self, content: bytes) -> ImagePart:
        """Write a picture and return the part for it. Raises OSError."""
        sha256 = hashlib.sha256(content).hexdigest()
        if sha256 not in self._paths:
            path = self._folder / (sha256 + picture_ending(content))
            path.write_bytes(content)
            self._paths[sha256] = str(path)
        return ImagePart(self._paths[sha256], sha256)

    def __contains__(self, sha256: str) -> bool:
        return sha256 in self._paths

    def path(self, sha256: str) -> str:
        """Return the path of a picture; "" if the import doesn't contain it."""
        return self._paths.get(sha256, "")


def picture_bytes(image: ImagePart) -> bytes:
    """Return the bytes of a picture; b"" if its file is missing or too large. Blocks."""
    try:
        return read_bounded(Path(image.path), MAX_PICTURE_BYTES) if image.path else b""
    except OSError:
        return b""


_MARKS = (
    (b"\x89PNG", ".png"), (b"\xff\xd8\xff", ".jpg"), (b"GIF8", ".gif"), (b"BM", ".bmp"), (b"RIFF", ".webp"),
    (b"II*\x00", ".tiff"), (b"MM\x00*", ".tiff"),
)  # fmt: skip


def picture_ending(content: bytes) -> str:
    """Return the file name ending for a picture, by its first bytes; "" if it isn't a picture."""
    if content[4:12] in (b"ftypavif", b"ftypavis"):
        return ".avif"
    return next((ending for mark, ending in _MARKS if content.startswith(mark)), "")


# What browsers draw, as it is called in media types.
_DRAWN = {".png": "png", ".jpg": "jpeg", ".gif": "gif", ".bmp": "bmp", ".webp": "webp", ".avif": "avif"}


def data_url(content: bytes) -> str:
    """Return a `data:` URL for a picture in a web page; "" if browsers can't draw it."""
    kind = _DRAWN.get(picture_ending(content), "")
    if kind == "webp" and content[8:12] != b"WEBP":
        return ""
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}" if kind else ""
