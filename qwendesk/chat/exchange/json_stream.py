"""Reads large JSON files one member or element at a time, in bounded memory and linear time.

Only the structure is parsed here. A value is returned as bytes, which msgspec decodes and validates.
"""

import re
from collections.abc import Iterator
from typing import Protocol

import msgspec

from qwendesk.core.json_decoding import decode_json

_CHUNK_BYTES = 256 * 1024
_MAX_KEY_BYTES = 64 * 1024
# msgspec fails at about 1,000 levels, and real exports have a few dozen at most.
_MAX_DEPTH = 500
_SPACES = re.compile(rb"[ \t\r\n]*+")
_SCALAR = re.compile(rb'[^ \t\r\n,:"\[\]{}]*+')
# The rest of a string up to its closing quote or the end of the buffer.
_IN_STRING = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)


def _balanced(levels: int) -> bytes:
    """Return a pattern for anything whose brackets are closed and nested at most `levels` deep."""
    inside = rb'[^"{}\[\]]++|"(?:[^"\\]++|\\.)*+"'
    return rb"(?:%b)*+" % (inside if levels == 0 else inside + rb"|[\[{]%b[\]}]" % _balanced(levels - 1))


# Everything before a bracket or string that is not closed within the buffer or these levels. Millions of small values
# are skipped at the speed of C. msgspec checks that each closing bracket is of the right kind.
_BALANCED = re.compile(_balanced(4), re.DOTALL)


class BadJson(ValueError):
    """The file is not JSON, or is nested too deeply."""


class ValueTooLong(ValueError):
    """A value was longer than the limit. It has been skipped, so reading can continue after it."""


class FileTooLong(ValueError):
    """The file has more bytes than allowed, whatever its stated size is."""


class Readable(Protocol):
    """An open file, or an open file in an archive."""

    def read(self, n: int, /) -> bytes: ...


