"""Where the bytes of a GGUF file come from, and a cursor that never trusts a length it read there."""

import os
import stat
import struct
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from qwendesk.core.errors import BadModelFile

WINDOW_BYTES = 1024**2
"""Bytes read at once; the reader never holds more than this, or than one wanted text."""
HEADER_LIMIT_BYTES = 64 * 1024**2
"""No header is longer (Qwen3.5's, with 248,320 tokens, has about 12 MB). Bounds what a hostile file can cost."""
TEXT_LIMIT_BYTES = 1024**2
"""No text we keep is longer; the longest is the chat template, tens of KB."""
_MAX_OCCURRENCES = 64
"""A vocabulary holds a token once; a file made to be slow may repeat it."""

Number = int | float | bool
_U32, _U64 = struct.Struct("<I"), struct.Struct("<Q")


class ByteSource(Protocol):
    """Random access to the bytes of one file: on disk, or by ranges over the network."""

    @property
    def name(self) -> str:
        """What people call it; goes into error sentences."""

    @property
    def size(self) -> int:
        """Bytes of the whole file."""

    def read(self, offset: int, length: int) -> bytes:
        """`length` bytes from `offset`; fewer only where the file ends. Raises OSError when they cannot be had."""


class FileSource:
    """A file on disk. Read, not mapped: a mapped file that shrinks would kill the process."""

    def __init__(self, descriptor: int, name: str, size: int) -> None:
        self._descriptor = descriptor
        self.name = name
        self.size = size

    def read(self, offset: int, length: int) -> bytes:
        os.lseek(self._descriptor, offset, os.SEEK_SET)
        pieces: list[bytes] = []
        while length > 0 and (piece := os.read(self._descriptor, length)):
            pieces.append(piece)
            length -= len(piece)
        return b"".join(pieces)


@contextmanager
def open_file(path: Path) -> Iterator[FileSource]:
    """`path` as a source. Raises OSError; BadModelFile for what is no ordinary file (a pipe would never answer)."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise BadModelFile("Not a file", f"{path.name} is a folder or a device, not a model file.", "other")
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        yield FileSource(descriptor, path.name, os.fstat(descriptor).st_size)
    finally:
        os.close(descriptor)


def cut_short(name: str, detail: str) -> BadModelFile:
    """The error for a file that ends too early."""
    return BadModelFile("Model file cut short", f"{name} is incomplete: {detail}. Download it again.", "truncated")


def damaged(name: str, detail: str) -> BadModelFile:
    """The error for a header that cannot be right."""
    return BadModelFile("Damaged model file", f"{name} cannot be used: {detail}. Download it again.", "other")


class Cursor:
    """Reads a header front to back. Every read is checked against the file's end and the header limit first.

    All methods raise BadModelFile ("truncated" at the file's end, "other" for an absurd length).
    """

    def __init__(self, source: ByteSource) -> None:
        self._source = source
        self._window = b""
        self._window_start = 0
        self._at = 0

    @property
    def name(self) -> str:
        return self._source.name

    @property
    def size(self) -> int:
        return self._source.size

    @property
    def position(self) -> int:
        """Offset in the file of the next byte."""
        return self._window_start + self._at

    def u32(self) -> int:
        return int(self.numbers(_U32)[0])

    def u64(self) -> int:
        return int(self.numbers(_U64)[0])

    def numbers(self, layout: struct.Struct) -> tuple[Number, ...]:
        """The next numbers, laid out as `layout` says."""
        start = self._advance(layout.size)
        return layout.unpack_from(self._window, start)

    def text(self, limit: int = TEXT_LIMIT_BYTES) -> str:
        """A length-prefixed text of at most `limit` bytes; bytes that are no UTF-8 become U+FFFD."""
        length = self.u64()
        self._check(length)
        if length > limit:
            raise damaged(self.name, f"its header holds a text of {length:,} bytes")
        start = self._advance(length)
        return self._window[start : start + length].decode("utf-8", errors="replace")

    def skip(self, n_bytes: int) -> None:
        """Goes on `n_bytes` further without reading what lies between."""
        self._check(n_bytes)
        self._at += n_bytes
        if self._at > len(self._window):
            self._window_start, self._window, self._at = self.position, b"", 0

    def skip_texts(self, count: int, watched: Collection[bytes] = ()) -> set[bytes]:
        """Passes `count` length-prefixed texts; which of `watched` were among them."""
        patterns = {_U64.pack(len(text)) + text: text for text in watched}
        reach = max(map(len, patterns), default=8)
        found: set[bytes] = set()
        while count > 0:
            self._fill(max(min(reach, self.size - self.position), 8))
            is_last = self._window_start + len(self._window) >= self.size
            end = len(self._window) - (8 if is_last else reach) + 1
            at = self._at
            missing = {pattern: text for pattern, text in patterns.items() if text not in found}
            places = _occurrences(self._window, missing, at, end)
            if len(places) > _MAX_OCCURRENCES:
                raise damaged(self.name, "its vocabulary holds the same token again and again")
            for stop, text in [*places, (end, b"")]:
                at, passed = _pass_texts(self._window, at, stop, count)
                count -= passed
                if count > 0 and text and at == stop:
                    found.add(text)
            self.skip(at - self._at)
        return found

    def _advance(self, n_bytes: int) -> int:
        """Where in the window the next `n_bytes` are; they count as read."""
        self._fill(n_bytes)
        start = self._at
        self._at += n_bytes
        return start

    def _fill(self, n_bytes: int) -> None:
        if len(self._window) - self._at >= n_bytes:
            return
        self._check(n_bytes)
        start = self.position
        self._window = self._source.read(start, min(max(n_bytes, WINDOW_BYTES), self._source.size - start))
        self._window_start, self._at = start, 0
        if len(self._window) < n_bytes:
            raise cut_short(self.name, "it ends inside its header")

    def _check(self, n_bytes: int) -> None:
        if self.position + n_bytes > HEADER_LIMIT_BYTES:
            raise damaged(self.name, f"its header claims to be longer than {HEADER_LIMIT_BYTES // 1024**2} MB")
        if self.position + n_bytes > self._source.size:
            raise cut_short(self.name, "it ends inside its header")


def _occurrences(window: bytes, patterns: Mapping[bytes, bytes], start: int, end: int) -> list[tuple[int, bytes]]:
    """Where each pattern begins in `window[start:end]`, with its text; also inside other texts. Not too many."""
    places: list[tuple[int, bytes]] = []
    for pattern, text in patterns.items():
        at = window.find(pattern, start)
        while 0 <= at < end and len(places) <= _MAX_OCCURRENCES:
            places.append((at, text))
            at = window.find(pattern, at + 1)
    return sorted(places)


def _pass_texts(window: bytes, at: int, stop: int, count: int) -> tuple[int, int]:
    """Passes at most `count` texts from `at`, as long as they begin before `stop`; where it got, and how many."""
    if at >= stop or count <= 0:
        return at, 0
    unpack_length = _U64.unpack_from
    for passed in range(1, count + 1):  # 150,000 tokens and as many merges come through here
        at += 8 + unpack_length(window, at)[0]
        if at >= stop:
            return at, passed
    return at, count
