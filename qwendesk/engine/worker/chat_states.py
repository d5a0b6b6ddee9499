"""Keeps the states of recent chats, in files too, so that going back to a chat processes nothing of it again.

The engine's memory holds one chat. When the next request belongs to another chat, the memory is copied to RAM first;
when a chat comes back, its state is taken from there, or from the file that an earlier engine wrote.

It begins with a magic number and a header (MessagePack) with the fingerprint of the model and the chat's items. The
engine's memory and the checkpoints follow as they are: compressing them does not pay (docs/adr/016-chat-states.md).
Every part has a CRC-32, because llama.cpp trusts what it is given.
"""

import contextlib
import ctypes
import hashlib
import logging
import os
import shutil
import struct
import time
import zlib
from collections.abc import Callable, Iterator, Sequence, Sized
from pathlib import Path
from typing import BinaryIO, cast

import msgspec

from qwendesk.core.file_names import Shard
from qwendesk.core.files import replace
from qwendesk.core.input_files import open_regular
from qwendesk.core.option_rules import lora_adapter
from qwendesk.core.options import DecidedOptions
from qwendesk.core.permissions import create_own, make_folder
from qwendesk.engine.worker.cache import Checkpoint, Item, MemoryState, PromptCache, count_cells, reusable_items, thin
from qwendesk.engine.worker.engine_calls import EngineFault

_logger = logging.getLogger(__name__)

# A state is kept, or taken back, only for this many KV cells: fewer tokens are processed again in no time.
FEWEST_CELLS = 256


# A copy that should take longer isn't made while a request waits.
_LONGEST_COPY_S = 0.5
# The weight of the latest copy in the running mean of their speed.
_NEWEST_SHARE = 0.5
_MIB = 1024**2

# A client and one of its chats, as in a Generate request.
_Chat = tuple[str, str]


class SavedChat(msgspec.Struct, frozen=True, eq=False):
    """The state of a chat, to be written to a file."""

    state: MemoryState
    fingerprint: str

    @property
    def n_tokens(self) -> int:
        return count_cells(self.state.items)

    def write(self, path: Path, most_bytes: int) -> int:
        """Write the state as `write_state` does."""
        return write_state(path, self.state, self.fingerprint, most_bytes)


class MemoryAside(msgspec.Struct, frozen=True, eq=False):
    """The memory of an answer that goes on later. It belongs to that answer alone."""

    state: MemoryState | None
    """None if nothing was processed yet."""
    client: str
    chat: str


