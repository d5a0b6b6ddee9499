"""Finds pictures in the ZIP of a ChatGPT export by the pointers in its messages. Blocks.

Names in the archive are only compared and never used as paths: pictures are written under their hashes.
"""

import re
import zipfile
from collections.abc import Iterator
from typing import Protocol

from qwendesk.chat.exchange.pictures import ImportedPictures, picture_ending
from qwendesk.chat.exchange.zip_archive import UNREADABLE, open_member
from qwendesk.core.messages import ImagePart
from qwendesk.core.units import MIB

MAX_BYTES_EACH = 64 * MIB
MAX_BYTES_IN_ALL = 512 * MIB
"""Total of one import. The pictures are in a temporary folder until the chats are added."""
NOT_THERE = "[A picture was here. The export doesn't contain it.]"
TOO_LARGE = "[A picture was here. It was too large to import.]"
NO_PICTURE = "[A picture was here. Its file in the export couldn't be read.]"
_ID = re.compile(r"[A-Za-z0-9]+[-_][A-Za-z0-9-]+")
_MAX_NAME_LENGTH = 255


class Pictures(Protocol):
    """Finds the pictures of messages."""

    def find(self, pointer: str) -> ImagePart | str:
        """Return the picture of a pointer such as "file-service://file-Ab12", or a sentence to show in its place."""


class NoPictures:
    """Finds no picture, because a JSON file without its ZIP has none."""

    def find(self, _pointer: str) -> ImagePart | str:
        return NOT_THERE


class ZipPictures:
    """Reads pictures from an open archive into `imported`, each file once."""

    def __init__(
        self,
        archive: zipfile.ZipFile,
        imported: ImportedPictures,
        max_bytes_each: int = MAX_BYTES_EACH,
        max_bytes_in_all: int = MAX_BYTES_IN_ALL,
    ) -> None:
        self._archive = archive
        self._imported = imported
        self._max_bytes_each, self._bytes_left = max_bytes_each, max_bytes_in_all
        self._members: dict[str, zipfile.ZipInfo] = {}
        for member in archive.infolist():
            for identity in _identities(member.filename.rpartition("/")[2]):
                self._members.setdefault(identity, member)
        self._found: dict[str, ImagePart | str] = {}

    def find(self, pointer: str) -> ImagePart | str:
        identity = pointer.rpartition("/")[2].partition("#")[0]
        if not _ID.fullmatch(identity):
            return NOT_THERE
        if identity not in self._found:
            self._found[identity] = self._read(identity)
        return self._found[identity]

    def _read(self, identity: str) -> ImagePart | str:
        member = self._members.get(identity)
        if member is None:
            return NOT_THERE
        limit = min(self._max_bytes_each, self._bytes_left)
        try:
            # The limit applies to what is read, because the sizes that a ZIP states may be false.
            with open_member(self._archive, member) as file:
                content = file.read(limit + 1)
        except UNREADABLE:
            return NO_PICTURE
        if len(content) > limit:
            return TOO_LARGE
        if not picture_ending(content):
            return NO_PICTURE
        image = self._imported.add(content)
        self._bytes_left -= len(content)
        return image


def _identities(name: str) -> Iterator[str]:
    """Yield the possible ids in a file name, which is an id alone, or an id, then "-", "." or "_" and more."""
    if len(name) > _MAX_NAME_LENGTH:
        return
    for end, character in enumerate(name):
        if character in "-._" and _ID.fullmatch(name, 0, end):
            yield name[:end]
    if _ID.fullmatch(name):
        yield name
