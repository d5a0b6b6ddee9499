"""The pictures of messages: in the ZIP of a ChatGPT export, read within limits, or in a JSON file itself. Blocks.

Names in the archive are only compared and never used as paths: pictures are written under their hashes.
"""

import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from io import SEEK_END
from typing import BinaryIO, Protocol

from qwendesk.chat.exchange.pictures import ImportedPictures, picture_ending
from qwendesk.core.json_decoding import decode_base64
from qwendesk.core.messages import ImagePart
from qwendesk.core.translation import tr
from qwendesk.core.units import MIB

# Exceptions of zipfile for archives that are damaged, encrypted, or compressed in an unknown way.
UNREADABLE = (OSError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError)
# End of central directory record (APPNOTE.TXT of PKWARE, 4.3.16), which lies before a comment of up to 64 KiB.
_END = struct.Struct("<4s4H2LH")
_LOCATOR = struct.Struct("<4sLQL")
# ZIP64 record of large archives (4.3.14). The locator before the other record points to it.
_END_64 = struct.Struct("<4sQ2H2L4Q")


def archive_directory_bytes(file: BinaryIO) -> int:
    """Return the size that the archive claims for its list of files; 0 if it claims none. Raises OSError.

    Python's zipfile reads this list as a whole before anything can be checked.
    """
    file_bytes = file.seek(0, SEEK_END)
    begin = max(0, file_bytes - _END.size - 0xFFFF)
    file.seek(begin)
    tail = file.read()
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) - at < _END.size:
        return 0
    size = int(_END.unpack_from(tail, at)[5])
    file.seek(max(0, begin + at - _LOCATOR.size))
    locator = file.read(_LOCATOR.size)
    if len(locator) < _LOCATOR.size or not locator.startswith(b"PK\x06\x07"):
        return size
    # Like zipfile, expect the record right before its locator, whatever offset the locator has.
    file.seek(max(0, begin + at - _LOCATOR.size - _END_64.size))
    record = file.read(_END_64.size)
    if len(record) < _END_64.size or not record.startswith(b"PK\x06\x06"):
        return size
    return int(_END_64.unpack(record)[8])


def open_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> zipfile.ZipExtFile:
    """Open a file of the archive for reading. Raises the exceptions in UNREADABLE.

    Only stored and deflated files are read, because LZMA takes as much memory as the archive asks for.
    """
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise NotImplementedError(tr("unsupported compression method"))
    opened = archive.open(member)
    assert isinstance(opened, zipfile.ZipExtFile)
    return opened


MAX_BYTES_EACH = 64 * MIB
# Total of one import. The pictures are in a temporary folder until the chats are added.
MAX_BYTES_IN_ALL = 512 * MIB
NOT_THERE = "[A picture was here. The export doesn't contain it.]"
TOO_LARGE = "[A picture was here. It was too large to import.]"
NO_PICTURE = "[A picture was here. Its file in the export couldn't be read.]"
_ID = re.compile(r"[A-Za-z0-9]+[-_][A-Za-z0-9-]+")
_MAX_NAME_LENGTH = 255


class Pictures(Protocol):
    """Finds the pictures of messages."""

    def find(self, pointer: str) -> ImagePart | str:
        """Return the picture of a pointer such as "file-service://file-Ab12", or a sentence to show in its place.

        Raises OSError if it can't be written.
        """


class EmbeddedPictures:
    """Finds the pictures that a JSON file has in itself, as data URLs."""

    def __init__(self, imported: ImportedPictures) -> None:
        self._imported, self._bytes_left = imported, MAX_BYTES_IN_ALL

    def find(self, pointer: str) -> ImagePart | str:
        if not pointer.startswith("data:image/"):
            return NOT_THERE
        try:
            content = decode_base64(pointer)
        except ValueError:
            return NO_PICTURE
        if not picture_ending(content):
            return NO_PICTURE
        if len(content) > self._bytes_left:
            return TOO_LARGE
        self._bytes_left -= len(content)
        return self._imported.add(content)


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
