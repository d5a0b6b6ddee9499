"""The file with the state of one chat: written by one engine, read by a later one.

It begins with a magic number and a header (MessagePack) with the fingerprint of the model and the chat's items. The
engine's memory and the checkpoints follow as they are: compressing them does not pay (docs/adr/016-chat-states.md).
Every part has a CRC-32, because llama.cpp trusts what it is given.
"""

import contextlib
import ctypes
import hashlib
import os
import shutil
import struct
import zlib
from collections.abc import Iterator, Sequence, Sized
from pathlib import Path
from typing import BinaryIO, cast

import msgspec

from qwendesk.core.file_names import Shard
from qwendesk.core.files import replace
from qwendesk.core.input_files import open_regular
from qwendesk.core.option_rules import lora_adapter
from qwendesk.core.options import DecidedOptions
from qwendesk.core.permissions import make_folder
from qwendesk.core.safe_open import create_own
from qwendesk.engine.worker.cache import Checkpoint, Item, MemoryState, thin

_MAGIC = b"QDSTATE1"
_PREFIX = struct.Struct("<8sII")
"""Magic number, length of the header in bytes, CRC-32 of the header."""
_LONGEST_HEADER = 256 * 1024**2
_LEFT_FREE = 1024**3
"""A state is not written if less than this many bytes would be free on its drive afterwards."""
_SAMPLES, _SAMPLE_BYTES, _HEAD_BYTES = 16, 64 * 1024, 4 * 1024**2
"""How much of a model file is hashed: its beginning, which has its header, and samples of its tensors."""
_OPTIONS_THAT_MATTER = (
    "type_k", "type_v", "flash_attn", "swa_full", "kv_overrides", "rope_scaling", "rope_freq_base", "rope_freq_scale",
    "yarn_ext_factor", "yarn_attn_factor", "yarn_beta_fast", "yarn_beta_slow", "yarn_orig_ctx",
)  # fmt: skip
"""Options on which the content of the KV cache depends. Where layers are placed and in which batches a prompt is
processed moves its numbers by rounding only."""


class UnusableState(Exception):
    """A file is not a state of this model and this version, or it is damaged."""


class _Part(msgspec.Struct, frozen=True, array_like=True):
    n_bytes: int
    crc: int


class _CheckpointPart(msgspec.Struct, frozen=True, array_like=True):
    index: int
    pinned: bool
    part: _Part


class _Header(msgspec.Struct, frozen=True):
    fingerprint: str
    items: tuple[Item, ...]
    memory: _Part
    checkpoints: tuple[_CheckpointPart, ...]


class StoredState:
    """An open file whose header is valid. `read` reads the rest."""

    def __init__(self, file: BinaryIO, header: _Header) -> None:
        self._file, self._header = file, header

    @property
    def items(self) -> Sequence[Item]:
        return self._header.items

    @property
    def checkpoint_indexes(self) -> Sequence[int]:
        return [each.index for each in self._header.checkpoints]

    @property
    def n_bytes(self) -> int:
        """The size of the state in memory."""
        return self._header.memory.n_bytes + sum(each.part.n_bytes for each in self._header.checkpoints)

    def read(self) -> MemoryState:
        """Return the state. Raise UnusableState if the file is cut or damaged, and OSError."""
        memory = self._read_part(self._header.memory)
        checkpoints = tuple(
            Checkpoint(each.index, each.pinned, self._read_part(each.part)) for each in self._header.checkpoints
        )
        return MemoryState(self._header.items, checkpoints, memory)

    def _read_part(self, part: _Part) -> Sized:
        if part.n_bytes > os.fstat(self._file.fileno()).st_size:
            raise UnusableState("the file is cut")
        buffer: ctypes.Array[ctypes.c_uint8] = (ctypes.c_uint8 * part.n_bytes)()
        view = memoryview(buffer).cast("B")
        n_read = 0
        while n_read < part.n_bytes:
            n_new = cast(int, self._file.readinto(view[n_read:]))  # type: ignore[attr-defined]
            if not n_new:
                raise UnusableState("the file is cut")
            n_read += n_new
        if zlib.crc32(view) != part.crc:
            raise UnusableState("the file is damaged")
        return buffer