class ChatStates:
    """Knows which chat is in the prompt cache, and keeps the states of others in RAM.

    A prompt begins with what the same client's chats have of it, never with another client's: how many tokens were
    reused, and how soon the answer came, would tell one client what another has asked.

    The least recently used are dropped first: beyond `budget_bytes`, and when less RAM than the state needs is free
    according to `free_bytes`.
    """

    def __init__(
        self,
        cache: PromptCache,
        *,
        can_cut_anywhere: bool,
        fingerprint: str,
        budget_bytes: int,
        free_bytes: Callable[[], int],
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        """`fingerprint` identifies the model and the options on which the content of a state depends.

        `clock` returns seconds.
        """
        self._cache, self._can_cut_anywhere = cache, can_cut_anywhere
        self._fingerprint = fingerprint
        self._budget_bytes, self._free_bytes, self._clock = budget_bytes, free_bytes, clock
        self._copied_bytes_s: float | None = None
        self._client = ""
        """The client whose chat is in the prompt cache, even after `set_aside`."""
        self._current = ""
        self._kept: dict[_Chat, MemoryState] = {}
        """The most recently used last."""

    @property
    def kept(self) -> tuple[str, ...]:
        """The chats whose states are in RAM, the least recently used first."""
        return tuple(chat for _, chat in self._kept)

    def switch_to(
        self, chat: str, wanted: Sequence[Item], file: str = "", *, client: str = "", is_idle: bool = False
    ) -> None:
        """Make `chat` the current one, with as much of the prompt `wanted` in memory as any state of `client` has.

        Unless the engine `is_idle`, an answer waits for this, and no copy is made that takes long. An empty `chat` is
        one of which nothing is kept. `file` may hold the state of `chat`; a file that cannot be used is ignored.
        """
        is_same_client = client == self._client
        in_memory = self._cache.reusable_cells(wanted) if is_same_client else 0
        found, most = None, in_memory + FEWEST_CELLS - 1
        for (owner, _), state in self._kept.items():
            indexes = [each.index for each in state.checkpoints]
            cells = self._reusable_cells(state.items, indexes, wanted) if owner == client else 0
            if cells > most:
                found, most = state, cells
        is_other_chat = (client, chat) != (self._client, self._current)
        found = (self._read(file, wanted, most) if file and (is_other_chat or not in_memory) else None) or found
        self._kept.pop((client, chat), None)  # it would be a second copy of what the memory holds from now on
        if is_other_chat:
            self._keep_current(is_idle=is_idle)
        self._client, self._current = client, chat
        if found is not None and not self._cache.adopt(found):
            _logger.warning("The engine refused the saved state of a chat. The chat is processed again.")
        elif found is None and not is_same_client:
            self._cache.clear()

    def set_aside(self) -> MemoryAside | None:
        """Return a copy of the memory for an answer that goes on later; None if there is no room for it.

        States of other chats are dropped for it. No chat is current afterwards.
        """
        state = None
        if self._cache.n_cells:
            n_bytes = self._cache.n_bytes
            while self._kept and self._free_bytes() < n_bytes:
                del self._kept[next(iter(self._kept))]
            state = self._copy_of_memory() if self._free_bytes() >= n_bytes else None
            if state is None:
                return None
        aside = MemoryAside(state, self._client, self._current)
        self._current = ""
        return aside

    def take_back(self, aside: MemoryAside) -> bool:
        """Put the memory of an answer back that goes on now. Return False if the engine refused it."""
        self._keep_current(is_idle=False)
        self._client, self._current = aside.client, aside.chat
        if aside.state is None:
            self._cache.clear()
            return True
        return self._cache.adopt(aside.state)

    def copy(self, chat: str, most_bytes: int, *, is_idle: bool = True) -> SavedChat | None:
        """Return the state of `chat`, one of the app's own, to be written to a file.

        None if there is none that is worth it, if it is larger than `most_bytes`, if there is no room for a copy, or if
        it would take long although the engine isn't idle.
        """
        if not chat:
            return None
        state = self._kept.get(("", chat))
        if (self._client, self._current) == ("", chat):
            n_bytes = self._cache.n_bytes
            is_made = n_bytes <= min(most_bytes, self._free_bytes()) and (is_idle or not self._takes_long(n_bytes))
            state = self._copy_of_memory() if is_made else None
        if state is None or count_cells(state.items) < FEWEST_CELLS:
            return None
        return SavedChat(state, self._fingerprint)

    def _reusable_cells(self, items: Sequence[Item], indexes: Sequence[int], wanted: Sequence[Item]) -> int:
        n_items = reusable_items(items, indexes, wanted, can_cut_anywhere=self._can_cut_anywhere)
        return count_cells(wanted[:n_items])

    def _read(self, file: str, wanted: Sequence[Item], most: int) -> MemoryState | None:
        """Return the state in `file` if it has more than `most` cells of `wanted`."""
        try:
            with open_state(Path(file), self._fingerprint) as stored:
                if self._reusable_cells(stored.items, stored.checkpoint_indexes, wanted) <= most:
                    return None
                return stored.read() if stored.n_bytes <= self._free_bytes() else None
        except FileNotFoundError:
            return None
        except (OSError, MemoryError, UnusableState) as error:
            _logger.warning("The saved state of a chat can't be used: %s", error)
            return None

    def _copy_of_memory(self) -> MemoryState | None:
        began = self._clock()
        try:
            state = self._cache.copy()
        except (MemoryError, EngineFault) as error:
            _logger.warning("The state of a chat could not be copied: %s", error)
            return None
        seconds = self._clock() - began
        if state is not None and seconds > 0:
            before = self._copied_bytes_s or state.n_bytes / seconds
            self._copied_bytes_s = before + _NEWEST_SHARE * (state.n_bytes / seconds - before)
            _logger.info("The state of a chat was copied: %d MiB in %.3f s", state.n_bytes // _MIB, seconds)
        return state

    def _takes_long(self, n_bytes: int) -> bool:
        """Return whether copying `n_bytes` should take too long for a request that waits; False before any copy."""
        return self._copied_bytes_s is not None and n_bytes > _LONGEST_COPY_S * self._copied_bytes_s

    def _keep_current(self, *, is_idle: bool) -> None:
        """Copy the current chat's state to RAM, if there is room."""
        if not self._current or self._cache.n_cells < FEWEST_CELLS or not self._budget_bytes:
            return
        n_bytes = self._cache.n_bytes
        if not is_idle and self._takes_long(n_bytes):
            _logger.info("The state of a chat is not kept in RAM: copying %d MiB takes too long now", n_bytes // _MIB)
            return
        while self._kept and (self._kept_bytes + n_bytes > self._budget_bytes or self._free_bytes() < n_bytes):
            del self._kept[next(iter(self._kept))]
        if n_bytes > self._budget_bytes or self._free_bytes() < n_bytes:
            _logger.info("The state of a chat is not kept in RAM: it has %d MiB", n_bytes // _MIB)
            return
        state = self._copy_of_memory()
        if state is not None:
            self._kept[self._client, self._current] = state

    @property
    def _kept_bytes(self) -> int:
        return sum(state.n_bytes for state in self._kept.values())


_MAGIC = b"QDSTATE1"
# Magic number, length of the header in bytes, CRC-32 of the header.
_PREFIX = struct.Struct("<8sII")
_LONGEST_HEADER = 256 * 1024**2
# A state is not written if less than this many bytes would be free on its drive afterwards.
_LEFT_FREE = 1024**3
# How much of a model file is hashed: its beginning, which has its header, and samples of its tensors.
_SAMPLES, _SAMPLE_BYTES, _HEAD_BYTES = 16, 64 * 1024, 4 * 1024**2
# Options on which the content of the KV cache depends. Where layers are placed and in which batches a prompt is
# processed moves its numbers by rounding only.
_OPTIONS_THAT_MATTER = (
    "type_k", "type_v", "flash_attn", "swa_full", "kv_overrides", "rope_scaling", "rope_freq_base", "rope_freq_scale",
    "yarn_ext_factor", "yarn_attn_factor", "yarn_beta_fast", "yarn_beta_slow", "yarn_orig_ctx",
)  # fmt: skip


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


def write_state(path: Path, state: MemoryState, fingerprint: str, most_bytes: int) -> int:
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
