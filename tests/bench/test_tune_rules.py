"""What auto-tune measures next, on made-up speed functions."""

import random
from collections.abc import Callable

import pytest

from qwendesk.bench.tune_rules import (
    Changes,
    Dimension,
    Speed,
    TriedOptions,
    best_trial,
    faster_answers,
    gains,
    measured,
    next_candidate,
)
from qwendesk.core.benchmarks import SpeedSamples

THREADS = Dimension(
    steps=({"n_threads": 1}, {"n_threads": 2}, {"n_threads": 3}, {}, {"n_threads": 6}, {"n_threads": 8}), is_scale=True
)
"""The user's own setting is four threads."""
UBATCH = Dimension(
    steps=({"n_ubatch": 128}, {"n_ubatch": 256}, {}, {"n_ubatch": 1024}, {"n_ubatch": 2048}), is_scale=True
)
"""The user's own setting is 512."""
DRAFTS = Dimension(
    steps=({}, {"speculative": "lookup"}, {"speculative": "mtp", "draft_n_max": 2}, {"speculative": "mtp"}),
)
ALL = (DRAFTS, UBATCH, THREADS)
Surface = Callable[[Changes], tuple[float, float]]
"""Returns the speed of prompts and of answers in tokens per second."""


def speed(prompt: float, decode: float, spread: float = 0.001, chance: random.Random | None = None) -> Speed:
    """Three samples of each; `spread` is a share of the speed."""

    def samples(mean: float) -> SpeedSamples:
        offsets = (-spread, 0.0, spread) if chance is None else tuple(chance.gauss(0, spread) for _ in range(3))
        return SpeedSamples(tok_s=tuple(mean * (1 + offset) for offset in offsets))

    return Speed(samples(prompt), samples(decode))


def search(
    surface: Surface,
    dimensions: tuple[Dimension, ...] = ALL,
    *,
    limit_s: float = 1000.0,
    fits: Callable[[Changes], bool] = lambda _changes: True,
    spread: float = 0.001,
    chance: random.Random | None = None,
) -> list[TriedOptions]:
    """Run a search in which each measurement takes 10 seconds, and what doesn't fit takes none."""
    trials: list[TriedOptions] = []
    left_s = limit_s
    while (changes := next_candidate(dimensions, trials, left_s)) is not None:
        if fits(changes):
            trials.append(
                TriedOptions(
                    changes=changes, speed=speed(*surface(changes), spread=spread, chance=chance), seconds=10.0
                )
            )
            left_s -= 10.0
        else:
            trials.append(TriedOptions(changes=changes, why_not="It doesn't fit."))
        assert len(trials) < 200, "the search doesn't end"
    return trials


def found(trials: list[TriedOptions]) -> dict:
    best = best_trial(trials)
    assert best is not None
    return best.changes


def hill(changes: Changes) -> tuple[float, float]:
    """Best at 6 threads and an evaluation batch of 1024, independent of each other."""
    threads, ubatch = changes.get("n_threads", 4), changes.get("n_ubatch", 512)
    prompt = {128: 300, 256: 400, 512: 500, 1024: 700, 2048: 650}[ubatch]
    return prompt, {1: 10, 2: 18, 3: 25, 4: 30, 6: 36, 8: 33}[threads]


def down(changes: Changes) -> tuple[float, float]:
    """Best at one thread: all others wait for each other."""
    return 1000.0, 100.0 / changes.get("n_threads", 4)


def plateau(changes: Changes) -> tuple[float, float]:
    """1024 is no better than 512, but 2048 is."""
    return {128: 200, 256: 300, 512: 400, 1024: 401, 2048: 600}[changes.get("n_ubatch", 512)], 40.0


def joint(changes: Changes) -> tuple[float, float]:
    """Drafts only pay off with fewer threads, so one round isn't enough."""
    threads = changes.get("n_threads", 4)
    drafts = changes.get("speculative") == "lookup"
    return 500.0, {1: 10, 2: 50, 3: 60, 4: 40, 6: 30, 8: 20}[threads] * (
        (1.5 if threads == 3 else 0.9) if drafts else 1
    )


def drafting(changes: Changes) -> tuple[float, float]:
    factor = {"lookup": 1.1, "mtp": 1.6 if changes.get("draft_n_max") == 2 else 1.4}.get(
        changes.get("speculative", ""), 1
    )
    return 500.0, 40.0 * factor


@pytest.mark.parametrize(
    ("surface", "optimum"),
    [
        (hill, {"n_threads": 6, "n_ubatch": 1024}),
        (down, {"n_threads": 1}),
        (plateau, {"n_ubatch": 2048}),
        (joint, {"n_threads": 3, "speculative": "lookup"}),
        (drafting, {"speculative": "mtp", "draft_n_max": 2}),
        (lambda _changes: (500.0, 40.0), {}),
    ],
)
def test_the_known_optimum_is_found(surface: Surface, optimum: dict) -> None:
    assert found(search(surface)) == optimum


