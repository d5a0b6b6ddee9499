"""Picture files that claim or cost far more than they should, made without that cost."""

import struct
import zlib
from pathlib import Path


def sparse_file(path: Path, size_bytes: int, head: bytes = b"\x89PNG\r\n\x1a\n") -> Path:
    """A file of that size that takes no room on the disk."""
    with path.open("wb") as file:
        file.write(head)
        file.truncate(size_bytes)
    return path


def png_claiming(path: Path, width: int, height: int, *, bit_depth: int = 16, colour_type: int = 6) -> Path:
    """A PNG whose header has this size and kind (16-bit RGBA by default), with next to no pixels."""
    header = struct.pack(">IIBBBBB", width, height, bit_depth, colour_type, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(bytes(100))), (b"IEND", b""))
    body = b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + body)
    return path


def flat_png(path: Path, width: int, height: int) -> Path:
    """A whole, valid PNG of one colour (8-bit RGB), written row by row."""
    packer = zlib.compressobj(1)
    rows = b"".join(packer.compress(bytes(1 + 3 * width)) for _ in range(height)) + packer.flush()
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in ((b"IHDR", header), (b"IDAT", rows), (b"IEND", b""))
    )
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + body)
    return path
