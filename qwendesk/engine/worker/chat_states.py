"""Keeps the states of recent chats, so that going back to a chat processes nothing of it again.

The engine's memory holds one chat. When the next request belongs to another chat, the memory is copied to RAM first;
when a chat comes back, its state is taken from there, or from the file that an earlier engine wrote (state_file.py).
"""

import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from qwendesk.engine.worker import state_file
from qwendesk.engine.worker.cache import Item, MemoryState, PromptCache, count_cells, reusable_items
from qwendesk.engine.worker.engine_calls import EngineFault

_logger = logging.getLogger(__name__)

FEWEST_CELLS = 256
"""A state is kept, or taken back, only for this many KV cells: fewer tokens are processed again in no time."""


_LONGEST_COPY_S = 0.5
"""A copy that should take longer isn't made while a request waits."""
_NEWEST_SHARE = 0.5
"""The weight of the latest copy in the running mean of their speed."""
_MIB = 1024**2

_Chat = tuple[str, str]
"""A client and one of its chats, as in a Generate request."""


class SavedChat(msgspec.Struct, frozen=True, eq=False):
    """The state of a chat, to be written to a file."""

    state: MemoryState
    fingerprint: str

    @property
    def n_tokens(self) -> int:
        return count_cells(self.state.items)

    def write(self, path: Path, most_bytes: int) -> int:
        """Write the state as `state_file.write` does."""
        return state_file.write(path, self.state, self.fingerprint, most_bytes)


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
        """Whose chat is in the prompt cache, even after `put_aside`."""
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

    def put_aside(self) -> None:
        """Keep the current chat's state in RAM, however long the copy takes. No chat is current afterwards."""
        self._keep_current(is_idle=True)
        self._current = ""

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
            with state_file.open_state(Path(file), self._fingerprint) as stored:
                if self._reusable_cells(stored.items, stored.checkpoint_indexes, wanted) <= most:
                    return None
                return stored.read() if stored.n_bytes <= self._free_bytes() else None
        except FileNotFoundError:
            return None
        except (OSError, MemoryError, state_file.UnusableState) as error:
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
