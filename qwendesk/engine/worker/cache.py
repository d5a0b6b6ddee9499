"""The prompt cache: it tracks what the context's memory holds, and rolls it back to checkpoints.

Qwen3.5 is a hybrid model: its recurrent layers cannot drop their last tokens, so llama.cpp alone processes the whole
prompt again in every turn. A checkpoint is a copy of the recurrent state at one position. The KV cache of the tokens
before that position is still in memory, so the rollback is exact: restore the copy and cut the KV cache there.
docs/adr/004-prompt-cache.md has the rules that keep it exact.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterable, Sequence, Sized
from typing import Protocol, cast

import llama_cpp.llama_cpp as C
import msgspec
import numpy as np

from qwendesk.engine.worker.engine_calls import SEQUENCE, EngineFault
from qwendesk.engine.worker.model import LoadedModel


class ImageItem(msgspec.Struct, frozen=True):
    """An image in memory. It takes `n_tokens` KV cells but only `n_positions` positions (M-RoPE)."""

    key: str
    n_tokens: int
    n_positions: int


# One token id, or one whole image.
Item = int | ImageItem


class Checkpoint(msgspec.Struct, frozen=True, eq=False):
    """The recurrent state after `index` items. Pinned checkpoints (end of the system prompt) are dropped last."""

    index: int
    pinned: bool
    data: Sized
    """The return value of `Memory.save`; only its length in bytes matters here."""


class MemoryState(msgspec.Struct, frozen=True, eq=False):
    """A copy of everything the memory held of one chat."""

    items: tuple[Item, ...]
    checkpoints: tuple[Checkpoint, ...]
    memory: Sized
    """The return value of `Memory.save_all`."""

    @property
    def n_bytes(self) -> int:
        return len(self.memory) + sum(len(each.data) for each in self.checkpoints)


class Memory(Protocol):
    """The memory of the engine's context. Positions count from 0."""

    def save(self) -> Sized:
        """Return a copy of what cannot be cut: the recurrent state."""

    def restore(self, data: Sized) -> bool: ...

    def n_bytes(self) -> int:
        """Return the size of a copy by `save_all`."""

    def save_all(self) -> Sized:
        """Return a copy of the whole memory, with the KV cache."""

    def restore_all(self, data: Sized) -> bool:
        """Replace an empty memory by `data`, a return value of `save_all`. Return False if the engine could not."""

    def cut(self, position: int) -> bool:
        """Drop everything from `position` on. Return False if this memory cannot do that."""

    def clear(self) -> None: ...


class Rollback(msgspec.Struct, frozen=True):
    """The result of a rollback: prompt processing starts at item `start`.

    `note` says why items that were in memory must be processed again; it is empty if there are none, or only a few.
    """

    start: int
    note: str = ""


def common_prefix_length(cached: Sequence[Item], wanted: Sequence[Item]) -> int:
    """Return the number of items at the beginning that both sequences share."""
    for index, (cached_item, wanted_item) in enumerate(zip(cached, wanted, strict=False)):
        if cached_item != wanted_item:
            return index
    return min(len(cached), len(wanted))


def count_cells(items: Iterable[Item]) -> int:
    """Return how many KV cells `items` take: one for a token, and one for each token of an image."""
    return sum(1 if isinstance(item, int) else item.n_tokens for item in items)


def reusable_items(
    items: Sequence[Item], checkpoint_indexes: Sequence[int], wanted: Sequence[Item], *, can_cut_anywhere: bool
) -> int:
    """Return how many items of `wanted` need no processing after a rollback of a memory that holds `items`."""
    shared = max(0, min(common_prefix_length(items, wanted), len(wanted) - 1))
    if can_cut_anywhere or shared == len(items):
        return shared
    return max((index for index in checkpoint_indexes if index <= shared), default=0)


def thin(checkpoints: Sequence[Checkpoint], budget_bytes: int) -> list[Checkpoint]:
    """Drop checkpoints until the rest fits into the budget. `checkpoints` must be ordered by index.

    The next turn most likely needs a checkpoint near the end, so they stay closest together there: the checkpoint
    dropped first is the one with the smallest ratio of the gap it leaves to its distance from the end. The last
    checkpoint is never dropped. Pinned ones are dropped only when no others are left.
    """
    kept = list(checkpoints)
    while len(kept) > 1 and sum(len(each.data) for each in kept) > budget_bytes:
        loose = [i for i, each in enumerate(kept[:-1]) if not each.pinned] or list(range(len(kept) - 1))
        end = kept[-1].index + 1

        def widened(i: int, kept: list[Checkpoint] = kept, end: int = end) -> float:
            before = kept[i - 1].index if i else 0
            return (kept[i + 1].index - before) / (end - kept[i].index)

        del kept[min(loose, key=widened)]
    return kept


