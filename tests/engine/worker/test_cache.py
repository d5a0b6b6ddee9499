"""The prompt cache against a memory that behaves like Qwen3.5's: it cannot drop its last tokens."""

import itertools
from collections.abc import Sized

from hypothesis import given, settings
from hypothesis import strategies as st

from qwendesk.engine.worker.cache import Checkpoint, ImageItem, PromptCache, common_prefix_length, thin


class HybridMemory:
    """Attention part and recurrent part each know which positions they have seen."""

    def __init__(self) -> None:
        self.attention = 0
        self.recurrent = 0

    def feed(self, n_positions: int) -> None:
        assert self.attention == self.recurrent, "a token was fed into a memory whose halves differ"
        self.attention += n_positions
        self.recurrent += n_positions

    def save(self) -> Sized:
        return self.recurrent.to_bytes(8, "big") + bytes(92)

    def restore(self, data: Sized) -> bool:
        assert isinstance(data, bytes)
        self.recurrent = int.from_bytes(data[:8], "big")
        return True

    def n_bytes(self) -> int:
        return len(self.save_all())

    def save_all(self) -> Sized:
        return self.attention.to_bytes(8, "big") + self.recurrent.to_bytes(8, "big")

    def restore_all(self, data: Sized) -> bool:
        assert isinstance(data, bytes)
        self.attention = int.from_bytes(data[:8], "big")
        return self.restore(data[8:])

    def cut(self, position: int) -> bool:
        if self.recurrent > position:
            return False
        assert self.attention >= position, "the checkpoint's KV cache is gone"
        self.attention = position
        return True

    def clear(self) -> None:
        self.attention = self.recurrent = 0


class PlainMemory(HybridMemory):
    def cut(self, position: int) -> bool:
        self.attention = self.recurrent = position
        return True


def filled(memory: HybridMemory, cache: PromptCache, tokens: list[int], saves: set[int]) -> None:
    start = len(cache.items)
    for index, token in enumerate(tokens[start:], start):
        memory.feed(1)
        cache.append(token)
        if index + 1 in saves:
            cache.save(pinned=False)


def new_cache(memory: HybridMemory, budget_bytes: int = 10_000) -> PromptCache:
    return PromptCache(memory, can_cut_anywhere=isinstance(memory, PlainMemory), budget_bytes=budget_bytes)


def test_prefill_continues_where_the_cache_ends() -> None:
    memory = HybridMemory()
    cache = new_cache(memory)
    filled(memory, cache, [1, 2, 3], set())
    assert cache.roll_back([1, 2, 3, 4]).start == 3


def test_rollback_uses_the_nearest_checkpoint_and_drops_later_ones() -> None:
    memory = HybridMemory()
    cache = new_cache(memory)
    filled(memory, cache, list(range(20)), {4, 9, 15})
    wanted = [*range(12), 99, 98]
    assert cache.roll_back(wanted).start == 9
    assert memory.attention == memory.recurrent == 9
    assert cache.checkpoint_indexes == (4, 9)


def test_at_least_one_token_is_processed() -> None:
    memory = HybridMemory()
    cache = new_cache(memory)
    filled(memory, cache, [1, 2, 3, 4], {2})
    assert cache.roll_back([1, 2, 3, 4]).start == 2


def test_attention_only_models_need_no_checkpoint() -> None:
    memory = PlainMemory()
    cache = new_cache(memory)
    filled(memory, cache, list(range(10)), {2})
    assert cache.checkpoint_indexes == ()
    assert cache.roll_back([0, 1, 2, 3, 4, 77]).start == 5
    assert memory.attention == 5


def test_nothing_is_reusable_for_an_empty_prompt() -> None:
    for memory in (HybridMemory(), PlainMemory()):
        cache = new_cache(memory)
        filled(memory, cache, list(range(10)), {5})
        assert cache.reusable_cells([]) == 0


def test_without_a_checkpoint_the_whole_prompt_is_processed_with_a_note() -> None:
    memory = HybridMemory()
    cache = new_cache(memory)
    filled(memory, cache, list(range(500)), set())
    rollback = cache.roll_back([*range(400), 999])
    assert rollback.start == 0
    assert "400 tokens" in rollback.note
    assert memory.attention == 0


def test_inconsistent_cache_is_never_continued() -> None:
    memory = HybridMemory()
    cache = new_cache(memory)
    filled(memory, cache, list(range(300)), {5})
    memory.attention += 1  # the abort left half a token behind
    cache.mark_inconsistent()
    rollback = cache.roll_back([*range(300), 301])
    assert rollback.start == 5
    assert "stopped in mid-step" in rollback.note
    assert cache.roll_back([*range(5), 6]).note == ""


def test_prompt_without_shared_prefix_has_no_note() -> None:
    memory = HybridMemory()
    cache = new_cache(memory)
    filled(memory, cache, [1, 2, 3], {2})
    rollback = cache.roll_back([9, 8, 7])
    assert (rollback.start, rollback.note) == (0, "")


def test_pictures_take_cells_by_token_and_positions_by_mrope() -> None:
    cache = new_cache(HybridMemory())
    cache.append(1, ImageItem("a", n_tokens=768, n_positions=32), 2)
    assert cache.position == 34
    assert cache.n_cells == 770


def test_pictures_are_the_same_only_by_content() -> None:
    first, second = ImageItem("a", 10, 4), ImageItem("b", 10, 4)
    assert common_prefix_length([1, first, 2], [1, first, 3]) == 2
    assert common_prefix_length([1, first], [1, second]) == 1


def test_thinning_keeps_recent_and_pinned_checkpoints() -> None:
    all_of_them = [Checkpoint(i * 100, i == 1, bytes(100)) for i in range(1, 101)]
    kept = thin(all_of_them, 1000)
    indexes = [each.index for each in kept]
    assert len(kept) == 10
    assert indexes[0] == 100, "the pinned one stays"
    assert indexes[-1] == 10_000, "the last one stays"
    gaps = [b - a for a, b in itertools.pairwise(indexes[1:])]
    assert gaps == sorted(gaps, reverse=True), "gaps shrink towards the end"


def test_a_checkpoint_larger_than_the_budget_is_not_kept() -> None:
    memory = HybridMemory()
    cache = new_cache(memory, budget_bytes=50)
    filled(memory, cache, [1, 2, 3], {2})
    assert cache.checkpoint_indexes == ()


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.tuples(st.lists(st.integers(0, 2), min_size=1, max_size=40), st.sets(st.integers(1, 40)), st.booleans()),
        max_size=12,
    )
)
def test_cache_and_items_stay_consistent(prompts: list[tuple[list[int], set[int], bool]]) -> None:
    """Random prompts, checkpoints, aborts and a tight budget: what is held is always a prefix that was really fed."""
    memory = HybridMemory()
    cache = new_cache(memory, budget_bytes=450)
    for wanted, saves, torn in prompts:
        start = cache.roll_back(wanted).start
        assert start < len(wanted)
        assert list(cache.items) == wanted[:start]
        assert memory.attention == memory.recurrent == start
        filled(memory, cache, wanted, saves)
        assert all(index <= len(wanted) for index in cache.checkpoint_indexes)
        if torn:
            memory.attention += 1
            cache.mark_inconsistent()
