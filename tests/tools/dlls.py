"""A small library for Windows, made by hand, that only says which others it asks for."""

import struct
from collections.abc import Sequence
from pathlib import Path

_SECTION_ADDRESS, _SECTION_OFFSET = 0x1000, 0x200
_DIRECTORIES = 16


def make_dll(path: Path, asked_for: Sequence[str]) -> Path:
    """Write a 64-bit DLL whose import table names these libraries. The layout is that of Microsoft's PE format."""
    section = _import_section(asked_for)
    dos = struct.pack("<2s58xI", b"MZ", 64)
    coff = struct.pack("<HHIIIHH", 0x8664, 1, 0, 0, 0, 112 + 8 * _DIRECTORIES, 0x2022)
    optional = struct.pack(
        "<HBBIIIIIQIIHHHHHHIIIIHHQQQQII",
        *(0x20B, 14, 0, 0, len(section), 0, 0, _SECTION_ADDRESS, 0x180000000, 0x1000, 0x200, 6, 0, 0, 0, 6, 0, 0),
        *(_SECTION_ADDRESS + 0x1000, _SECTION_OFFSET, 0, 3, 0, 0x100000, 0x1000, 0x100000, 0x1000, 0, _DIRECTORIES),
    )
    directories = [(0, 0)] * _DIRECTORIES
    directories[1] = (_SECTION_ADDRESS, len(section))
    table = b"".join(struct.pack("<II", *each) for each in directories)
    size = -(-len(section) // 0x200) * 0x200
    header = struct.pack(
        "<8sIIIIIIHHI", b".idata", len(section), _SECTION_ADDRESS, size, _SECTION_OFFSET, 0, 0, 0, 0, 0x40000040
    )
    front = dos + b"PE\0\0" + coff + optional + table + header
    path.write_bytes(front.ljust(_SECTION_OFFSET, b"\0") + section.ljust(size, b"\0"))
    return path


def _import_section(asked_for: Sequence[str]) -> bytes:
    """One descriptor for each library, an empty one, then each library's name and its table of one function."""
    descriptors, data = b"", b""
    start = _SECTION_ADDRESS + 20 * (len(asked_for) + 1)
    for name in asked_for:
        table = start + len(data)
        data += struct.pack("<QQ", (1 << 63) | 1, 0)  # the function with the number 1, and the end
        descriptors += struct.pack("<IIIII", table, 0, 0, start + len(data), table)
        data += name.encode().ljust(-(-(len(name) + 1) // 8) * 8, b"\0")
    return descriptors + bytes(20) + data
