"""Reads the pages of a damaged SQLite file, and continues where SQLite itself gives up.

Source of every offset and formula: "Database File Format", sqlite.org/fileformat2.html. Nothing here is specific to
chats. An unreadable page loses only its own content.
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final, Self

import msgspec

from qwendesk.store.checks import MAGIC
from qwendesk.store.rows import Value

_DEFAULT_PAGE_BYTES = 4096
_TABLE_INTERIOR, _TABLE_LEAF, _INDEX_INTERIOR, _INDEX_LEAF = 5, 13, 2, 10
_TABLE = (_TABLE_INTERIOR, _TABLE_LEAF)
_KINDS = (*_TABLE, _INDEX_INTERIOR, _INDEX_LEAF)
_INTEGER_BYTES: Final = (0, 1, 2, 3, 4, 6, 8)


class Damaged(Exception):
    """A page, cell or record that SQLite can't have written."""


class Record(msgspec.Struct, frozen=True):
    """A row of a table or an entry of an index. `rowid` is None for an entry of an index."""

    rowid: int | None
    values: tuple[Value, ...]
    is_whole: bool = True
    """False if its end is missing, or a text has a null character or is not valid UTF-8."""


class PageFile:
    """The pages of a database as SQLite would read them: pages in the write-ahead log replace those in the file."""

    def __init__(self, path: Path) -> None:
        """Open the file and its write-ahead log. Raises OSError."""
        log = path.with_name(f"{path.name}-wal")
        self._file = path.open("rb")
        self._log = log.open("rb") if log.exists() else None
        header = self._file.read(100)
        self.has_header = header.startswith(MAGIC)
        size = int.from_bytes(header[16:18]) if self.has_header else 0
        size = 65536 if size == 1 else size
        is_valid = size >= 512 and size & (size - 1) == 0
        self.page_bytes = size if is_valid else _DEFAULT_PAGE_BYTES
        reserved = header[20] if is_valid and header[20] <= 32 else 0
        self._usable = self.page_bytes - reserved
        self._logged = _logged_pages(self._log, self.page_bytes) if self._log is not None else {}
        n_bytes = path.stat().st_size
        self.n_pages = max(-(-n_bytes // self.page_bytes), max(self._logged, default=0))
        self.reached: set[int] = set()
        """Pages that belong to trees read so far. No page belongs to two trees."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()
        if self._log is not None:
            self._log.close()

    def page(self, number: int) -> bytes:
        """Return the page, padded with zeros if the file ends early. The first page has number 1."""
        offset = self._logged.get(number)
        if offset is not None and self._log is not None:
            self._log.seek(offset)
            return self._log.read(self.page_bytes)
        self._file.seek((number - 1) * self.page_bytes)
        try:
            found = self._file.read(self.page_bytes)
        except OSError:
            # The sector is unreadable, so the content of this page is lost.
            found = b""
        return found.ljust(self.page_bytes, b"\0")

    def free_pages(self) -> frozenset[int]:
        """Return the pages whose content was deleted. If their list is damaged, they are recognised by their format."""
        free: set[int] = set()
        first = self.page(1)
        number, n_listed = struct.unpack_from(">II", first, 32)
        is_complete = first.startswith(MAGIC)
        while is_complete and number:
            trunk = self._trunk(number)
            is_complete = trunk is not None and number not in free
            if trunk is not None:
                free |= {number, *trunk[1]}
                number = trunk[0]
        if is_complete and len(free) == n_listed:
            return frozenset(free)
        for number in range(2, self.n_pages + 1):
            trunk = self._trunk(number) if number not in self.reached else None
            if trunk is not None:
                free |= {number, *trunk[1]}
        return frozenset(free)

    def _trunk(self, number: int) -> tuple[int, tuple[int, ...]] | None:
        """Return the next trunk page and the free pages that this one lists; None if it isn't a trunk page."""
        if not 2 <= number <= self.n_pages:
            return None
        page = self.page(number)
        following, count = struct.unpack_from(">II", page)
        if following > self.n_pages or count > self._usable // 4 - 2:
            return None
        listed = struct.unpack_from(f">{count}I", page, 8)
        is_valid = all(2 <= each <= self.n_pages for each in listed) and len(set(listed)) == count
        return (following, listed) if is_valid else None

    def strays(self) -> Iterator[Record]:
        """Yield the rows on leaf pages of tables that belong to no tree and are not free."""
        free = self.free_pages()
        for number in range(2, self.n_pages + 1):
            if number not in self.reached and number not in free and self.page(number)[0] == _TABLE_LEAF:
                yield from Tree(self, number)

    def payload(self, page: bytes, at: int, n_bytes: int, *, is_table: bool) -> tuple[bytes, bool]:
        """Return the content of a cell with its overflow pages, and whether it is complete. Raises Damaged."""
        usable = self._usable
        most = usable - 35 if is_table else (usable - 12) * 64 // 255 - 23
        least = (usable - 12) * 32 // 255 - 23
        if n_bytes <= most:
            if at + n_bytes > usable:
                raise Damaged
            return page[at : at + n_bytes], True
        local = least + (n_bytes - least) % (usable - 4)
        local = local if local <= most else least
        if at + local + 4 > usable or n_bytes > self.n_pages * self.page_bytes:
            raise Damaged
        parts, missing = [page[at : at + local]], n_bytes - local
        (number,) = struct.unpack_from(">I", page, at + local)
        while missing > 0:
            if not 2 <= number <= self.n_pages or number in self.reached:
                return b"".join(parts), False
            overflow = self.page(number)
            (following,) = struct.unpack_from(">I", overflow)
            is_last = missing <= usable - 4
            # Only the last overflow page has no next one, and no page leads beyond the end of the file.
            if (following != 0) == is_last or following > self.n_pages:
                return b"".join(parts), False
            self.reached.add(number)
            parts.append(overflow[4 : 4 + min(missing, usable - 4)])
            missing -= usable - 4
            number = following
        return b"".join(parts), True


class Tree:
    """The records of one table or index, in order. `is_whole` is valid once all of them have been read."""

    def __init__(self, file: PageFile, root: int) -> None:
        self._file = file
        self._root = root
        self.is_whole = True

    def __iter__(self) -> Iterator[Record]:
        file = self._file
        waiting = [self._root]
        root_kind = self._kind(self._root)
        if root_kind is None:
            self.is_whole = False
            return
        is_table = root_kind in _TABLE
        while waiting:
            number = waiting.pop()
            kind = self._kind(number)
            if kind is None or number in file.reached or (kind in _TABLE) != is_table:
                self.is_whole = False
                continue
            file.reached.add(number)
            children, cells = self._cells(number, kind)
            waiting.extend(reversed(children))
            for page, at in cells:
                try:
                    record = self._record(page, at, kind)
                except (Damaged, IndexError, struct.error):
                    self.is_whole = False
                else:
                    self.is_whole &= record.is_whole
                    yield record

    def _kind(self, number: int) -> int | None:
        if not 1 <= number <= self._file.n_pages:
            return None
        kind = self._file.page(number)[100 if number == 1 else 0]
        return kind if kind in _KINDS else None

    def _cells(self, number: int, kind: int) -> tuple[list[int], list[tuple[bytes, int]]]:
        """Return the children of an interior page, and the page and offset of each of its records."""
        page = self._file.page(number)
        header = 100 if number == 1 else 0
        is_inner = kind in (_TABLE_INTERIOR, _INDEX_INTERIOR)
        first = header + (12 if is_inner else 8)
        (count,) = struct.unpack_from(">H", page, header + 3)
        if first + 2 * count > len(page):
            self.is_whole = False
            count = (len(page) - first) // 2
        places = struct.unpack_from(f">{count}H", page, first)
        usable = [place for place in places if first <= place < len(page) - (4 if is_inner else 0)]
        self.is_whole &= len(usable) == count
        children: list[int] = []
        if is_inner:
            children = [struct.unpack_from(">I", page, place)[0] for place in usable]
            children.append(struct.unpack_from(">I", page, header + 8)[0])
        return children, [] if kind == _TABLE_INTERIOR else [(page, place) for place in usable]

    def _record(self, page: bytes, at: int, kind: int) -> Record:
        at += 4 if kind == _INDEX_INTERIOR else 0
        n_bytes, at = _varint(page, at)
        rowid = None
        if kind == _TABLE_LEAF:
            rowid, at = _varint(page, at)
            rowid -= (rowid >> 63) << 64
        content, is_whole = self._file.payload(page, at, n_bytes, is_table=kind == _TABLE_LEAF)
        values, is_decoded = _values(content, is_cut=not is_whole)
        return Record(rowid, values, is_whole and is_decoded)


def _values(content: bytes, *, is_cut: bool) -> tuple[tuple[Value, ...], bool]:
    """Return the values of a record, and whether all of its texts are undamaged. Raises Damaged.

    With `is_cut` the end of `content` is missing, and only the values before it are returned.
    """
    header_bytes, place = _varint(content, 0)
    at, values, is_decoded = header_bytes, [], True
    if header_bytes > len(content):
        raise Damaged
    while place < header_bytes:
        kind, place = _varint(content, place)
        if kind in (10, 11) or kind > 2**32:
            raise Damaged
        n_bytes = (kind - 12) // 2 if kind >= 12 else 8 if kind == 7 else 0 if kind > 7 else _INTEGER_BYTES[kind]
        raw = content[at : at + n_bytes]
        at += n_bytes
        if len(raw) < n_bytes and not (is_cut and kind >= 13 and kind % 2 and raw):
            if is_cut:
                break
            raise Damaged
        value = _value(kind, raw)
        if isinstance(value, str):
            is_decoded &= "\0" not in value and ("\ufffd" not in value or _is_utf8(raw))
        values.append(value)
    if not is_cut and (at != len(content) or place != header_bytes):
        raise Damaged
    return tuple(values), is_decoded


def _value(kind: int, raw: bytes) -> Value:
    if kind == 0:
        return None
    if kind == 7:
        return float(struct.unpack(">d", raw)[0])
    if kind < 7:
        return int.from_bytes(raw, signed=True)
    if kind < 10:
        return kind - 8
    return raw.decode("utf-8", "replace") if kind % 2 else raw


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def _varint(page: bytes, at: int) -> tuple[int, int]:
    """Return the varint at `at` and the offset after it. Raises IndexError at the end of the page."""
    value = 0
    for index in range(8):
        byte = page[at + index]
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at + index + 1
    return value << 8 | page[at + 8], at + 9


def _logged_pages(log: BinaryIO, page_bytes: int) -> dict[int, int]:
    """Return the offset in the write-ahead log of the newest committed content of each page."""
    header = log.read(32)
    if len(header) < 32 or header[:3] != b"\x37\x7f\x06" or int.from_bytes(header[8:12]) != page_bytes:
        return {}
    order = ">" if header[3] & 1 else "<"
    sums = _checksum(order, header[:24], (0, 0))
    pages: dict[int, int] = {}
    waiting: dict[int, int] = {}
    if sums != struct.unpack(">II", header[24:]):
        return {}
    while True:
        at = log.tell() + 24
        frame, content = log.read(24), log.read(page_bytes)
        if len(content) < page_bytes or frame[8:16] != header[16:24]:
            return pages
        number, is_commit = struct.unpack_from(">II", frame)
        sums = _checksum(order, frame[:8] + content, sums)
        if sums != struct.unpack_from(">II", frame, 16):
            return pages
        waiting[number] = at
        if is_commit:
            pages |= waiting
            waiting = {}


def _checksum(order: str, content: bytes, sums: tuple[int, int]) -> tuple[int, int]:
    first, second = sums
    words = struct.unpack(f"{order}{len(content) // 4}I", content)
    for index in range(0, len(words), 2):
        first = (first + words[index] + second) & 0xFFFFFFFF
        second = (second + words[index + 1] + first) & 0xFFFFFFFF
    return first, second
