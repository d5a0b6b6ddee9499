"""The file with a model's distributions for a text, with which other quants and cache types are compared.

It begins with a magic number, the length and CRC-32 of a header (JSON), and the header. For each chunk of the text,
one block follows, with its CRC-32 before it. A block has four arrays, for all predicted tokens of the chunk: the ids of
the likeliest tokens (uint32, the likeliest first), their log probabilities (float32), the log probability of all other
tokens together, and that of the token that comes next in the text. All numbers are little-endian.

Distributions are compared on the likeliest tokens of the base and on the rest as one. That never gives more than the
divergence over the whole vocabulary, and hardly less: the rest has a few thousandths of the probability.
"""

import contextlib
import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Self, cast

import msgspec
import numpy as np

from qwendesk.core.errors import BadRequest
from qwendesk.core.files import replace
from qwendesk.core.input_files import open_regular
from qwendesk.core.safe_open import create_own
from qwendesk.core.translation import mark

_MAGIC = b"QDBASE01"
_PREFIX = struct.Struct("<8sII")
_CRC = struct.Struct("<I")
_LONGEST_HEADER = 64 * 1024
_LONGEST_CHUNK = 2**22
MOST_KEPT = 512
"""How many of the likeliest tokens are kept of each distribution."""

Ids = np.ndarray[tuple[int, int], np.dtype[np.uint32]]
Logs = np.ndarray[tuple[int, ...], np.dtype[np.float32]]


class BaseHeader(msgspec.Struct, frozen=True, kw_only=True):
    """What a base was made from. A comparison needs the same tokens in the same chunks."""

    model: str
    """Name of the model's file."""
    model_hash: str
    text_sha256: str
    tokens_sha256: str
    """SHA-256 of the token ids, which differ if the vocabulary does."""
    n_vocab: int
    n_ctx: int
    n_chunks: int
    n_kept: int

    @property
    def n_rows(self) -> int:
        """How many tokens are predicted in each chunk: those of its second half but the first."""
        return self.n_ctx - self.n_ctx // 2 - 1

    @property
    def block_bytes(self) -> int:
        return self.n_rows * (8 * self.n_kept + 8)


class BaseBlock(msgspec.Struct, frozen=True, eq=False):
    """The distributions of one chunk, a row for each predicted token."""

    ids: Ids
    logs: Logs
    """Log probabilities of the ids, the same shape."""
    rest: Logs
    """Log probability of all other tokens together."""
    target: Logs
    """Log probability of the token that comes next."""

    def to_bytes(self) -> bytes:
        arrays = ((self.ids, "<u4"), (self.logs, "<f4"), (self.rest, "<f4"), (self.target, "<f4"))
        return b"".join(np.ascontiguousarray(array, dtype=kind).tobytes() for array, kind in arrays)

    @classmethod
    def from_bytes(cls, content: bytes, n_rows: int, n_kept: int) -> Self:
        size = 4 * n_rows * n_kept
        ids = np.frombuffer(content, "<u4", n_rows * n_kept).reshape(n_rows, n_kept)
        logs = np.frombuffer(content, "<f4", n_rows * n_kept, size).reshape(n_rows, n_kept)
        rest, target = (np.frombuffer(content, "<f4", n_rows, 2 * size + 4 * n_rows * index) for index in range(2))
        return cls(ids, logs, rest, target)


class BaseWriter:
    """Writes blocks to a temporary file, which gets its name when all are written."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def add(self, block: BaseBlock) -> None:
        content = block.to_bytes()
        self._file.write(_CRC.pack(zlib.crc32(content)))
        self._file.write(content)


@contextlib.contextmanager
def write_base(path: Path, header: BaseHeader) -> Iterator[BaseWriter]:
    """Write a base to `path`. If the `with` block raises, nothing is left. Raise BadRequest if it can't be written."""
    encoded = msgspec.json.encode(header)
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        try:
            with create_own(fresh) as file:
                file.write(_PREFIX.pack(_MAGIC, len(encoded), zlib.crc32(encoded)))
                file.write(encoded)
                yield BaseWriter(file)
            replace(fresh, path)
        except BaseException:
            fresh.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise BadRequest(
            mark("Base not saved"), mark("{0} can't be written: {1}."), path.name, error.strerror or str(error)
        ) from error


class BaseReader:
    """Reads the blocks of a base in order."""

    def __init__(self, file: BinaryIO, header: BaseHeader, name: str) -> None:
        self._file, self.header, self._name = file, header, name

    def next(self) -> BaseBlock:
        """Return the next block. Raise BadRequest if the file is cut or damaged."""
        header = self.header
        crc = self._file.read(_CRC.size)
        content = self._file.read(header.block_bytes)
        if len(crc) != _CRC.size or len(content) != header.block_bytes:
            raise BadRequest(mark("Base not usable"), mark("{0} is cut off. Save the base again."), self._name)
        block = BaseBlock.from_bytes(content, header.n_rows, header.n_kept)
        if _CRC.unpack(crc)[0] != zlib.crc32(content) or int(block.ids.max(initial=0)) >= header.n_vocab:
            raise BadRequest(mark("Base not usable"), mark("{0} is damaged. Save the base again."), self._name)
        return block


@contextlib.contextmanager
def open_base(path: Path) -> Iterator[BaseReader]:
    """Open a base and check its header. Raise BadRequest if it is none, or damaged, or can't be read."""
    try:
        file = open_regular(path)
    except OSError as error:
        raise BadRequest(
            mark("Base not usable"), mark("{0} can't be read: {1}."), path.name, error.strerror or str(error)
        ) from error
    with file:
        magic, length, crc = _PREFIX.unpack(file.read(_PREFIX.size).ljust(_PREFIX.size, b"\0"))
        if magic != _MAGIC or length > _LONGEST_HEADER:
            raise _foreign(path)
        content = file.read(length)
        if len(content) != length or zlib.crc32(content) != crc:
            raise BadRequest(mark("Base not usable"), mark("{0} is damaged. Save the base again."), path.name)
        try:
            header = msgspec.json.decode(content, type=BaseHeader)
        except msgspec.DecodeError as error:
            raise _foreign(path) from error
        if not (1 <= header.n_kept <= MOST_KEPT and 2 <= header.n_ctx <= _LONGEST_CHUNK):
            raise _foreign(path)
        yield BaseReader(cast(BinaryIO, file), header, path.name)


def _foreign(path: Path) -> BadRequest:
    return BadRequest(mark("Base not usable"), mark("{0} isn't a base that this version of QwenDesk saved."), path.name)
