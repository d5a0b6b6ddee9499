"""Makes a DLL for 64-bit Windows without a compiler: what it imports, and functions that return a number."""

import struct
import zlib
from collections.abc import Mapping, Sequence

_SECTION_RVA, _HEADERS_BYTES = 0x1000, 0x200
_RETURN = b"\xb8%s\xc3"
"""mov eax, a number of 32 bits; ret."""


def dll(name: str, exports: Mapping[str, int], imports: Mapping[str, Sequence[str]] | None = None) -> bytes:
    """Return the file of a DLL. `imports` names the functions that it asks of other DLLs when it is loaded."""
    section = _Section()
    export_rva, export_bytes = section.add_exports(name, exports)
    import_rva, import_bytes = section.add_imports(imports or {})
    content = bytes(section.content)
    raw = content.ljust(-(-len(content) // 0x200) * 0x200, b"\0")
    image_bytes = _SECTION_RVA + -(-len(content) // 0x1000) * 0x1000
    # Each has an address of its own, because it can't be moved: it has no table of what would change then.
    base = 0x1_8000_0000 + (zlib.crc32(name.encode()) % 0x4000) * 0x10_0000
    directories = [(export_rva, export_bytes), (import_rva, import_bytes)] + [(0, 0)] * 14
    optional = struct.pack(
        "<HBBIIIIIQIIHHHHHHIIIIHHQQQQII",
        0x20B, 14, 0, len(raw), 0, 0, 0, _SECTION_RVA, base, 0x1000, 0x200, 6, 0, 0, 0, 6, 0, 0, image_bytes,
        _HEADERS_BYTES, 0, 2, 0x100, 0x10_0000, 0x1000, 0x10_0000, 0x1000, 0, 16,
    )  # fmt: skip
    optional += b"".join(struct.pack("<II", *each) for each in directories)
    coff = struct.pack("<HHIIIHH", 0x8664, 1, 0, 0, 0, len(optional), 0x2022)
    header = struct.pack(
        "<8sIIIIIIHHI", b".all", len(content), _SECTION_RVA, len(raw), _HEADERS_BYTES, 0, 0, 0, 0, 0xE000_0060
    )
    dos = b"MZ".ljust(0x3C, b"\0") + struct.pack("<I", 0x40)
    return (dos + b"PE\0\0" + coff + optional + header).ljust(_HEADERS_BYTES, b"\0") + raw


class _Section:
    """The only section, which may be read, written and run."""

    def __init__(self) -> None:
        self.content = bytearray()

    def add(self, piece: bytes) -> int:
        """Append a piece, and return its address relative to that of the DLL."""
        self.content += bytes(-len(self.content) % 8)
        self.content += piece
        return _SECTION_RVA + len(self.content) - len(piece)

    def add_exports(self, name: str, exports: Mapping[str, int]) -> tuple[int, int]:
        names = sorted(exports)
        code = [self.add(_RETURN % struct.pack("<I", exports[each])) for each in names]
        texts = [self.add(each.encode() + b"\0") for each in names]
        functions = self.add(struct.pack(f"<{len(code)}I", *code))
        pointers = self.add(struct.pack(f"<{len(texts)}I", *texts))
        ordinals = self.add(struct.pack(f"<{len(names)}H", *range(len(names))))
        own = self.add(name.encode() + b"\0")
        n = len(names)
        table = struct.pack("<IIHHIIIIIII", 0, 0, 0, 0, own, 1, n, n, functions, pointers, ordinals)
        return self.add(table), len(table)

    def add_imports(self, imports: Mapping[str, Sequence[str]]) -> tuple[int, int]:
        table = b""
        for library, functions in imports.items():
            hints = [self.add(b"\0\0" + each.encode() + b"\0") for each in functions]
            thunks = struct.pack(f"<{len(hints) + 1}Q", *hints, 0)
            lookup, addresses = self.add(thunks), self.add(thunks)
            table += struct.pack("<IIIII", lookup, 0, 0, self.add(library.encode() + b"\0"), addresses)
        table += bytes(20)
        return (self.add(table), len(table)) if imports else (0, 0)
