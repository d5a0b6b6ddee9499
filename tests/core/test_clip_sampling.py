"""Which frames of a clip are sent: evenly spaced, in pairs, and within the budget of tokens."""

import itertools
import math

import hypothesis
import pytest
from hypothesis import strategies

from qwendesk.core.clip_sampling import ClipPart, fitted_size, plan_frames, tokens_of

FILM = ClipPart(1920, 1080, 0.0, 24.0, 30.0)


def test_a_second_gives_a_frame_from_its_middle() -> None:
    plan = plan_frames(FILM, 6_200)

    assert plan.times == tuple(second + 0.5 for second in range(24))
    assert (plan.width, plan.height) == (928, 512)
    assert plan.tokens == 12 * (29 * 16 + 10)


def test_frames_that_are_not_merged_cost_twice_as_much() -> None:
    merged, single = plan_frames(FILM, 100_000), plan_frames(FILM, 100_000, in_pairs=False)

    assert (merged.width, merged.height) == (single.width, single.height)
    assert single.tokens == 2 * merged.tokens


def test_frames_become_smaller_before_they_become_fewer() -> None:
    plans = [plan_frames(FILM, budget) for budget in (20_000, 6_000, 2_000, 400, 300, 200, 60)]

    assert [len(plan.times) for plan in plans] == [24, 24, 24, 24, 24, 16, 4]
    areas = [plan.width * plan.height for plan in plans]
    assert areas == sorted(areas, reverse=True)
    assert areas[-3:] == [160 * 96] * 3


def test_two_of_the_smallest_frames_are_the_least() -> None:
    plan = plan_frames(FILM, 0)
    assert plan.times == (6.0, 18.0)
    assert plan.tokens == 5 * 3 + 10


@pytest.mark.parametrize(("wanted", "given"), [(1, 2), (2, 2), (7, 8), (40, 40), (64, 64), (500, 64)])
def test_the_number_of_frames_can_be_chosen(wanted: int, given: int) -> None:
    assert len(plan_frames(FILM, 100_000, n_frames=wanted).times) == given


def test_a_part_of_a_clip_has_times_of_the_whole_clip() -> None:
    assert plan_frames(ClipPart(64, 64, 60.0, 64.0, 25.0), 4_000).times == (60.5, 61.5, 62.5, 63.5)


def test_frames_that_a_clip_does_not_have_are_not_sent_twice() -> None:
    assert plan_frames(ClipPart(64, 64, 0.0, 0.0), 4_000).times == (0.0,)
    assert plan_frames(ClipPart(64, 64, 0.0, 0.04, 25.0), 4_000).times == (0.02,)
    assert len(plan_frames(ClipPart(64, 64, 0.0, 30.0, 0.2), 4_000, n_frames=20).times) == 6


def test_a_long_clip_has_64_frames() -> None:
    plan = plan_frames(ClipPart(1280, 720, 0.0, 3 * 3600.0, 30.0), 16_000)
    assert len(plan.times) == 64
    assert plan.times[1] - plan.times[0] == pytest.approx(168.75)


@pytest.mark.parametrize("size", [(1, 1), (3, 5), (15, 4_000), (4_000, 15), (33, 33), (8_192, 4_608)])
def test_odd_sizes_become_some_that_llama_cpp_leaves_alone(size: tuple[int, int]) -> None:
    """It enlarges what has less than 8 tokens, and refuses a side that is over 200 times the other."""
    for most_tokens in (16, 50, 200, 5_000):
        width, height = fitted_size(*size, most_tokens)
        assert (width % 32, height % 32) == (0, 0)
        assert 8 <= tokens_of((width, height)) <= most_tokens
        assert max(width, height) <= 200 * min(width, height)


@hypothesis.given(
    side=strategies.tuples(strategies.integers(1, 8_192), strategies.integers(1, 8_192)),
    start_s=strategies.floats(0, 10_000),
    duration_s=strategies.floats(0, 20_000),
    rate=strategies.floats(0, 240),
    budget=strategies.integers(-100, 100_000),
    n_frames=strategies.integers(0, 100),
    in_pairs=strategies.booleans(),
)
def test_every_plan_keeps_the_rules(side, start_s, duration_s, rate, budget, n_frames, in_pairs) -> None:
    part = ClipPart(*side, start_s, start_s + duration_s, rate)
    plan = plan_frames(part, budget, n_frames=n_frames, in_pairs=in_pairs)

    count = len(plan.times)
    assert count == 1 or (count % 2 == 0 and 2 <= count <= 64)
    assert all(earlier <= later for earlier, later in itertools.pairwise(plan.times))
    assert all(part.start_s - 0.001 <= time_s <= part.end_s + 0.001 for time_s in plan.times)
    assert 1 <= tokens_of((plan.width, plan.height)) <= 768
    assert plan.tokens == math.ceil(count / (2 if in_pairs else 1)) * (tokens_of((plan.width, plan.height)) + 10)
    assert plan.tokens <= budget or count <= 2
