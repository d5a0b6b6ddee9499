"""YaRN is decided for a context beyond the trained one, with the smallest factor that reaches it."""

import msgspec
import pytest

from qwendesk.core.options import LoadOptions
from qwendesk.core.rope_scaling import (
    longest_context,
    reached_context,
    with_rope_scaling,
    without_rope_scaling,
    yarn_factor,
)
from tests.gguf_files import moe_35b

TRAINED = 262_144


def options(**values: object) -> LoadOptions:
    return LoadOptions(model="m.gguf", **values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("n_ctx", "factor"), [(4096, 1), (TRAINED, 1), (TRAINED + 1, 2), (524_288, 2), (524_289, 4), (1_010_000, 4)]
)
def test_the_smallest_factor_that_reaches_the_context_is_taken(n_ctx: int, factor: int) -> None:
    assert yarn_factor(n_ctx, TRAINED) == factor


def test_a_longer_context_gets_all_three_values() -> None:
    made = with_rope_scaling(options(n_ctx=1_010_000), moe_35b())
    assert (made.rope_scaling, made.rope_freq_scale, made.yarn_orig_ctx) == ("yarn", 0.25, TRAINED)
    assert reached_context(made, TRAINED) == 4 * TRAINED
    half = with_rope_scaling(options(n_ctx=300_000, rope_scaling="yarn"), moe_35b())
    assert (half.rope_freq_scale, half.yarn_orig_ctx) == (0.5, TRAINED)


@pytest.mark.parametrize(
    "values",
    [
        {"n_ctx": TRAINED},
        {"n_ctx": 0},
        {"n_ctx": TRAINED, "rope_scaling": "yarn"},
        {"n_ctx": 500_000, "rope_scaling": "none"},
        {"n_ctx": 500_000, "rope_scaling": "linear", "rope_freq_scale": 0.5},
        {"n_ctx": 500_000, "rope_freq_scale": 0.5},
        {"n_ctx": 2_000_000},
    ],
)
def test_nothing_is_added_where_it_is_not_needed_or_not_wanted(values: dict[str, object]) -> None:
    assert with_rope_scaling(options(**values), moe_35b()) == options(**values)


def test_values_set_by_hand_are_kept() -> None:
    own = options(n_ctx=400_000, rope_scaling="yarn", rope_freq_scale=0.25, yarn_orig_ctx=131_072)
    assert with_rope_scaling(own, moe_35b()) == own
    assert without_rope_scaling(own) == msgspec.structs.replace(
        own, rope_scaling="auto", rope_freq_scale=0.0, yarn_orig_ctx=0
    ), "these are also the values that would be added for this context"
    other = msgspec.structs.replace(own, rope_freq_scale=0.125)
    assert without_rope_scaling(other) == other


def test_what_was_added_can_be_decided_again_for_another_context() -> None:
    long = with_rope_scaling(options(n_ctx=1_000_000), moe_35b())
    assert without_rope_scaling(long) == options(n_ctx=1_000_000)


def test_the_name_yarn_alone_reaches_no_further() -> None:
    assert reached_context(options(rope_scaling="yarn"), TRAINED) == TRAINED
    assert reached_context(options(rope_scaling="none", rope_freq_scale=0.25), TRAINED) == TRAINED
    assert reached_context(options(rope_freq_scale=0.5), TRAINED) == 2 * TRAINED


def test_only_families_with_yarn_reach_further() -> None:
    assert longest_context("qwen35moe", TRAINED) == 1_010_000
    assert longest_context("qwen3", 40_960) == 163_840
    assert longest_context("qwen35", 1_010_000) == 1_010_000
    assert longest_context("qwen35", 2_000_000) == 2_000_000
    assert longest_context("llama", 8192) == 32_768
    assert longest_context("gemma4", TRAINED) == TRAINED
    assert longest_context("an architecture of tomorrow", TRAINED) == TRAINED
    assert longest_context("qwen35", 0) == 0
