"""Reading ZIP archives that may be damaged or hostile: within limits, and only in the usual compression methods."""

import struct
import zipfile
import zlib
from io import SEEK_END
from typing import BinaryIO

from qwendesk.core.translation import tr

UNREADABLE = (OSError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError)
"""Exceptions of zipfile for archives that are damaged, encrypted, or compressed in an unknown way."""
_END = struct.Struct("<4s4H2LH")
"""End of central directory record (APPNOTE.TXT of PKWARE, 4.3.16), which lies before a comment of up to 64 KiB."""
_LOCATOR = struct.Struct("<4sLQL")
_END_64 = struct.Struct("<4sQ2H2L4Q")
"""ZIP64 record of large archives (4.3.14). The locator before the other record points to it."""


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
        raise NotImplementedError(tr("it uses an unsupported compression method"))
    opened = archive.open(member)
    assert isinstance(opened, zipfile.ZipExtFile)
    return opened