def test_the_users_own_settings_are_measured_first() -> None:
    assert next_candidate(ALL, (), 180.0) == {}


def test_the_best_and_the_users_settings_are_measured_again_at_the_end() -> None:
    trials = search(hill)
    best = {"n_threads": 6, "n_ubatch": 1024}

    assert trials[-1].changes == {}
    assert sum(trial.changes == best for trial in trials) == 2
    assert [len(each.speed.prompt.tok_s) for each in measured(trials) if each.changes in ({}, best)] == [6, 6]


def test_nothing_is_confirmed_if_nothing_was_found() -> None:
    trials = search(lambda _changes: (500.0, 40.0))

    assert sum(not trial.changes for trial in trials) == 1


@pytest.mark.parametrize("limit_s", [5.0, 30.0, 60.0, 75.0, 180.0])
def test_the_search_ends_within_its_time_and_keeps_some_for_confirming(limit_s: float) -> None:
    trials = search(hill, limit_s=limit_s)

    assert sum(trial.seconds for trial in trials) <= max(limit_s, 10.0)
    best = found(trials)
    if best:
        assert sum(trial.changes == best for trial in trials) == 2


def test_what_the_planner_refuses_is_neither_kept_nor_passed_over() -> None:
    """More needs more memory, so a larger value than one that doesn't fit isn't tried."""
    trials = search(plateau, fits=lambda changes: changes.get("n_ubatch", 512) <= 512)

    tried = {trial.changes.get("n_ubatch", 512): trial.why_not for trial in trials}
    assert tried[1024]
    assert 2048 not in tried
    assert found(trials) == {}


def test_the_optimum_under_the_limit_of_memory_is_found() -> None:
    trials = search(hill, fits=lambda changes: changes.get("n_ubatch", 512) <= 512)

    assert found(trials) == {"n_threads": 6}


def test_noise_is_hardly_ever_a_gain() -> None:
    """All settings are equally fast, and the measurements scatter by 4%, which is much for a PC."""
    results = [
        found(search(lambda _changes: (500.0, 40.0), spread=0.04, chance=random.Random(seed))) for seed in range(100)
    ]

    assert sum(result != {} for result in results) <= 3


@pytest.mark.parametrize("seed", range(20))
def test_a_gain_far_above_the_noise_is_found(seed: int) -> None:
    trials = search(down, spread=0.03, chance=random.Random(seed))

    assert found(trials)["n_threads"] == 1


def test_a_gain_counts_above_the_spread_of_both() -> None:
    base = speed(500, 40, spread=0.05)

    assert not gains(speed(500, 42, spread=0.05), base)
    assert gains(speed(500, 60, spread=0.05), base)
    assert gains(speed(500, 42), speed(500, 40))
    assert not gains(speed(500, 40.3), speed(500, 40))
    assert not gains(None, base)


def test_a_faster_prompt_is_a_gain_too() -> None:
    assert gains(speed(1000, 40), speed(500, 40))


def test_faster_answers_count_above_the_spread_of_both() -> None:
    own = TriedOptions(changes={}, speed=speed(94, 17, spread=0.1))
    assert own.speed is not None

    def found(new: Speed) -> bool:
        trial = TriedOptions(changes={"n_threads": 1}, speed=new)
        return faster_answers((own, trial), own.speed) is trial

    assert found(speed(83, 27, spread=0.1))
    assert not found(speed(83, 27, spread=0.5))
    assert not found(speed(83, 18, spread=0.0001))
    assert not found(speed(94, 27, spread=0.01)), "a typical turn gains, so there is nothing to choose"


def test_faster_answers_with_slower_prompts_are_measured_again_too() -> None:
    """A typical turn takes longer, so the search doesn't take them, but the user may."""
    trials = search(lambda changes: (200.0, 60.0) if changes.get("n_threads") == 6 else (500.0, 40.0))

    assert found(trials) == {}
    assert sum(trial.changes == {"n_threads": 6} for trial in trials) == 2
    assert trials[-1].changes == {}


def test_noise_is_hardly_ever_called_faster_answers() -> None:
    own = speed(500.0, 40.0)
    trials = [search(lambda _changes: (500.0, 40.0), spread=0.04, chance=random.Random(seed)) for seed in range(100)]

    assert sum(faster_answers(each, own) is not None for each in trials) <= 3


def test_a_search_without_a_speed_of_the_users_settings_ends() -> None:
    failed = [TriedOptions(changes={}, why_not="The engine stopped.", seconds=3.0)]

    assert next_candidate(ALL, failed, 100.0) is None
    assert best_trial(failed) is None


def test_a_step_that_failed_is_passed_over() -> None:
    trials = search(drafting, fits=lambda changes: changes.get("draft_n_max") != 2)

    assert found(trials) == {"speculative": "mtp"}
