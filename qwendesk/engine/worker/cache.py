"""The prompt cache: what the context's memory holds, and the checkpoints it can be rewound to.

Qwen3.5 is hybrid: its recurrent layers cannot drop their last tokens, so llama.cpp alone reads the whole
prompt again every turn. A checkpoint is a copy of the recurrent state at one place; the KV cache of the
tokens before that place is still in memory, so restoring it and cutting the KV cache there is exact.
The rules that keep it exact are in docs/adr/004-prompt-cache.md.
"""

from collections.abc import Sequence, Sized
from typing import Protocol

import msgspec


class ImageItem(msgspec.Struct, frozen=True):
    """A picture in memory: `n_tokens` KV cells but only `n_positions` positions (M-RoPE)."""

    key: str
    n_tokens: int
    n_positions: int


Item = int | ImageItem
"""One token id, or one whole picture."""


class Checkpoint(msgspec.Struct, frozen=True, eq=False):
    """The recurrent state after `index` items. Pinned ones (the system prompt's end) are thinned last."""

    index: int
    pinned: bool
    data: Sized
    """What the memory saved; only its length in bytes matters here."""


class Memory(Protocol):
    """The engine's side of it; positions count from 0."""

    def save(self) -> Sized: ...

    def restore(self, data: Sized) -> bool: ...

    def cut(self, position: int) -> bool:
        """Drop everything from `position` on. False when this memory cannot."""

    def clear(self) -> None: ...


class Rewind(msgspec.Struct, frozen=True):
    """Where reading starts, and why not later; `note` is empty when nothing is read needlessly."""

    start: int
    note: str = ""


def common_prefix(held: Sequence[Item], wanted: Sequence[Item]) -> int:
    """How many items both begin with."""
    for index, (have, want) in enumerate(zip(held, wanted, strict=False)):
        if have != want:
            return index
    return min(len(held), len(wanted))


def thin(checkpoints: Sequence[Checkpoint], budget_bytes: int) -> list[Checkpoint]:
    """`checkpoints` (ordered by index) with as many dropped as the budget asks for.

    What is kept lies ever closer together towards the end, where the next turn will need it: dropped first
    is the one whose loss widens a gap least in proportion to its distance from the end. The last one is
    never dropped while another can be; pinned ones go only when nothing else is left.
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
    """Tracks what is in `memory`, item by item, and rewinds it."""

    def __init__(self, memory: Memory, *, rewinds_freely: bool, budget_bytes: int) -> None:
        self._memory = memory
        self._rewinds_freely = rewinds_freely
        self._budget_bytes = budget_bytes
        self._items: list[Item] = []
        self._positions = [0]
        self._n_cells = [0]
        self._checkpoints: list[Checkpoint] = []
        self._torn = False
        """A decode was aborted half-way: only a restore or a clear makes the memory usable again."""

    @property
    def items(self) -> Sequence[Item]:
        return self._items

    @property
    def position(self) -> int:
        """The position the next item gets."""
        return self._positions[-1]

    @property
    def n_cells(self) -> int:
        """Places of the context that are taken; a picture takes one per token, whatever its positions."""
        return self._n_cells[-1]

    @property
    def checkpoint_indexes(self) -> tuple[int, ...]:
        return tuple(each.index for each in self._checkpoints)

    def append(self, *items: Item) -> None:
        """Note that `items` were fed after what is held."""
        for item in items:
            self._items.append(item)
            self._positions.append(self._positions[-1] + (1 if isinstance(item, int) else item.n_positions))
            self._n_cells.append(self._n_cells[-1] + (1 if isinstance(item, int) else item.n_tokens))

    def tear(self) -> None:
        """Note that a decode was aborted: the memory holds an unknown part of it."""
        self._torn = True

    def save(self, *, pinned: bool) -> None:
        """Take a checkpoint here, if this memory needs any and there is not one already."""
        index = len(self._items)
        if self._rewinds_freely or index == 0 or any(each.index == index for each in self._checkpoints):
            return
        data = self._memory.save()
        if len(data) <= self._budget_bytes:
            self._checkpoints = thin([*self._checkpoints, Checkpoint(index, pinned, data)], self._budget_bytes)

    def clear(self) -> None:
        """Forget everything."""
        self._memory.clear()
        self._items, self._positions, self._n_cells = [], [0], [0]
        self._checkpoints, self._torn = [], False

    def rewind(self, wanted: Sequence[Item]) -> Rewind:
        """Bring the memory to the longest usable prefix of `wanted`, leaving at least one item to feed."""
        shared = min(common_prefix(self._items, wanted), len(wanted) - 1)
        if shared == len(self._items) and not self._torn:
            return Rewind(shared)
        if self._rewinds_freely and self._memory.cut(self._positions[shared]):
            self._forget_from(shared)
            return Rewind(shared)
        return self._restore(shared)

    def _restore(self, shared: int) -> Rewind:
        usable = [each for each in self._checkpoints if each.index <= shared]
        was_torn = self._torn
        while usable:
            checkpoint = usable.pop()
            self._forget_from(checkpoint.index)
            if self._memory.restore(checkpoint.data) and self._memory.cut(self._positions[checkpoint.index]):
                return Rewind(checkpoint.index, _why(shared - checkpoint.index, was_torn=was_torn))
        had_items = shared > 0
        self.clear()
        return Rewind(0, _why(shared, was_torn=was_torn) if had_items else "")

    def _forget_from(self, index: int) -> None:
        """Items from `index` on are gone, and with them every checkpoint beyond: their KV cache is overwritten."""
        del self._items[index:]
        del self._positions[index + 1 :]
        del self._n_cells[index + 1 :]
        self._checkpoints = [each for each in self._checkpoints if each.index <= index]
        self._torn = False


def _why(needless: int, *, was_torn: bool) -> str:
    """Why `needless` items that were in memory are read again."""
    if needless <= _FEW_ITEMS:
        return ""
    if was_torn:
        return f"the last answer was stopped in mid-step, so {needless:,} tokens are read again"
    return f"no checkpoint was kept nearer to the change, so {needless:,} tokens are read again"


_FEW_ITEMS = 128
"""What is lost because checkpoints are not placed closer than this (layout.NEAR_ITEMS) is not worth a note."""