class JsonStream:
    """A position in a JSON file. Every method raises BadJson for invalid JSON, and FileTooLong above `limit_bytes`."""

    def __init__(self, file: Readable, limit_bytes: int) -> None:
        self._file = file
        self._limit_bytes = limit_bytes
        self._buffer = b""
        self._offset = 0
        self._bytes_before_buffer = 0
        self._pieces: list[bytes] = []
        self._bytes_left = 0
        self._value_start: int | None = None
        """Index in the buffer at which the value that `raw` collects begins or continues; None outside of `raw`."""
        self._fill()
        if self._buffer.startswith(b"\xef\xbb\xbf"):
            self._offset = 3

    @property
    def position(self) -> int:
        """Number of bytes before the current position."""
        return self._bytes_before_buffer + self._offset

    def peek(self) -> bytes:
        """Return the next character that isn't whitespace, without consuming it; b"" at the end of the file."""
        while True:
            if self._skip_match(_SPACES) < len(self._buffer):
                return self._buffer[self._offset : self._offset + 1]
            if not self._fill():
                return b""

    def members(self) -> Iterator[str]:
        """Yield the keys of the object that begins here.

        After each key the caller may read its value; otherwise the value is skipped.
        """
        self._expect(b"{")
        if self.peek() == b"}":
            self._offset += 1
            return
        while True:
            if self.peek() != b'"':
                raise BadJson(f"a name was expected at byte {self.position:,}")
            try:
                key = decode_json(self.raw(_MAX_KEY_BYTES), str)
            except (msgspec.DecodeError, ValueTooLong) as error:
                raise BadJson(f"a name at byte {self.position:,} cannot be read") from error
            self._expect(b":")
            self.peek()
            before = self.position
            yield key
            self._skip_unread(before)
            if not self._has_more(b"}"):
                return

    def elements(self) -> Iterator[None]:
        """Yield once for each element of the array that begins here. An element that is not read is skipped."""
        self._expect(b"[")
        if self.peek() == b"]":
            self._offset += 1
            return
        while True:
            self.peek()
            before = self.position
            yield
            self._skip_unread(before)
            if not self._has_more(b"]"):
                return

    def raw(self, limit_bytes: int) -> bytes:
        """Return the bytes of the value that begins here. Raises ValueTooLong after skipping a longer value."""
        self.peek()
        before = self.position
        self._pieces, self._bytes_left, self._value_start = [], limit_bytes, self._offset
        self._skip_value()
        self._keep_piece()
        pieces, self._pieces, self._value_start = self._pieces, [], None
        if self.position - before > limit_bytes:
            raise ValueTooLong(f"a value before byte {self.position:,} has {self.position - before:,} bytes")
        return b"".join(pieces)

    def skip(self) -> None:
        """Skip the value that begins here."""
        self.peek()
        self._skip_value()

    def check_end(self) -> None:
        """Raise BadJson if anything but whitespace follows."""
        if self.peek():
            raise BadJson(f"something follows at byte {self.position:,}")

    def _skip_unread(self, before: int) -> None:
        if self.position == before:
            self.skip()

    def _has_more(self, closing: bytes) -> bool:
        found = self.peek()
        if found not in (b",", closing):
            raise BadJson(f"a comma was expected at byte {self.position:,}")
        self._offset += 1
        return found == b","

    def _expect(self, character: bytes) -> None:
        if self.peek() != character:
            raise BadJson(f"{character.decode()} was expected at byte {self.position:,}")
        self._offset += 1

    def _skip_value(self) -> None:
        first = self._buffer[self._offset : self._offset + 1]
        if first == b'"':
            self._skip_string()
        elif first in (b"{", b"["):
            self._skip_nested()
        else:
            self._skip_scalar()

    def _skip_scalar(self) -> None:
        before = self.position
        while self._skip_match(_SCALAR) == len(self._buffer) and self._fill():
            pass
        if self.position == before:
            raise BadJson(f"a value was expected at byte {before:,}")

    def _skip_string(self) -> None:
        """Skip a string, from its opening quote to its closing one."""
        self._offset += 1
        while True:
            at = self._skip_match(_IN_STRING)
            if self._buffer[at : at + 1] == b'"':
                self._offset = at + 1
                return
            if not self._fill():
                raise BadJson("it ends within a text")

    def _skip_nested(self) -> None:
        """Skip an object or array, from its opening bracket to its closing one."""
        self._offset += 1
        depth = 1
        while True:
            at = self._skip_match(_BALANCED)
            found = self._buffer[at : at + 1]
            if found == b'"':
                self._skip_string()
            elif found:
                self._offset = at + 1
                depth += 1 if found in b"{[" else -1
                if depth == 0:
                    return
                if depth > _MAX_DEPTH:
                    raise BadJson("it is nested too deeply")
            elif not self._fill():
                raise BadJson("it ends too early")

    def _skip_match(self, pattern: re.Pattern[bytes]) -> int:
        """Skip what `pattern` matches, and return the index in the buffer after it."""
        match = pattern.match(self._buffer, self._offset)
        self._offset = match.end() if match else self._offset
        return self._offset

    def _keep_piece(self) -> None:
        """Collect the part of a value for `raw` that is in the buffer, or drop all parts once they exceed the limit."""
        if self._value_start is None:
            return
        piece = self._buffer[self._value_start : self._offset]
        self._bytes_left -= len(piece)
        if self._bytes_left < 0:
            self._pieces.clear()
        else:
            self._pieces.append(piece)
        self._value_start = 0

    def _fill(self) -> bool:
        """Append more of the file to the rest of the buffer. Return False at the end of the file."""
        chunk = self._file.read(_CHUNK_BYTES)
        if not chunk:
            return False
        self._keep_piece()
        self._bytes_before_buffer += self._offset
        self._buffer = self._buffer[self._offset :] + chunk
        self._offset = 0
        if self._bytes_before_buffer + len(self._buffer) > self._limit_bytes:
            raise FileTooLong
        return True
