"""The pictures in the ZIP that ChatGPT sends, by the pointers that its messages have. Blocking.

A name in the archive is only looked for and never becomes a place on the disk: what is read goes by its hash.
"""

import hashlib
import re
import zipfile
import zlib
from typing import Protocol

from qwendesk.core.messages import ImagePart
from qwendesk.services.chat.exchange.values import picture_ending

MOST_BYTES_EACH = 64 << 20
MOST_BYTES_IN_ALL = 512 << 20
"""They are in memory until the chats are added."""
NOT_THERE = "[A picture was here. The export does not hold it.]"
TOO_LARGE = "[A picture was here. It is too large to be imported with the others.]"
NO_PICTURE = "[A picture was here. Its file in the export cannot be read.]"
UNREADABLE = (OSError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError)
"""What zipfile raises for archives that are damaged, encrypted, or packed in ways it does not know."""
_ID = re.compile(r"[A-Za-z0-9]+[-_][A-Za-z0-9-]+")


class Pictures(Protocol):
    """What messages ask for their pictures."""

    def find(self, pointer: str) -> ImagePart | str:
        """The picture of a pointer such as "file-service://file-Ab12", or the sentence that stands in its place."""


class NoPictures:
    """For the bare list of chats, without the ZIP around it."""

    def find(self, _pointer: str) -> ImagePart | str:
        return NOT_THERE


class ZipPictures:
    """Reads from an open archive, each file once. `files` are the bytes by their hash."""

    def __init__(
        self,
        archive: zipfile.ZipFile,
        most_each: int = MOST_BYTES_EACH,
        most_in_all: int = MOST_BYTES_IN_ALL,
    ) -> None:
        self.files: dict[str, bytes] = {}
        self._archive = archive
        self._most_each, self._room = most_each, most_in_all
        self._names = [(name.rpartition("/")[2], name) for name in archive.namelist()]
        self._found: dict[str, ImagePart | str] = {}

    def find(self, pointer: str) -> ImagePart | str:
        identity = pointer.rpartition("/")[2].partition("#")[0]
        if not _ID.fullmatch(identity):
            return NOT_THERE
        if identity not in self._found:
            self._found[identity] = self._read(identity)
        return self._found[identity]

    def _read(self, identity: str) -> ImagePart | str:
        """Files are called by the id alone, or by it with "-" or "." and the name that the person's file had."""
        ends = ("", "-", ".", "_")
        name = next((full for base, full in self._names if base[: len(identity)] == identity
                     and base[len(identity) : len(identity) + 1] in ends), "")  # fmt: skip
        if not name:
            return NOT_THERE
        limit = min(self._most_each, self._room)
        try:
            # Only what is read counts: what a ZIP says of its sizes may be a lie.
            with self._archive.open(name) as member:
                content = member.read(limit + 1)
        except UNREADABLE:
            return NO_PICTURE
        if len(content) > limit:
            return TOO_LARGE
        if not picture_ending(content):
            return NO_PICTURE
        sha256 = hashlib.sha256(content).hexdigest()
        if sha256 not in self.files:
            self.files[sha256] = content
            self._room -= len(content)
        return ImagePart("", sha256)
