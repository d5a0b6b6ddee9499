"""ByteSource, which supplies the bytes of a GGUF file, and Cursor, which checks every length that it reads."""

import os
import struct
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from qwendesk.core.errors import BadModelFile
from qwendesk.core.input_files import NotRegularFile, OnlineOnlyFile, open_local
from qwendesk.core.translation import tr
from qwendesk.core.units import show_bytes
from qwendesk.hub.finding_texts import FINDINGS, FindingCode, Value, fill

# Bytes read at once. The reader never holds more than this, or than one text that is kept.
WINDOW_BYTES = 1024**2
# Limit of a header, against hostile files. Qwen3.5's header, with 248,320 tokens, has about 12 MB.
HEADER_LIMIT_BYTES = 64 * 1024**2
# Limit of a text that is kept. The longest in real files is the chat template, with tens of KB.
TEXT_LIMIT_BYTES = 1024**2
# Limit against files made to be slow to read. In a real vocabulary a token occurs once.
_MAX_OCCURRENCES = 64

Number = int | float | bool
_U32, _U64 = struct.Struct("<I"), struct.Struct("<Q")


class ByteSource(Protocol):
    """Random access to the bytes of one file: on disk, or by ranges over the network."""

    @property
    def name(self) -> str:
        """Return the name that error messages use."""

    @property
    def size(self) -> int:
        """Return the length of the whole file in bytes."""

    def read(self, offset: int, length: int) -> bytes:
        """Return `length` bytes from `offset`, fewer only at the end of the file. Raises OSError."""


class FileSource:
    """A file on disk. It is read, not mapped, because a mapped file that shrinks would crash the process."""

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
    """Open `path` as a source.

    Raises OSError, and BadModelFile for a pipe or device, whose reading might never end, and for a file that is only in
    the cloud.
    """
    try:
        file = open_local(path)
    except OnlineOnlyFile as error:
        raise BadModelFile(tr("Only in the cloud"), online_only_text(path), "other") from error
    except NotRegularFile as error:
        raise BadModelFile(
            tr("Not a file"), tr("{0} can't be used: {1}.", path.name, error.strerror), "other"
        ) from error
    with file:
        yield FileSource(file.fileno(), path.name, os.fstat(file.fileno()).st_size)


def online_only_text(path: Path) -> str:
    """Return what to do about a model file that OneDrive, iCloud or another service has not downloaded."""
    return tr(
        "{0} is only in the cloud, not on this PC. Download it first: right-click it in File Explorer and choose "
        "“Always keep on this device” (in Finder: “Keep Downloaded”). Or move it out of the synced folder.",
        path.name,
    )


class BadHeader(BadModelFile):
    """A header that can't be used, with the code, case and values of the finding about it, whose message it shows."""

    def __init__(self, title: str, kind: str, code: FindingCode, case: str, values: Mapping[str, Value]) -> None:
        super().__init__(title, fill(FINDINGS[code, case].message, values), kind)
        self.code, self.case, self.finding_values = code, case, values


def truncated_header(name: str) -> BadHeader:
    """Return the error for a file that ends inside its header."""
    return BadHeader(tr("Incomplete model file"), "truncated", "truncated", "header", {"name": name})


def truncated_tensors(name: str, missing_size: int, whole_size: int) -> BadHeader:
    """Return the error for a file without the data of its last tensors; sizes in bytes."""
    values: Mapping[str, Value] = {"name": name, "missing_size": missing_size, "whole_size": whole_size}
    return BadHeader(tr("Incomplete model file"), "truncated", "truncated", "tensors", values)


def damaged_header(name: str, reason: str) -> BadHeader:
    """Return the error for a header that can't be right; `reason` is a sentence."""
    return BadHeader(tr("Damaged model file"), "other", "not-gguf", "damaged", {"name": name, "reason": reason})


class Cursor:
    """Reads a header from front to back.

    Each read is checked against the end of the file and the header limit first. All methods raise BadModelFile:
    "truncated" at the end of the file, "other" for an absurd length.
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
        """Return the offset of the next byte in the file."""
        return self._window_start + self._at

    def u32(self) -> int:
        return int(self.numbers(_U32)[0])

    def u64(self) -> int:
        return int(self.numbers(_U64)[0])

    def numbers(self, layout: struct.Struct) -> tuple[Number, ...]:
        """Return the next numbers, unpacked by `layout`."""
        start = self._advance(layout.size)
        return layout.unpack_from(self._window, start)

    def text(self, limit: int = TEXT_LIMIT_BYTES) -> str:
        """Return a length-prefixed text of at most `limit` bytes, with U+FFFD for bytes that aren't UTF-8."""
        length = self.u64()
        self._check(length)
        if length > limit:
            raise damaged_header(self.name, tr("Its header holds a text of {0}.", show_bytes(length)))
        start = self._advance(length)
        return self._window[start : start + length].decode("utf-8", errors="replace")

    def skip(self, n_bytes: int) -> None:
        """Move `n_bytes` forward without reading."""
        self._check(n_bytes)
        self._at += n_bytes
        if self._at > len(self._window):
            self._window_start, self._window, self._at = self.position, b"", 0

    def skip_texts(self, count: int, watched: Collection[bytes] = ()) -> set[bytes]:
        """Skip `count` length-prefixed texts and return which of `watched` were among them."""
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
                raise damaged_header(self.name, tr("Its vocabulary repeats a token too often."))
            for stop, text in [*places, (end, b"")]:
                at, skipped = _skip_texts(self._window, at, stop, count)
                count -= skipped
                if count > 0 and text and at == stop:
                    found.add(text)
            self.skip(at - self._at)
        return found

    def _advance(self, n_bytes: int) -> int:
        """Return where the next `n_bytes` are in the window, and move past them."""
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
            raise truncated_header(self.name)

    def _check(self, n_bytes: int) -> None:
        if self.position + n_bytes > HEADER_LIMIT_BYTES:
            raise damaged_header(
                self.name, tr("Its header claims to be longer than {0}.", show_bytes(HEADER_LIMIT_BYTES))
            )
        if self.position + n_bytes > self._source.size:
            raise truncated_header(self.name)


def _occurrences(window: bytes, patterns: Mapping[bytes, bytes], start: int, end: int) -> list[tuple[int, bytes]]:
    """Return where patterns begin in `window[start:end]` with their texts, also inside other texts.

    Stops a little above _MAX_OCCURRENCES.
    """
    places: list[tuple[int, bytes]] = []
    for pattern, text in patterns.items():
        at = window.find(pattern, start)
        while 0 <= at < end and len(places) <= _MAX_OCCURRENCES:
            places.append((at, text))
            at = window.find(pattern, at + 1)
    return sorted(places)


def _skip_texts(window: bytes, at: int, stop: int, count: int) -> tuple[int, int]:
    """Skip at most `count` texts that begin before `stop`; return the new position and the number of texts."""
    if at >= stop or count <= 0:
        return at, 0
    unpack_length = _U64.unpack_from
    for skipped in range(1, count + 1):  # must be fast: runs for 150,000 tokens and as many merges
        at += 8 + unpack_length(window, at)[0]
        if at >= stop:
            return at, skipped
    return at, count