@contextlib.contextmanager
def open_state(path: Path, fingerprint: str) -> Iterator[StoredState]:
    """Open the file of a state and check its header.

    Raise UnusableState if it is of another model or version, or damaged, and OSError.
    """
    with open_regular(path) as file:
        magic, length, crc = _PREFIX.unpack(file.read(_PREFIX.size).ljust(_PREFIX.size, b"\0"))
        if magic != _MAGIC or length > _LONGEST_HEADER:
            raise UnusableState("it is not a state of this version")
        content = file.read(length)
        if len(content) != length or zlib.crc32(content) != crc:
            raise UnusableState("its header is damaged")
        try:
            header = msgspec.msgpack.decode(content, type=_Header)
        except msgspec.DecodeError as error:
            raise UnusableState("its header is of another version") from error
        if header.fingerprint != fingerprint:
            raise UnusableState("it is of another model, or was made with other options")
        yield StoredState(cast(BinaryIO, file), header)


def write(path: Path, state: MemoryState, fingerprint: str, most_bytes: int) -> int:
    """Write a state to `path`, replacing the file there. Return the number of bytes; 0 if it is over `most_bytes`.

    Of the checkpoints, the most useful are written, up to half the size of the memory. Raise OSError, also if the drive
    would be nearly full; no temporary file is left then.
    """
    if len(state.memory) > most_bytes:
        return 0
    checkpoints = thin(state.checkpoints, len(state.memory) // 2)
    header = msgspec.msgpack.encode(
        _Header(
            fingerprint,
            state.items,
            _part(state.memory),
            tuple(_CheckpointPart(each.index, each.pinned, _part(each.data)) for each in checkpoints),
        )
    )
    n_bytes = _PREFIX.size + len(header) + len(state.memory) + sum(len(each.data) for each in checkpoints)
    if n_bytes > most_bytes:
        return 0
    make_folder(path.parent)
    if shutil.disk_usage(path.parent).free < n_bytes + _LEFT_FREE:
        raise OSError("there is too little room on the drive")
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        with create_own(fresh) as file:
            file.write(_PREFIX.pack(_MAGIC, len(header), zlib.crc32(header)))
            file.write(header)
            for data in (state.memory, *(each.data for each in checkpoints)):
                file.write(_view(data))
        replace(fresh, path)
    except OSError:
        fresh.unlink(missing_ok=True)
        raise
    return n_bytes


def fingerprint_of(options: DecidedOptions, engine_version: str) -> str:
    """Return a hash of the model's files, of the options that matter, and of the engine's version.

    Of each file it covers the size, when it was changed, the beginning and samples: reading 20 GB would take longer
    than any chat, and samples alone miss most changes. A copy therefore has a hash of its own. Raise OSError.
    """
    digest = hashlib.sha256(engine_version.encode())
    for path in (*_model_files(options), options.mmproj, *(lora_adapter(text)[0] for text in options.lora)):
        if path:
            _add_file(digest, Path(path))
            status = Path(path).stat()
            digest.update(f"{status.st_mtime_ns} {status.st_ctime_ns}".encode())
    values = {name: getattr(options, name) for name in _OPTIONS_THAT_MATTER}
    values["lora"] = [lora_adapter(text)[1] for text in options.lora]
    digest.update(msgspec.json.encode(values, order="sorted"))
    return digest.hexdigest()


def hash_model_files(options: DecidedOptions) -> str:
    """Return a hash of the beginning and samples of the model's files, the same for a copy. Raise OSError."""
    digest = hashlib.sha256()
    for path in _model_files(options):
        _add_file(digest, Path(path))
    return digest.hexdigest()


def _model_files(options: DecidedOptions) -> Sequence[str]:
    shard = Shard.parse(options.model)
    return (options.model,) if shard is None else shard.siblings


def _add_file(digest: "hashlib._Hash", path: Path) -> None:
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        digest.update(size.to_bytes(8, "little"))
        digest.update(file.read(_HEAD_BYTES))
        for number in range(_SAMPLES):
            file.seek(max(0, size - _SAMPLE_BYTES) * number // (_SAMPLES - 1))
            digest.update(file.read(_SAMPLE_BYTES))


def _part(data: Sized) -> _Part:
    return _Part(len(data), zlib.crc32(_view(data)))


def _view(data: Sized) -> memoryview:
    return memoryview(cast(bytes, data)).cast("B")