class PromptCache:
    """Tracks the items in `memory` and rolls it back."""

    def __init__(self, memory: Memory, *, can_cut_anywhere: bool, budget_bytes: int) -> None:
        self._memory = memory
        self._can_cut_anywhere = can_cut_anywhere
        self._budget_bytes = budget_bytes
        self._items: list[Item] = []
        self._positions = [0]
        self._n_cells = [0]
        self._checkpoints: list[Checkpoint] = []
        self._is_inconsistent = False
        """A decode was aborted halfway: only a restore, a cut or a clear makes the memory usable again."""

    @property
    def items(self) -> Sequence[Item]:
        return self._items

    @property
    def position(self) -> int:
        """The position of the next item."""
        return self._positions[-1]

    @property
    def n_cells(self) -> int:
        """The number of KV cells in use. An image uses one per token, however many positions it has."""
        return self._n_cells[-1]

    @property
    def n_bytes(self) -> int:
        """The size of a copy of the memory with its checkpoints."""
        return self._memory.n_bytes() + sum(len(each.data) for each in self._checkpoints)

    def reusable_cells(self, wanted: Sequence[Item]) -> int:
        """Return how many KV cells `roll_back` to `wanted` would keep, if the last decode was not aborted."""
        can_cut = self._can_cut_anywhere
        return self._n_cells[reusable_items(self._items, self.checkpoint_indexes, wanted, can_cut_anywhere=can_cut)]

    @property
    def checkpoint_indexes(self) -> tuple[int, ...]:
        return tuple(each.index for each in self._checkpoints)

    def append(self, *items: Item) -> None:
        """Record that `items` were decoded after the items in memory."""
        for item in items:
            self._items.append(item)
            self._positions.append(self._positions[-1] + (1 if isinstance(item, int) else item.n_positions))
            self._n_cells.append(self._n_cells[-1] + (1 if isinstance(item, int) else item.n_tokens))

    def cut_unrecorded(self) -> bool:
        """Cut off what was decoded after the items, such as drafts. Return False if this memory cannot do that."""
        return self._memory.cut(self.position)

    def mark_inconsistent(self) -> None:
        """Record that a decode was aborted, so the memory holds an unknown part of it."""
        self._is_inconsistent = True

    def save(self, *, pinned: bool) -> None:
        """Save a checkpoint after the last item, if this memory needs checkpoints and has none there."""
        index = len(self._items)
        if self._can_cut_anywhere or index == 0 or any(each.index == index for each in self._checkpoints):
            return
        data = self._memory.save()
        if len(data) <= self._budget_bytes:
            self._checkpoints = thin([*self._checkpoints, Checkpoint(index, pinned, data)], self._budget_bytes)

    def clear(self) -> None:
        """Clear the memory and drop all items and checkpoints."""
        self._memory.clear()
        self._items, self._positions, self._n_cells = [], [0], [0]
        self._checkpoints, self._is_inconsistent = [], False

    def copy(self) -> MemoryState | None:
        """Return a copy of the memory and its checkpoints; None if nothing usable is in memory.

        After an aborted decode, the memory is rolled back to its last checkpoint first.
        """
        if self._is_inconsistent and not (self._can_cut_anywhere and self._memory.cut(self.position)):
            self._restore(len(self._items))
        self._is_inconsistent = False
        if not self._items:
            return None
        return MemoryState(tuple(self._items), tuple(self._checkpoints), self._memory.save_all())

    def adopt(self, state: MemoryState) -> bool:
        """Replace the memory by `state`. Return False if the engine refused it; the memory is empty then."""
        self.clear()
        if not self._memory.restore_all(state.memory):
            self._memory.clear()
            return False
        self.append(*state.items)
        self._checkpoints = thin(state.checkpoints, self._budget_bytes)
        return True

    def roll_back(self, wanted: Sequence[Item]) -> Rollback:
        """Roll the memory back to the longest usable prefix of `wanted`. At least one item is left to decode."""
        shared = min(common_prefix_length(self._items, wanted), len(wanted) - 1)
        if shared == len(self._items) and not self._is_inconsistent:
            return Rollback(shared)
        if self._can_cut_anywhere and self._memory.cut(self._positions[shared]):
            self._drop_from(shared)
            return Rollback(shared)
        return self._restore(shared)

    def _restore(self, shared: int) -> Rollback:
        usable = [each for each in self._checkpoints if each.index <= shared]
        was_inconsistent = self._is_inconsistent
        while usable:
            checkpoint = usable.pop()
            self._drop_from(checkpoint.index)
            if self._memory.restore(checkpoint.data) and self._memory.cut(self._positions[checkpoint.index]):
                return Rollback(
                    checkpoint.index, _rollback_note(shared - checkpoint.index, was_inconsistent=was_inconsistent)
                )
        had_items = shared > 0
        self.clear()
        return Rollback(0, _rollback_note(shared, was_inconsistent=was_inconsistent) if had_items else "")

    def _drop_from(self, index: int) -> None:
        """Drop the items from `index` on, and the checkpoints after it, because their KV cache gets overwritten."""
        del self._items[index:]
        del self._positions[index + 1 :]
        del self._n_cells[index + 1 :]
        self._checkpoints = [each for each in self._checkpoints if each.index <= index]
        self._is_inconsistent = False


def _rollback_note(n_lost: int, *, was_inconsistent: bool) -> str:
    """Return why `n_lost` items that were in memory must be processed again; "" if they are only a few."""
    if n_lost <= _FEW_ITEMS:
        return ""
    if was_inconsistent:
        return f"the last answer was stopped in mid-step, so {n_lost:,} tokens are read again"
    return f"no checkpoint was kept nearer to the change, so {n_lost:,} tokens are read again"


# Losing up to this many items is normal and not worth a note: checkpoints are this far apart (layout.NEAR_ITEMS).
_FEW_ITEMS = 128


# A copy begins with the bytes of its three parts: the model's state, the head's state, and the hidden row.
_PREFIX = struct.Struct("<QQQ")
# The flags of llama_state_seq_get_data_ext for KV cache and recurrent state together.
_WHOLE_STATE = 0


class ContextMemory:
    """A checkpoint has only what cannot be cut (recurrent state, sliding windows); the KV cache stays in place.

    The state of a chat has both. With a draft head, both have the hidden row that it drafts from, and the state of a
    chat has the head's KV cache.
    """

    def __init__(self, model: LoadedModel) -> None:
        self._model = model

    def save(self) -> Sized:
        return self._copy(C.LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY, with_head=False)

    def restore(self, data: Sized) -> bool:
        """Restore `data`, a return value of `save`. Return False if the engine could not."""
        return self._replace(data, C.LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY)

    def n_bytes(self) -> int:
        """Return the size of a copy by `save_all`."""
        return _PREFIX.size + sum(self._sizes(_WHOLE_STATE, with_head=True))

    def save_all(self) -> Sized:
        return self._copy(_WHOLE_STATE, with_head=True)

    def restore_all(self, data: Sized) -> bool:
        return self._replace(data, _WHOLE_STATE)

    def cut(self, position: int) -> bool:
        if not C.llama_memory_seq_rm(self._model.memory, SEQUENCE, position, -1):
            return False
        if self._model.head is not None:
            self._model.head.cut(position)
        return True

    def clear(self) -> None:
        C.llama_memory_clear(self._model.memory, True)
        if self._model.head is not None:
            self._model.head.clear()

    def _sizes(self, flags: int, *, with_head: bool) -> tuple[int, int, int]:
        model, head = self._model, self._model.head
        own = C.llama_state_seq_get_size_ext(model.ctx, SEQUENCE, flags)
        if head is None:
            return own, 0, 0
        return own, C.llama_state_seq_get_size_ext(head.ctx, SEQUENCE, flags) if with_head else 0, head.hidden.nbytes

    def _copy(self, flags: int, *, with_head: bool) -> Sized:
        own, of_head, hidden = sizes = self._sizes(flags, with_head=with_head)
        buffer: ctypes.Array[ctypes.c_uint8] = (ctypes.c_uint8 * (_PREFIX.size + sum(sizes)))()
        _PREFIX.pack_into(buffer, 0, *sizes)
        _save(self._model.ctx, buffer, _PREFIX.size, own, flags)
        head = self._model.head
        if head is not None:
            if of_head:
                _save(head.ctx, buffer, _PREFIX.size + own, of_head, flags)
            memoryview(buffer).cast("B")[_PREFIX.size + own + of_head :] = head.hidden.tobytes()[:hidden]
        return buffer

    def _replace(self, data: Sized, flags: int) -> bool:
        """Restore a copy. What another session had no head for is left out: the head drafts worse then."""
        buffer = cast("ctypes.Array[ctypes.c_uint8]", data)
        own, of_head, hidden = _PREFIX.unpack_from(buffer, 0)
        if _PREFIX.size + own + of_head + hidden != len(data):
            return False
        if not _restore(self._model.ctx, buffer, _PREFIX.size, own, flags):
            return False
        head = self._model.head
        if head is None:
            return True
        if of_head and not _restore(head.ctx, buffer, _PREFIX.size + own, of_head, flags):
            head.clear()
        row = np.frombuffer(memoryview(buffer), np.float32, hidden // 4, _PREFIX.size + own + of_head)
        head.restore_hidden(row.copy() if len(row) == len(head.hidden) else np.zeros_like(head.hidden))
        return True


def _save(ctx: C.llama_context_p, buffer: ctypes.Array[ctypes.c_uint8], offset: int, size: int, flags: int) -> None:
    place = ctypes.cast(ctypes.byref(buffer, offset), ctypes.POINTER(ctypes.c_uint8))
    if C.llama_state_seq_get_data_ext(ctx, place, size, SEQUENCE, flags) != size:
        raise EngineFault("the engine could not copy its state")


def _restore(ctx: C.llama_context_p, buffer: ctypes.Array[ctypes.c_uint8], offset: int, size: int, flags: int) -> bool:
    place = ctypes.cast(ctypes.byref(buffer, offset), ctypes.POINTER(ctypes.c_uint8))
    return bool(C.llama_state_seq_set_data_ext(ctx, place, size, SEQUENCE, flags) == size)
